"""Label attention network for histories of label sets, and settings for its training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from typing_extensions import Unpack

from tg_mlc._names import register
from tg_mlc._options import check_count, check_share
from tg_mlc.models.builders import rebuilt_by
from tg_mlc.nn import BlockOptions, LabelToLabelConv
from tg_mlc.nn.label import check_summary, summary_of
from tg_mlc.ops import Edges, Shared
from tg_mlc.ops.patterns import adjacency_of, to_list
from tg_mlc.ops.runtime import is_exporting
from tg_mlc.sequences.memory import PersonalMemory
from tg_mlc.sequences.windows import WindowOptions, WindowViews, entity_embedding

#: Arguments of :class:`~tg_mlc.training.MultiLabelModule`, :func:`~tg_mlc.training.fit` and
#: :class:`~tg_mlc.training.MultiLabelDataModule` from the `"Label Attention Network for Sequential
#: Multi-Label Classification" <https://arxiv.org/abs/2303.00280>`_ paper. Patience and epochs
#: follow its released code; the learning rate does not, as the code starts at 1e-4. The paper's
#: multi-label cross-entropy is binary cross-entropy per label, the default objective here.
PAPER: dict[str, dict[str, Any]] = {
    "module": {"lr": 1e-3, "lr_schedule": "plateau"},
    "fit": {"max_epochs": 500, "patience": 15, "monitor": "val/loss"},
    "data": {"batch_size": 32},
}
#: Settings for LANET with a memory: arguments of :class:`LANET`, of
#: :func:`~tg_mlc.sequences.personal_memory`, and of training. Few epochs are enough.
MEMORY: dict[str, dict[str, Any]] = {
    "model": {"channels": 8, "num_layers": 1, "heads": 2, "dropout": 0.1},
    "memory": {"channels": 8, "hidden_channels": 64},
    "module": {
        "objective": {"class": "BinaryObjective", "loss_name": "listwise"},
        "lr": 2e-3,
        "weight_decay": 1e-2,
        "lr_schedule": "cosine",
        "warmup": 0.05,
    },
    "fit": {"max_epochs": 6, "patience": None, "monitor": "val/loss", "ema_decay": 0.998},
    "data": {"batch_size": 32},
}


class LayerAttention(NamedTuple):
    """The attention of one layer, for :func:`~tg_mlc.graphs.learned`."""

    label_to_label: tuple[Shared, Tensor]  #: edges of the label graph; weights ``[B, |E|, heads]``


class LabelTransformer(nn.Module):
    r"""Layers of :class:`~tg_mlc.nn.LabelToLabelConv` among states of labels, as the `"Label
    Attention Network for Sequential Multi-Label Classification"
    <https://arxiv.org/abs/2303.00280>`_ paper stacks Transformer encoder layers.

    State dicts hold a summary of the label graph, and load only into a model with the same graph.
    With :obj:`hub`, a first node is added that attends to all nodes, and all labels attend to it.

    Shapes:
        - **input:** states :math:`(B, N, d)` of :math:`N = L + 1` nodes, or :math:`L` without a hub
        - **output:** states :math:`(B, N, d)`, and the attention of every layer on request
    """

    def __init__(
        self,
        channels: int,
        label_graph: Data,
        num_layers: int = 2,
        *,
        hub: bool = True,
        **block: Unpack[BlockOptions],
    ) -> None:
        super().__init__()
        check_count("num_layers", num_layers)
        self.label_graph = label_graph
        self.num_labels = int(label_graph.num_nodes or 0)
        self.hub = hub
        self.convs = nn.ModuleList(LabelToLabelConv(channels, **block) for _ in range(num_layers))
        self._edges = self._build_edges(torch.device("cpu"))

    def _build_edges(self, device: torch.device) -> Edges:
        edge_index = to_list(adjacency_of(self.label_graph)).to(device)
        if self.hub:
            # Edges in both directions between node 0 and all labels, and a self-loop of node 0.
            labels = torch.arange(1, self.num_labels + 1, device=device)
            from_hub = torch.stack([torch.zeros_like(labels), labels])
            hub_edges = [from_hub, from_hub.flip(0), labels.new_zeros(2, 1)]
            edge_index = torch.cat([edge_index + 1, *hub_edges], dim=1)
        num_nodes = self.num_labels + int(self.hub)
        return Edges(edge_index, num_nodes, num_nodes).prepare()

    def _apply(self, fn: Any, recurse: bool = True) -> LabelTransformer:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        device = next(self.parameters()).device
        if self._edges.device != device:
            self._edges = self._build_edges(device)
        return self

    def get_extra_state(self) -> Tensor:
        """Returns a summary of the label graph."""
        return summary_of(self.label_graph)

    def set_extra_state(self, state: Tensor) -> None:
        """Raises unless the summary matches the label graph."""
        check_summary(state, self.get_extra_state())

    def forward(
        self, x: Tensor, *, return_attention_weights: bool = False
    ) -> tuple[Tensor, list[LayerAttention]]:
        pattern, u, attention = Shared(self._edges, x.size(0)), x.flatten(end_dim=1), []
        for conv in self.convs:
            u = conv(u, pattern, return_attention_weights=return_attention_weights)
            if return_attention_weights:
                u, (_, weights) = u
                # Edges of the hub come last; they are skipped.
                edge_index = to_list(adjacency_of(self.label_graph)).to(weights.device)
                edges = Edges(edge_index, self.num_labels, self.num_labels)
                weights = weights[:, : edge_index.size(1)]
                attention.append(LayerAttention((Shared(edges, x.size(0)), weights)))
        return u.view_as(x), attention


class LANETOutput(NamedTuple):
    """Output of :class:`LANET` with :obj:`return_attention_weights`."""

    logits: Tensor  #: ``[B, L]``
    attention: list[LayerAttention]  #: the edges and weights of every layer


class LANET(nn.Module):
    r"""The label attention network from the `"Label Attention Network for Sequential Multi-Label
    Classification" <https://arxiv.org/abs/2303.00280>`_ paper, which predicts the next label set of
    an entity.

    .. math::
        \mathbf{u}_0, \ldots, \mathbf{u}_L =
        \textrm{Transformer} (\mathbf{e}_0, \ldots, \mathbf{e}_L), \qquad
        y_k = \mathbf{w}^{\top} \mathbf{u}_k + b

    Node :math:`\mathbf{e}_0` embeds the entity, all other nodes embed labels (see
    :class:`~tg_mlc.sequences.windows.WindowViews`). Blocks compute the same function as
    :class:`torch.nn.TransformerEncoderLayer`, along any label graph.

    Our choices: the entity embedding and the MLP of a block have the total width of all views. The
    MLP has no dropout inside. All labels share one linear map to logits.

    Args:
        label_graph (LabelGraph): The label graph; in the paper, it is fully connected.
        num_entities (int): Number of training entities; the embedding of all others is zero.
        channels (int, optional): Size :math:`C` of each view. (default: :obj:`128`)
        num_layers (int, optional): Number of blocks. (default: :obj:`2`)
        entity (bool, optional): Whether the entity has a node. (default: :obj:`True`)
        readout_dropout (float, optional): Dropout on the final states. (default: :obj:`0.3`)
        tied (bool, optional): If set to :obj:`True`, the logit of a label is the product of its
            projected state and its embedding, :math:`(\mathbf{P} \mathbf{u}_k)^{\top} \mathbf{W}_k
            / \sqrt{C}`. (default: :obj:`False`)
        memory (PersonalMemory, optional): A memory of the whole history that adds a view and
            logits (not in the paper). (default: :obj:`None`)
        window (dict, optional): Options of :class:`~tg_mlc.sequences.windows.WindowViews`.
            (default: :obj:`None`)
        **block (optional): Options of the blocks (see :class:`~tg_mlc.nn.AttentionConv`). By
            default, :obj:`heads` is :obj:`4`, :obj:`dropout` :obj:`0.2` and :obj:`bias`
            :obj:`True`, as in the authors' released code.

    Shapes:
        - **input:** a batch of :math:`B` windows
        - **output:** logits :math:`(B, L)`
    """

    def __init__(
        self,
        label_graph: Data,
        num_entities: int,
        channels: int = 128,
        *,
        num_layers: int = 2,
        entity: bool = True,
        readout_dropout: float = 0.3,
        tied: bool = False,
        memory: PersonalMemory | None = None,
        window: WindowOptions | None = None,
        **block: Unpack[BlockOptions],
    ) -> None:
        super().__init__()
        check_count("num_entities", num_entities)
        check_share("readout_dropout", readout_dropout)
        block = {"dropout": 0.2, "bias": True, **block}
        window = window or {}
        options: dict[str, Any] = {"num_entities": num_entities, "channels": channels}
        options |= {"num_layers": num_layers, "entity": entity, "tied": tied}
        plain_window = {k: list(v) if isinstance(v, Sequence) else v for k, v in window.items()}
        sizes = None if memory is None else memory.sizes
        options |= {"readout_dropout": readout_dropout, "window": plain_window, "memory": sizes}
        rebuilt_by(lanet, self, {**options, **block})
        self.views = WindowViews(int(label_graph.num_nodes or 0), channels, **window)
        width = self.views.width + (0 if memory is None else memory.channels)
        self.memory = memory
        self.entity = entity_embedding(num_entities, width) if entity else None
        self.labels = LabelTransformer(width, label_graph, num_layers, hub=entity, **block)
        self.dropout = nn.Dropout(readout_dropout)
        self.readout = nn.Linear(width, channels, bias=False) if tied else nn.Linear(width, 1)
        self.tied = tied
        if memory is not None:
            for parameter in self.readout.parameters():
                nn.init.zeros_(parameter)

    def forward(
        self, data: Data, *, return_attention_weights: bool = False
    ) -> Tensor | LANETOutput:
        """Returns logits :math:`(B, L)`, or :class:`LANETOutput` with attention."""
        states, memory_logits = self.views.by_label(data), None
        if self.memory is not None:
            view, memory_logits = self.memory(data)
            states = torch.cat([states, view], dim=-1)
        if self.entity is not None:
            states = torch.cat([self.entity(data.entity).unsqueeze(1), states], dim=1)
        states, attention = self.labels(states, return_attention_weights=return_attention_weights)
        if self.entity is not None:
            states = states[:, 1:]
            # Since 2.14, PyTorch specialises an export to one sample if it multiplies a view.
            if is_exporting():
                states = states.clone(memory_format=torch.contiguous_format)
        logits = self._read(self.dropout(states))
        logits = logits if memory_logits is None else logits + memory_logits
        return LANETOutput(logits, attention) if return_attention_weights else logits

    def _read(self, states: Tensor) -> Tensor:
        out: Tensor = self.readout(states)
        label = self.views.label.weight
        return (out * label).sum(dim=-1) / label.size(1) ** 0.5 if self.tied else out.squeeze(-1)


def lanet(label_graph: Data, *, memory: dict[str, Any] | None, **options: Any) -> LANET:
    """Builds a network from the recorded options of a saved one, before weights are loaded."""
    num_labels = int(label_graph.num_nodes or 0)
    empty_memory = None if memory is None else PersonalMemory.of_sizes(num_labels, **memory)
    return LANET(label_graph, memory=empty_memory, **options)


register("builder", lanet)
