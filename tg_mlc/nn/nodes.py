"""Labels on nodes: the sampled neighbourhoods of seed nodes as components of label message passing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.typing import Adj

from tg_mlc._options import check_count
from tg_mlc.nn.shortlist import gathered, grouped
from tg_mlc.ops.patterns import check_edge_index, to_list


class NodeComponents(NamedTuple):
    """Components that several samples may share, for :class:`~tg_mlc.nn.LabelMessagePassing`."""

    x: Tensor  #: ``[N, d]``, a state for each node and hop
    components: Tensor  #: ``[2, M]``, pairs of a row of :obj:`x` and a seed


class NeighbourComponents(nn.Module):
    r"""The components of nodes that carry labels: each seed itself, its neighbours by hop, and what is known of their
    labels.

    .. math::
        \mathcal{Z}_s = \{ \mathbf{x}_s + \mathbf{e}_0 \} \cup \bigcup_{k=1}^{K} \{ \mathbf{x}_v + \mathbf{e}_k :
        v \in \mathcal{N}_k(s) \} \cup \{ \mathbf{W} \mathbf{y}_v + \mathbf{e}_k : v \in \mathcal{N}_k(s) \}

    with :math:`\mathcal{N}_k(s)` the nodes from which the shortest path of edges to seed :math:`s` has :math:`k` steps.
    States are made once for each node and hop, not for each edge: time and memory are linear in the pairs of a node and
    a seed, for one hop the sampled edges.

    .. code-block:: python

        components, labels = (
            NeighbourComponents(64, num_labels=39),
            LabelMessagePassing(64, label_graph),
        )

        for batch in NeighborLoader(data, [15], input_nodes=data.train_mask, batch_size=512):
            h = gnn(batch.x, batch.edge_index)
            x, pairs = components(h, batch.edge_index, batch.batch_size, known=batch.known)
            u = labels(x, components=pairs)  # [512, 39, 64]

    Args:
        channels (int): Size :math:`d` of a state.
        num_hops (int, optional): Number of hops :math:`K`. (default: :obj:`1`)
        num_labels (int, optional): Number of labels, if known labels of neighbours are to be components.
            (default: :obj:`None`)

    Shapes:
        - **input:** node states :math:`(|\mathcal{V}|, d)`, edges :math:`(2, |\mathcal{E}|)`, known labels
          :math:`(|\mathcal{V}|, L)`: 0, 1, or NaN for unknown
        - **output:** component states :math:`(N, d)`, pairs :math:`(2, M)`

    Raises:
        ValueError: If an option is out of range, there are neither one nor :math:`K` edge lists with states of their
            own, a seed is no node or repeats, or there are known labels without :obj:`num_labels`.
    """

    def __init__(self, channels: int, num_hops: int = 1, num_labels: int | None = None) -> None:
        super().__init__()
        check_count("channels", channels)
        check_count("num_hops", num_hops)
        check_count("num_labels", num_labels, or_none=True)
        self.num_hops = num_hops
        self.hop = nn.Embedding(num_hops + 1, channels)
        self.lin_known = None if num_labels is None else nn.Linear(num_labels, channels, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module; a hop begins as a small part of a state."""
        nn.init.normal_(self.hop.weight, std=0.1)
        if self.lin_known is not None:
            nn.init.normal_(self.lin_known.weight)

    def forward(
        self,
        x: Tensor | Sequence[Tensor],
        edge_index: Adj | Sequence[Adj],
        seeds: int | Tensor,
        known: Tensor | None = None,
    ) -> NodeComponents:
        r"""Runs the forward pass of the module.

        Args:
            x (torch.Tensor or list): The node states. Along a metapath, those of the node type of every hop, the seeds'
                type first.
            edge_index (torch.Tensor, SparseTensor or list): The edges, from neighbours to seeds. Along a metapath,
                those of the relation of every hop, from the seeds outwards.
            seeds (int or torch.Tensor): How many of the first nodes are seeds, as the :obj:`batch_size` of a
                :class:`~torch_geometric.loader.NeighborLoader`, or which, as numbers or a mask.
            known (torch.Tensor, optional): The known labels of the seeds' node type. Those of the seeds of this call
                are never read, neither their own nor as neighbours of each other. (default: :obj:`None`)
        """
        # The states of all hops are one list where they are of one type: how labels that are known find their hops.
        states = [x] * (self.num_hops + 1) if isinstance(x, Tensor) else list(x)
        edges = (
            list(edge_index)
            if isinstance(edge_index, list | tuple)
            else [edge_index] * self.num_hops
        )
        if (len(states), len(edges)) != (self.num_hops + 1, self.num_hops):
            raise ValueError(
                f"Expected 'x' and 'edge_index' to hold states of {self.num_hops + 1} node types and {self.num_hops} "
                f"relations, or one of each (got {len(states)} and {len(edges)})"
            )
        for hop, state in enumerate(states):
            if (
                state is not states[0]
                and state.shape == states[0].shape
                and torch.equal(state, states[0])
            ):
                raise ValueError(
                    f"Expected 'x' to have the states of the seeds' node type as one tensor at all of its hops (got "
                    f"equal states in another tensor at hop {hop}); pass the tensor itself, not a copy"
                )
        seeds = _as_index(seeds, states[0])
        if known is not None:
            known = self._hidden(known, seeds, states[0])
        number = torch.arange(seeds.numel(), device=seeds.device)
        rows, pairs, size = (
            [states[0][seeds] + self.hop.weight[0]],
            [torch.stack([number, number])],
            seeds.numel(),
        )
        frontier = torch.stack([seeds, number])
        seen = seeds * seeds.numel() + number
        for hop, (state, relation) in enumerate(zip(states[1:], edges, strict=True), start=1):
            check_edge_index(step := to_list(relation), state.size(0), states[hop - 1].size(0))
            frontier = _step(frontier, step, states[hop - 1].size(0), seeds.numel())
            if state is states[0]:
                place = frontier[0] * seeds.numel() + frontier[1]
                frontier, seen = frontier[:, ~torch.isin(place, seen)], torch.cat([seen, place])
            found = [(state, frontier)]
            if known is not None and self.lin_known is not None and state is states[0]:
                tells = (known == 1).any(dim=1)[frontier[0]]
                found.append(
                    (self.lin_known(known.nan_to_num(0.0).to(state.dtype)), frontier[:, tells])
                )
            for values, (node, seed) in found:
                rows.append(values + self.hop.weight[hop])
                pairs.append(torch.stack([node + size, seed]))
                size += values.size(0)
        joined = torch.cat(pairs, dim=1)
        return NodeComponents(torch.cat(rows), joined[:, joined[1].argsort(stable=True)])

    def _hidden(self, known: Tensor, seeds: Tensor, x: Tensor) -> Tensor:
        """Known labels without those of the seeds."""
        if self.lin_known is None:
            raise ValueError(
                "Expected no 'known' labels without 'num_labels' (got some); give the module 'num_labels'"
            )
        shape = [x.size(0), self.lin_known.in_features]
        if list(known.shape) != shape:
            raise ValueError(
                f"Expected 'known' of shape {shape}, as 'x' has rows (got {list(known.shape)})"
            )
        known = known.to(x.dtype)
        if not ((known == 0) | (known == 1) | known.isnan()).all():
            raise ValueError("Expected 'known' to hold 0, 1 or NaN for unknown (got other numbers)")
        return known.index_fill(0, seeds, torch.nan)

    def __repr__(self) -> str:
        num_labels = None if self.lin_known is None else self.lin_known.in_features
        sizes = f"{self.hop.embedding_dim}, num_hops={self.num_hops}, num_labels={num_labels}"
        return f"{self.__class__.__name__}({sizes})"


def _as_index(seeds: Any, x: Tensor) -> Tensor:
    """The numbers of seeds, which may be counted, numbered or marked."""
    index = torch.as_tensor(seeds, device=x.device)
    is_mask, is_whole = (
        index.dtype == torch.bool,
        not (index.is_floating_point() or index.is_complex()),
    )
    if index.dim() > 1 or not is_whole or (is_mask and list(index.shape) != [x.size(0)]):
        expected = f"a number of nodes, or the numbers or a mask of seeds among {x.size(0)} nodes"
        raise ValueError(
            f"Expected 'seeds' to be {expected} (got {index.dtype} of shape {list(index.shape)})"
        )
    if index.dim() == 0:
        count = int(index)
        if not 0 <= count <= x.size(0):
            raise ValueError(
                f"Expected 'seeds' to be different nodes of {x.size(0)} (got the first {count})"
            )
        return torch.arange(count, device=x.device)
    index = index.nonzero().flatten() if is_mask else index.long()
    outside = index.numel() > 0 and (int(index.min()) < 0 or int(index.max()) >= x.size(0))
    if outside or torch.unique(index).numel() != index.numel():
        raise ValueError(
            f"Expected 'seeds' to be different nodes of {x.size(0)} (got {index.tolist()[:8]}...)"
        )
    return index


def _step(frontier: Tensor, edge_index: Tensor, num_nodes: int, num_seeds: int) -> Tensor:
    """Pairs of a node one step farther from its seed, each once."""
    node, seed = frontier
    place, source = gathered(node, *grouped(edge_index, num_nodes))
    pairs = torch.unique(source * num_seeds + seed[place])
    return torch.stack([pairs // num_seeds, pairs % num_seeds])
