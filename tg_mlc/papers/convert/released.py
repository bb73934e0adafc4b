"""Label message passing network of the authors' released code, mistakes included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn.resolver import aggregation_resolver
from typing_extensions import Unpack

from tg_mlc.models import LaMP
from tg_mlc.models.lamp import Encoder
from tg_mlc.nn import AttentionConv, BlockOptions, LabelHead, LabelToLabelConv
from tg_mlc.nn.feature import FeatureAttention


class _DiscardingConv(AttentionConv):
    """Block that discards its attention, and computes it only on request.

    Its MLP takes the block's input.
    """

    discards = True  #: If False, this is an ordinary block.

    def forward(
        self, x: Any, *args: Any, return_attention_weights: bool | None = None, **kwargs: Any
    ) -> Any:
        if self.discards and not return_attention_weights:
            return self.feed_forward(x)
        out = super().forward(x, *args, return_attention_weights=return_attention_weights, **kwargs)
        return (self.feed_forward(x), out[1]) if self.discards else out


class _LabelMLP(LabelToLabelConv):
    """Block among labels without attention: labels never meet."""

    def __init__(self, channels: int, **block: Unpack[BlockOptions]) -> None:
        super().__init__(channels, **block)
        del self.lin_query, self.lin_key, self.lin_value, self.lin_out, self.attention_norm

    def forward(
        self, x: Any, *args: Any, return_attention_weights: bool | None = None, **kwargs: Any
    ) -> Any:
        return (self.feed_forward(x), None) if return_attention_weights else self.feed_forward(x)


class ReleasedLaMP(LaMP):
    r"""The model of the authors' `released code <https://github.com/QData/LaMP>`_ for the `"Neural
    Message Passing for Multi-Label Classification" <https://arxiv.org/abs/1904.08049>`_ paper.

    Its feature message passing discards the attention. Its intermediate readouts send no gradient
    to the readout's weight and have no bias.

    Args:
        encoder, label_graph, num_steps, num_feature_layers, label_kwargs: As in
            :class:`~tg_mlc.models.LaMP`.
        label_attention (bool, optional): If set to :obj:`False`, the blocks among labels consist of
            their MLP, and a step returns one state, as with the flag :obj:`-no_dec_self_att`.
            (default: :obj:`True`)
        readout_bias (bool, optional): If set to :obj:`True`, the readout has a bias.
            (default: :obj:`True`)
        pool (str or Aggregation, optional): Aggregates the components of a sample into one, *e.g.*
            :obj:`"mean"`, before labels attend to it. (default: :obj:`None`)
        **block (optional): Options of all blocks, as in :class:`~tg_mlc.models.LaMP`.

    Shapes:
        - **input:** a batch of :math:`B` samples
        - **output:** logits :math:`(B, L)`
    """

    def __init__(
        self,
        encoder: nn.Module,
        label_graph: Data,
        *,
        num_steps: int = 2,
        num_feature_layers: int = 2,
        label_attention: bool = True,
        readout_bias: bool = True,
        pool: str | nn.Module | None = None,
        label_kwargs: BlockOptions | None = None,
        **block: Unpack[BlockOptions],
    ) -> None:
        block = {"dropout": 0.1, **block}
        steps: Any = {"num_steps": num_steps, "num_feature_layers": num_feature_layers}
        super().__init__(encoder, label_graph, **steps, label_kwargs=label_kwargs, **block)
        channels, edge_dim = self.labels.channels, cast(Encoder, encoder).edge_dim
        if self.features is not None:
            layers = range(num_feature_layers)
            self.features.convs = nn.ModuleList(
                _DiscardingConv(channels, edge_dim=edge_dim, **block) for _ in layers
            )
        if not label_attention:
            among_labels: BlockOptions = {**block, **(label_kwargs or {})}
            blocks = (_LabelMLP(channels, **among_labels) for _ in range(num_steps))
            self.labels.label_to_label = nn.ModuleList(blocks)
        self.label_attention = label_attention
        self.readout = LabelHead(self.labels, bias=readout_bias)
        self.pool = None if pool is None else aggregation_resolver(pool)

    def _read(self, intermediate: list[Tensor]) -> list[Tensor]:
        states = intermediate if self.label_attention else intermediate[1::2]
        return [(u * self.readout.weight.detach()).sum(dim=-1) for u in states]

    def _encode(
        self, data: Data, return_attention_weights: bool
    ) -> tuple[Tensor, Tensor, Tensor | None, Sequence[FeatureAttention]]:
        x, ptr, to_label, attention = super()._encode(data, return_attention_weights)
        if self.pool is not None:
            x, to_label = self.pool(x, ptr=ptr), None
            ptr = torch.arange(ptr.numel(), device=ptr.device)
        return x, ptr, to_label, attention
