"""Label message passing: messages from components to labels, then among labels."""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.index import ptr2index
from torch_geometric.typing import Adj
from torch_geometric.utils import is_sparse
from typing_extensions import Unpack

from tg_mlc._names import check_same_names
from tg_mlc._options import check_count
from tg_mlc.nn._batch import check_components, to_ptr
from tg_mlc.nn.attention import AttentionConv, BlockOptions, check_options, pair_of
from tg_mlc.nn.shortlist import Shortlist
from tg_mlc.ops import Blocks, Edges, Pattern, Shared
from tg_mlc.ops.patterns import adjacency_of, check_edge_index, shape_error, to_list


class FeatureToLabelConv(AttentionConv):
    r"""The feature-to-label message passing block from the `"Neural Message Passing for Multi-Label
    Classification" <https://arxiv.org/abs/1904.08049>`_ paper: labels attend to components.

    .. math::
        \mathbf{m}_i = \mathbf{u}_i + \sum_{j \in \mathcal{N}(i)} \alpha_{ij} \mathbf{W}^v
        \mathbf{z}_j, \qquad
        \mathbf{u}_i^{\prime} = \mathbf{m}_i + \textrm{MLP}(\mathbf{m}_i)

    Args:
        channels (int or tuple): Size of all states, or sizes of component and label states.
        heads (int, optional): Number of heads, a divisor of :math:`d`. (default: :obj:`4`)
        **kwargs (optional): Additional arguments of :class:`~tg_mlc.nn.AttentionConv`.

    Shapes:
        - **input:** component and label states :math:`((N, d_x), (B \cdot L, d))`, edges
        - **output:** label states :math:`(B \cdot L, d)`
    """


class LabelToLabelConv(AttentionConv):
    r"""The label-to-label message passing block of the LaMP paper: labels attend to neighbours
    :math:`\mathbf{u}_j` in the label graph instead of components :math:`\mathbf{z}_j`.

    Args:
        channels, heads, kwargs: As in :class:`FeatureToLabelConv`.

    Shapes:
        - **input:** label states :math:`(B \cdot L, d)`, edges among the labels of a sample
        - **output:** label states :math:`(B \cdot L, d)`
    """


class StepAttention(NamedTuple):
    """The attention of one step: edges, and attention weights in the same layout."""

    feature_to_label: tuple[Adj | Pattern, Tensor]
    label_to_label: tuple[Pattern, Tensor] | None  #: :obj:`None` without messages among labels


class LabelStates(NamedTuple):
    """Output of :class:`LabelMessagePassing` if intermediate states or attention are requested."""

    states: Tensor  #: ``[B, L, d]``, the final states
    intermediate: list[Tensor]  #: earlier states 1.1, 1.2, ... of all steps, each ``[B, L, d]``
    attention: list[StepAttention]  #: one entry for each step, if requested


class LabelMessagePassing(nn.Module):
    r"""Label message passing from the `"Neural Message Passing for Multi-Label Classification"
    <https://arxiv.org/abs/1904.08049>`_ paper, in place of pooling and the last layer of a GNN.

    Labels start from embeddings that all samples share. In each of :obj:`num_steps` steps
    they attend to the components of their own sample (:class:`~tg_mlc.nn.FeatureToLabelConv`, state
    :math:`t.1`) and then to their neighbours in the label graph
    (:class:`~tg_mlc.nn.LabelToLabelConv`, state :math:`t.2`):

    .. math::
        \mathbf{u}^{t.1}_i = \textrm{xy}^t \big( \mathbf{u}^{t-1}_i, \{ \mathbf{z}_j \} \big),
        \qquad
        \mathbf{u}^{t.2}_i = \textrm{yy}^t \big( \mathbf{u}^{t.1}_i, \{ \mathbf{u}^{t.1}_j : j \in
        \mathcal{N}(i) \} \big), \qquad \mathbf{u}^0_i = \mathbf{W}^y_i

    Args:
        channels (int or tuple): Size :math:`d` of all states, or sizes of component and label
            states. The size of components may be :obj:`-1`, to infer it from the first input.
        label_graph (LabelGraph): The label graph, a :class:`~torch_geometric.data.Data` or a sparse
            matrix with targets as rows. Assign :obj:`label_graph` to replace it. State dicts load
            only into a model with the same graph.
        num_steps (int, optional): Number of steps :math:`T`. (default: :obj:`2`)
        label_messages (bool, optional): Whether labels attend to each other. (default: :obj:`True`)
        label_kwargs (dict, optional): Options of label-to-label blocks. (default: :obj:`None`)
        **block (optional): Options of all blocks (see :class:`~tg_mlc.nn.AttentionConv`); with
            :obj:`norm="pre"`, returned states are normalised once more.

    Shapes:
        - **input:** component states :math:`(N, d_x)`, batch vector :math:`(N)`. States are squared
          and multiplied: beyond :math:`10^{15}` (in double precision, :math:`10^{100}`), outputs
          may be zeros or NaN.
        - **output:** label states :math:`(B, L, d)`, or :math:`(M, d)` for a shortlist

    Raises:
        TypeError: If :obj:`label_graph` is not a graph.
        ValueError: If :obj:`num_steps` is less than 1, or the label graph has no labels.
    """

    def __init__(
        self,
        channels: int | tuple[int, int],
        label_graph: Data | Adj,
        num_steps: int = 2,
        *,
        label_messages: bool = True,
        label_kwargs: BlockOptions | None = None,
        **block: Unpack[BlockOptions],
    ) -> None:
        super().__init__()
        check_count("num_steps", num_steps)
        label_options: BlockOptions = {**block, **(label_kwargs or {})}
        check_options(label_options)
        source, self.channels = pair_of(channels)
        self.num_labels = int(_as_data(label_graph).num_nodes or 0)
        self.num_steps = num_steps
        self.embedding = nn.Embedding(self.num_labels, self.channels)
        self.label_graph = label_graph
        steps = range(num_steps)
        convs = (FeatureToLabelConv((source, self.channels), **block) for _ in steps)
        self.feature_to_label = nn.ModuleList(convs)
        steps = range(num_steps if label_messages else 0)
        label_convs = (LabelToLabelConv(self.channels, **label_options) for _ in steps)
        self.label_to_label = nn.ModuleList(label_convs)
        uses_pre_norm = "pre" in (block.get("norm"), label_options.get("norm"))
        self.final_norm = nn.LayerNorm(self.channels) if uses_pre_norm else nn.Identity()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Resets all learnable parameters; embeddings have unit variance."""
        nn.init.normal_(self.embedding.weight)
        for conv in (*self.feature_to_label, *self.label_to_label):
            conv.reset_parameters()
        if isinstance(self.final_norm, nn.LayerNorm):
            self.final_norm.reset_parameters()

    @property
    def label_graph(self) -> Data:
        """The label graph. Another graph with the same labels may be assigned."""
        return self._label_graph

    @label_graph.setter
    def label_graph(self, label_graph: Data | Adj) -> None:
        label_graph = _as_data(label_graph)
        num_labels = int(label_graph.num_nodes or 0)
        if num_labels < 1:
            raise ValueError("Expected 'label_graph' to hold at least 1 label (got 0)")
        if num_labels != self.num_labels:
            message = f"Expected 'label_graph' to hold {self.num_labels} labels (got {num_labels})"
            raise ValueError(message)
        current: Data | None = getattr(self, "_label_graph", None)
        if current is not None:
            names = label_graph.get("label_names"), current.get("label_names")
            check_same_names(*names, "'label_graph'", "the graph that it replaces")
        self._label_graph = label_graph
        self._summary: Tensor | None = None
        self._build_label_edges()

    @property
    def has_neighbours(self) -> bool:
        """Tells whether any label attends to another one."""
        source, target = to_list(adjacency_of(self._label_graph))
        return len(self.label_to_label) > 0 and bool((source != target).any())

    def get_extra_state(self) -> Tensor:
        """Returns a summary of the label graph, which weights do not contain."""
        if self._summary is None:
            self._summary = summary_of(self._label_graph)
        return self._summary

    def set_extra_state(self, state: Tensor) -> None:
        """Raises :obj:`ValueError` if the summary is that of another label graph."""
        check_summary(state, self.get_extra_state())

    def _build_label_edges(self) -> None:
        # Edges are prepared on the device of the graph, because the meta device holds no values.
        edges = Edges(adjacency_of(self._label_graph), self.num_labels, self.num_labels).prepare()
        self._label_edges = edges.to(self.embedding.weight.device)

    def _apply(self, fn: Any, recurse: bool = True) -> LabelMessagePassing:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if self._label_edges.device != self.embedding.weight.device:
            self._build_label_edges()
        return self

    def forward(
        self,
        x: Tensor,
        batch: Tensor | None = None,
        *,
        ptr: Tensor | None = None,
        edge_index: Adj | None = None,
        components: Tensor | None = None,
        base_scores: Tensor | None = None,
        shortlist: Shortlist | None = None,
        batch_size: int | None = None,
        max_num_nodes: int | None = None,
        return_intermediate: bool = False,
        return_attention_weights: bool = False,
    ) -> Tensor | LabelStates:
        r"""Runs the forward pass of the module.

        Args:
            x (torch.Tensor): The component states.
            batch (torch.Tensor, optional): The sample of every component, in ascending order.
                (default: :obj:`None`, a single sample)
            ptr (torch.Tensor, optional): The bounds of samples. (default: :obj:`None`)
            edge_index (torch.Tensor or SparseTensor, optional): Edges from components to the labels
                :math:`0, \ldots, L - 1` of their sample. (default: :obj:`None`, all labels)
            components (torch.Tensor, optional): Pairs :math:`(2, M)` of a component and a sample,
                if samples share components (see :class:`~tg_mlc.nn.NeighbourComponents`).
                (default: :obj:`None`)
            base_scores (torch.Tensor, optional): States :math:`(B, L, d)` that are added after
                labels have first attended to components. (default: :obj:`None`)
            shortlist (Shortlist, optional): The labels to compute (see
                :class:`~tg_mlc.nn.Shortlister`); states and base scores are then :math:`(M, d)`.
                (default: :obj:`None`)
            batch_size (int, optional): The number of samples. It is needed if the last samples are
                empty, and under :meth:`torch.compile`. (default: :obj:`None`)
            max_num_nodes (int, optional): The largest number of components of a sample.
                (default: :obj:`None`, read from the device)
            return_intermediate (bool, optional): If set to :obj:`True`, returns
                :class:`LabelStates`. (default: :obj:`False`)
            return_attention_weights (bool, optional): If set to :obj:`True`, returns
                :class:`LabelStates` with the attention of every step. (default: :obj:`False`)
        """
        check_components(x)
        if components is not None:
            if batch is not None or ptr is not None or edge_index is not None:
                expected = "either 'components' or 'batch', 'ptr' and 'edge_index'"
                raise ValueError(f"Expected {expected} (got both)")
            if components.dim() != 2 or components.size(0) != 2:
                raise shape_error("'components'", "[2, M]", components)
            components = components[:, components[1].argsort(stable=True)]
        sample, rows = (batch, x) if components is None else (components[1], components[1])
        ptr = to_ptr(rows, sample, ptr, batch_size, max_num_nodes)
        num_samples = ptr.numel() - 1
        edges = self._edges(x, ptr, edge_index, components, max_num_nodes, shortlist)
        label_edges: Pattern = Shared(self._label_edges, num_samples)
        if shortlist is not None:
            label_edges = Edges(shortlist.edge_index, len(shortlist.label), len(shortlist.label))

        with_attention = return_attention_weights
        keep_states = return_intermediate or with_attention
        u = self.embedding.weight if shortlist is None else self.embedding(shortlist.label)
        states: list[Tensor] = []
        attention: list[StepAttention] = []
        xy_attention: Any
        for step, xy in enumerate(self.feature_to_label):
            # In the first step, all samples share label states, which are projected only once.
            num_copies = num_samples if step == 0 and shortlist is None else 1
            out = xy((x, u), edges, num_copies=num_copies, return_attention_weights=with_attention)
            u, xy_attention = out if with_attention else (out, None)
            if step == 0 and base_scores is not None:
                u = u + self._checked(base_scores, num_samples, shortlist)
            states += [u] if keep_states else []
            yy_attention = None
            if len(self.label_to_label) > 0:
                yy = self.label_to_label[step]
                out = yy(u, label_edges, return_attention_weights=with_attention)
                u, yy_attention = out if with_attention else (out, None)
                states += [u] if keep_states else []
            attention += [StepAttention(xy_attention, yy_attention)] if with_attention else []

        shape = (-1,) if shortlist is not None else (num_samples, self.num_labels)
        states = [self.final_norm(u).view(*shape, self.channels) for u in states or [u]]
        if not keep_states:
            return states[-1]
        return LabelStates(states[-1], states[:-1], attention)

    def _checked(self, scores: Tensor, num_samples: int, shortlist: Shortlist | None) -> Tensor:
        shape = [num_samples, self.num_labels] if shortlist is None else [len(shortlist.label)]
        if list(scores.shape) != [*shape, self.channels]:
            raise shape_error("'base_scores'", [*shape, self.channels], scores)
        return scores.reshape(-1, self.channels)

    def _edges(
        self,
        x: Tensor,
        ptr: Tensor,
        edge_index: Adj | None,
        components: Tensor | None,
        max_num_nodes: int | None,
        shortlist: Shortlist | None,
    ) -> Tensor | Pattern:
        num_samples = ptr.numel() - 1
        if shortlist is not None:
            is_default = edge_index is None and components is None
            if not is_default or shortlist.ptr.numel() != ptr.numel():
                got = f"{shortlist.ptr.numel() - 1} shortlists for {num_samples} samples"
                expected = "a shortlist for each sample without other edges"
                raise ValueError(f"Expected {expected} (got {got})")
            return Blocks(shortlist.ptr, ptr, num_queries=len(shortlist.label), num_keys=x.size(0))
        if edge_index is not None:
            edge_index = to_list(edge_index)
            if not torch.compiler.is_compiling():
                check_edge_index(edge_index, x.size(0), self.num_labels)
            source, label = edge_index
            sample = ptr2index(ptr, output_size=x.size(0))[source]
            return torch.stack([source, sample * self.num_labels + label])
        query_ptr = torch.arange(num_samples + 1, device=x.device) * self.num_labels
        num_keys = x.size(0) if components is None else components.size(1)
        sizes = {"num_queries": num_samples * self.num_labels, "num_keys": num_keys}
        max_sizes = {"max_queries": self.num_labels, "max_keys": max_num_nodes}
        blocks = Blocks(query_ptr, ptr, **sizes, **max_sizes, validate=False)
        if components is None:
            return blocks
        by_query, index, _ = blocks.csr()
        return Edges.from_csr(by_query, components[0][index], blocks.num_queries, x.size(0))

    def __repr__(self) -> str:
        sizes = f"num_labels={self.num_labels}, num_steps={self.num_steps}"
        return f"{self.__class__.__name__}({self.channels}, {sizes})"


def summary_of(label_graph: Data) -> Tensor:
    """Returns a summary of a label graph as a tensor, which any format of weights can store."""
    source, target = to_list(adjacency_of(label_graph)).cpu()
    edges = (target * int(label_graph.num_nodes or 0) + source).sort().values
    kind, names = label_graph.get("kind"), label_graph.get("label_names")
    summary = {
        "kind": None if kind is None else str(kind),
        "label_names": None if names is None else [str(name) for name in names],
        "num_edges": edges.numel(),
        "edges": hashlib.sha256(edges.numpy()).hexdigest(),
    }
    return torch.tensor(list(json.dumps(summary).encode()), dtype=torch.uint8, device="cpu")


def check_summary(stored: Tensor, present: Tensor) -> None:
    """Raises if stored weights belong to another label graph."""
    saved, own = (json.loads(bytes(summary.tolist())) for summary in (stored, present))
    check_same_names(saved["label_names"], own["label_names"], "the weights", "'label_graph'")
    if saved["edges"] != own["edges"]:
        got, has = (f"{info['num_edges']} edges of kind {info['kind']!r}" for info in (saved, own))
        expected = f"weights of a model with the same label graph, {has}"
        cure = "build the model with the graph of the weights, load them, and assign 'label_graph'"
        raise ValueError(f"Expected {expected} (got weights of one with {got}); {cure}")


def _as_data(label_graph: Data | Adj) -> Data:
    if isinstance(label_graph, Data):
        return label_graph
    if is_sparse(label_graph):
        return Data(adj_t=label_graph, num_nodes=label_graph.size(0))
    expected = "'label_graph' to be a LabelGraph, another Data or a sparse matrix"
    cure = "tg_mlc.graphs makes one: fully_connected, from_networkx, ..."
    raise TypeError(f"Expected {expected} (got {type(label_graph).__name__}); {cure}")
