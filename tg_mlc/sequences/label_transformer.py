"""Attention among the labels of each sample, and a node that speaks with all of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from typing_extensions import Unpack

from tg_mlc._options import check_count
from tg_mlc.nn import BlockOptions, LabelToLabelConv
from tg_mlc.nn._graph_summary import check_summary, summary_of
from tg_mlc.ops import Edges, Shared
from tg_mlc.ops.adjacency import adjacency_of, to_list


class LayerAttention(NamedTuple):
    """The attention of one layer, as :func:`~tg_mlc.graphs.learned` takes it."""

    label_to_label: tuple[Shared, Tensor]  #: the edges of the label graph, and their weights ``[B, |E|, heads]``


class LabelTransformer(nn.Module):
    r"""Layers of :class:`~tg_mlc.nn.LabelToLabelConv` among states of labels, as the `"Label Attention Network for
    Sequential Multi-Label Classification" <https://arxiv.org/abs/2303.00280>`_ paper stacks Transformer encoder layers.

    Args:
        channels (int): Size :math:`d` of a state.
        label_graph (LabelGraph): The label graph, complete in the paper. State dicts hold a summary of it, and load
            into a model with the same one.
        num_layers (int, optional): Number of layers. (default: :obj:`2`)
        hub (bool, optional): If set to :obj:`True`, a first node more attends to itself and all labels, and all labels
            to it. (default: :obj:`True`)
        **block (optional): Options of the blocks (see :class:`~tg_mlc.nn.AttentionConv`).

    Shapes:
        - **input:** states :math:`(B, N, d)` of :math:`N = L + 1` nodes, or :math:`L` without a hub
        - **output:** states :math:`(B, N, d)`, and the attention of every layer if asked for

    Raises:
        ValueError: If :obj:`num_layers` is less than 1, or the blocks refuse a size or an option.
    """

    def __init__(
        self, channels: int, label_graph: Data, num_layers: int = 2, *, hub: bool = True, **block: Unpack[BlockOptions]
    ) -> None:
        super().__init__()
        check_count("num_layers", num_layers)
        self.label_graph = label_graph
        self.num_labels = int(label_graph.num_nodes or 0)
        self.hub = hub
        self.convs = nn.ModuleList(LabelToLabelConv(channels, **block) for _ in range(num_layers))
        self._edges = self._place_edges(torch.device("cpu"))

    def _place_edges(self, device: torch.device) -> Edges:
        edge_index = to_list(adjacency_of(self.label_graph)).to(device)
        if self.hub:
            edge_index = torch.cat([edge_index + 1, _hub_edges(self.num_labels, device)], dim=1)
        num_nodes = self.num_labels + int(self.hub)
        return Edges(edge_index, num_nodes, num_nodes).prepare()

    def _apply(self, fn: Any, recurse: bool = True) -> LabelTransformer:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        device = next(self.parameters()).device
        if self._edges.device != device:
            self._edges = self._place_edges(device)
        return self

    def get_extra_state(self) -> Tensor:
        """A summary of the label graph, which weights do not tell."""
        return summary_of(self.label_graph)

    def set_extra_state(self, state: Tensor) -> None:
        """Compares a summary with that of the label graph."""
        check_summary(state, self.get_extra_state())

    def forward(self, x: Tensor, *, return_attention_weights: bool = False) -> tuple[Tensor, list[LayerAttention]]:
        r"""Runs the forward pass of the module.

        Args:
            x (torch.Tensor): The states, that of the hub before those of the labels.
            return_attention_weights (bool, optional): If set to :obj:`True`, returns the attention of every layer
                too. (default: :obj:`False`)
        """
        pattern, u, attention = Shared(self._edges, x.size(0)), x.flatten(end_dim=1), []
        for conv in self.convs:
            u = conv(u, pattern, return_attention_weights=return_attention_weights)
            if return_attention_weights:
                u, (_, weights) = u
                attention.append(self._among_labels(weights))
        return u.view_as(x), attention

    def _among_labels(self, weights: Tensor) -> LayerAttention:
        edge_index = to_list(adjacency_of(self.label_graph)).to(weights.device)
        edges = Edges(edge_index, self.num_labels, self.num_labels)
        return LayerAttention((Shared(edges, weights.size(0)), weights[:, : edge_index.size(1)]))


def _hub_edges(num_labels: int, device: torch.device) -> Tensor:
    """Edges in both directions between node 0 and all others, and its own loop."""
    others = torch.arange(1, num_labels + 1, device=device)
    hub, loop = torch.zeros_like(others), others.new_zeros(2, 1)
    return torch.cat([torch.stack([hub, others]), torch.stack([others, hub]), loop], dim=1)
