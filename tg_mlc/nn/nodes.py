"""Labels of nodes: neighbourhoods of seed nodes as components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.typing import Adj

from tg_mlc._options import check_count
from tg_mlc.nn.shortlist import gathered, grouped
from tg_mlc.ops.patterns import check_edge_index, shape_error, to_list


class NodeComponents(NamedTuple):
    """Components that several samples may share, for :class:`~tg_mlc.nn.LabelMessagePassing`."""

    x: Tensor  #: ``[N, d]``, a state for each node and hop
    components: Tensor  #: ``[2, M]``, pairs of a row of :obj:`x` and the index of a seed


class NeighbourComponents(nn.Module):
    r"""The components of seed nodes: seeds, neighbours by hop, and known labels of neighbours.

    .. math::
        \mathcal{Z}_s = \{ \mathbf{x}_s + \mathbf{e}_0 \} \cup \bigcup_{k=1}^{K} \{ \mathbf{x}_v +
        \mathbf{e}_k : v \in \mathcal{N}_k(s) \} \cup \{ \mathbf{W} \mathbf{y}_v + \mathbf{e}_k : v
        \in \mathcal{N}_k(s) \}

    where :math:`\mathcal{N}_k(s)` contains the nodes whose shortest path to seed :math:`s` has
    :math:`k` edges. States are computed once for each node and hop, not for each pair.

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
        num_labels (int, optional): Number of known labels. (default: :obj:`None`)

    Shapes:
        - **input:** node states :math:`(|\mathcal{V}|, d)`, edges :math:`(2, |\mathcal{E}|)`, known
          labels :math:`(|\mathcal{V}|, L)`: 0, 1, or NaN for unknown
        - **output:** component states :math:`(N, d)`, pairs :math:`(2, M)`

    Raises:
        ValueError: If an option is out of range, the number of edge lists is wrong, a seed is not
            a node or repeats, or known labels are passed without :obj:`num_labels`.
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
        r"""Resets all learnable parameters; embeddings of hops start small relative to states."""
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
            x (torch.Tensor or list): The node states, or one tensor of states per hop, seeds first.
            edge_index (torch.Tensor, SparseTensor or list): The edges, or a list of the edges of
                every hop, from the seeds outwards.
            seeds (int or torch.Tensor): The indices or the mask of the seeds, or, if seeds come
                first, their number (batch size of :class:`~torch_geometric.loader.NeighborLoader`).
            known (torch.Tensor, optional): Known labels of nodes of the seeds' type. Labels of the
                seeds themselves are ignored. (default: :obj:`None`)
        """
        # A hop to the seeds' node type has the seeds' tensor of states. Only such hops know labels.
        states = [x] * (self.num_hops + 1) if isinstance(x, Tensor) else list(x)
        by_hop = isinstance(edge_index, list | tuple)
        edges = list(edge_index) if by_hop else [edge_index] * self.num_hops
        if (len(states), len(edges)) != (self.num_hops + 1, self.num_hops):
            expected = f"states of {self.num_hops + 1} node types and {self.num_hops} relations"
            got = f"{len(states)} and {len(edges)}"
            raise ValueError(f"Expected 'x' and 'edge_index' to hold {expected} (got {got})")
        for hop, state in enumerate(states):
            is_copy = state is not states[0] and state.shape == states[0].shape
            if is_copy and torch.equal(state, states[0]):
                expected = "'x' to have the states of the seeds' node type as one tensor"
                got = f"equal states in another tensor at hop {hop}"
                raise ValueError(f"Expected {expected} (got {got}); pass the tensor, not a copy")
        seeds = _as_index(seeds, states[0])
        if known is not None:
            known = self._without_seeds(known, seeds, states[0])
        num_seeds = seeds.numel()
        seed_index = torch.arange(num_seeds, device=seeds.device)
        rows, size = [states[0][seeds] + self.hop.weight[0]], num_seeds
        pairs = [torch.stack([seed_index, seed_index])]
        frontier = torch.stack([seeds, seed_index])
        visited = seeds * num_seeds + seed_index
        for hop, (state, relation) in enumerate(zip(states[1:], edges, strict=True), start=1):
            num_nodes = states[hop - 1].size(0)
            check_edge_index(step := to_list(relation), state.size(0), num_nodes)
            frontier = _step(frontier, step, num_nodes, num_seeds)
            if state is states[0]:
                pair = frontier[0] * num_seeds + frontier[1]
                frontier = frontier[:, ~torch.isin(pair, visited)]
                visited = torch.cat([visited, pair])
            components = [(state, frontier)]
            if known is not None and self.lin_known is not None and state is states[0]:
                applies = (known == 1).any(dim=1)[frontier[0]]
                embedded = self.lin_known(known.nan_to_num(0.0).to(state.dtype))
                components.append((embedded, frontier[:, applies]))
            for values, (node, seed) in components:
                rows.append(values + self.hop.weight[hop])
                pairs.append(torch.stack([node + size, seed]))
                size += values.size(0)
        all_pairs = torch.cat(pairs, dim=1)
        return NodeComponents(torch.cat(rows), all_pairs[:, all_pairs[1].argsort(stable=True)])

    def _without_seeds(self, known: Tensor, seeds: Tensor, x: Tensor) -> Tensor:
        """Returns the known labels, with NaN for the seeds."""
        if self.lin_known is None:
            expected = "no 'known' labels without 'num_labels'"
            raise ValueError(f"Expected {expected} (got some); give the module 'num_labels'")
        shape = [x.size(0), self.lin_known.in_features]
        if list(known.shape) != shape:
            raise shape_error("'known'", f"{shape}, as 'x' has rows", known)
        known = known.to(x.dtype)
        if not ((known == 0) | (known == 1) | known.isnan()).all():
            raise ValueError("Expected 'known' to hold 0, 1 or NaN for unknown (got other numbers)")
        return known.index_fill(0, seeds, torch.nan)

    def __repr__(self) -> str:
        num_labels = None if self.lin_known is None else self.lin_known.in_features
        sizes = f"{self.hop.embedding_dim}, num_hops={self.num_hops}, num_labels={num_labels}"
        return f"{self.__class__.__name__}({sizes})"


def _as_index(seeds: Any, x: Tensor) -> Tensor:
    """Returns indices of seeds, given their number, their indices or a mask."""
    index = torch.as_tensor(seeds, device=x.device)
    num_nodes, is_mask = x.size(0), index.dtype == torch.bool
    is_whole = not (index.is_floating_point() or index.is_complex())
    if index.dim() > 1 or not is_whole or (is_mask and list(index.shape) != [num_nodes]):
        expected = f"a number of nodes, or the numbers or a mask of seeds among {num_nodes} nodes"
        got = f"{index.dtype} of shape {list(index.shape)}"
        raise ValueError(f"Expected 'seeds' to be {expected} (got {got})")
    if index.dim() == 0:
        count = int(index)
        if not 0 <= count <= x.size(0):
            got = f"the first {count}"
            raise ValueError(f"Expected 'seeds' to be different nodes of {x.size(0)} (got {got})")
        return torch.arange(count, device=x.device)
    index = index.nonzero().flatten() if is_mask else index.long()
    outside = index.numel() > 0 and (int(index.min()) < 0 or int(index.max()) >= x.size(0))
    if outside or torch.unique(index).numel() != index.numel():
        got = f"{index.tolist()[:8]}..."
        raise ValueError(f"Expected 'seeds' to be different nodes of {x.size(0)} (got {got})")
    return index


def _step(frontier: Tensor, edge_index: Tensor, num_nodes: int, num_seeds: int) -> Tensor:
    """Returns distinct pairs of a seed and a node that is one step farther away."""
    node, seed = frontier
    index, source = gathered(node, *grouped(edge_index, num_nodes))
    pairs = torch.unique(source * num_seeds + seed[index])
    return torch.stack([pairs // num_seeds, pairs % num_seeds])
