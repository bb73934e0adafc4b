"""Label message passing network as the authors' released code computes it, slips included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn.resolver import aggregation_resolver
from torch_geometric.typing import Adj, OptTensor

from tg_mlc.models.lamp import Encoder, LaMP, LaMPOutput
from tg_mlc.nn import AttentionConv, BlockOptions, LabelReadout, LabelToLabelConv
from tg_mlc.nn.feature import FeatureAttention
from tg_mlc.ops import Pattern

if TYPE_CHECKING:
    from typing_extensions import Unpack


class DiscardingConv(AttentionConv):
    r"""A block whose attention is computed only if asked for, and then thrown away: its MLP is fed with its input.

    .. math::
        \mathbf{v}_i^{\prime} = \mathbf{v}_i + \textrm{MLP}(\mathbf{v}_i)

    With :attr:`discards` set to :obj:`False`, it is an :class:`~tg_mlc.nn.AttentionConv`.

    Args:
        channels (int): Size :math:`d` of a state.
        heads (int, optional): Number of attention heads, a divisor of :obj:`channels`. (default: :obj:`4`)
        **kwargs (optional): Additional arguments of :class:`~tg_mlc.nn.AttentionConv`.

    Shapes:
        - **input:** node states :math:`(N, d)`, edges :math:`(2, |\mathcal{E}|)`
        - **output:** node states :math:`(N, d)`

    Raises:
        ValueError: If a size or an option is refused, as in :class:`~tg_mlc.nn.AttentionConv`.
    """

    discards = True

    def forward(
        self,
        x: Any,
        edge_index: Adj | Pattern,
        edge_attr: OptTensor = None,
        *,
        num_copies: int = 1,
        return_attention_weights: bool | None = None,
    ) -> Any:
        """Runs the forward pass of the module, with the arguments of :class:`~tg_mlc.nn.AttentionConv`."""
        if self.discards and not return_attention_weights:
            return self.feed_forward(x)
        out = super().forward(
            x, edge_index, edge_attr, num_copies=num_copies, return_attention_weights=return_attention_weights
        )
        return (self.feed_forward(x), out[1]) if self.discards else out


class LabelMLP(LabelToLabelConv):
    r"""What is left of the block among labels without its attention: labels never meet.

    .. math::
        \mathbf{u}_i^{\prime} = \mathbf{u}_i + \textrm{MLP}(\mathbf{u}_i)

    Args:
        channels (int): Size :math:`d` of a label state.
        heads (int, optional): As in :class:`~tg_mlc.nn.LabelToLabelConv`, without effect. (default: :obj:`4`)
        **kwargs (optional): Additional arguments of :class:`~tg_mlc.nn.AttentionConv`.

    Shapes:
        - **input:** label states :math:`(B \cdot L, d)`
        - **output:** label states :math:`(B \cdot L, d)`

    Raises:
        ValueError: If a size or an option is refused, as in :class:`~tg_mlc.nn.AttentionConv`.
    """

    def __init__(self, channels: int, heads: int = 4, **kwargs: Any) -> None:
        super().__init__(channels, heads, **kwargs)
        del self.lin_query, self.lin_key, self.lin_value, self.lin_out, self.attention_norm

    def forward(
        self,
        x: Any,
        edge_index: Adj | Pattern,
        edge_attr: OptTensor = None,
        *,
        num_copies: int = 1,
        return_attention_weights: bool | None = None,
    ) -> Any:
        """Runs the forward pass of the module, with the arguments of :class:`~tg_mlc.nn.AttentionConv`."""
        return (self.feed_forward(x), None) if return_attention_weights else self.feed_forward(x)


class ReleasedLaMP(LaMP):
    r"""The model that the authors' `released code <https://github.com/QData/LaMP>`_ computes for the `"Neural Message
    Passing for Multi-Label Classification" <https://arxiv.org/abs/1904.08049>`_ paper.

    Its feature message passing throws the attention away, and its intermediate readouts send no gradient to the
    readout's weight and leave out its bias.

    Args:
        encoder (torch.nn.Module): As in :class:`~tg_mlc.models.LaMP`.
        label_graph (LabelGraph): The label graph.
        num_feature_layers (int, optional): Number of feature message passing blocks. (default: :obj:`2`)
        label_attention (bool, optional): If set to :obj:`False`, there is no attention among labels but only its MLP,
            and a step hands out one state, as with the flag :obj:`-no_dec_self_att`. (default: :obj:`True`)
        readout_bias (bool, optional): If set to :obj:`True`, the readout has a bias. (default: :obj:`True`)
        pool (str or Aggregation, optional): Aggregates the components of a sample into one, *e.g.* :obj:`"mean"`,
            before labels attend to it. (default: :obj:`None`)
        label_kwargs (dict, optional): Options of the blocks among labels that differ from :obj:`block`.
            (default: :obj:`None`)
        num_steps (int, optional): Number of label message passing steps :math:`T`. (default: :obj:`2`)
        **block (optional): As in :class:`~tg_mlc.models.LaMP`.

    Shapes:
        - **input:** a batch of :math:`B` samples
        - **output:** logits :math:`(B, L)`

    Raises:
        ValueError: As in :class:`~tg_mlc.models.LaMP`.
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
        super().__init__(
            encoder,
            label_graph,
            num_steps=num_steps,
            num_feature_layers=num_feature_layers,
            label_kwargs=label_kwargs,
            **block,
        )
        channels, edge_dim = cast(Encoder, encoder).channels, cast(Encoder, encoder).edge_dim
        if self.features is not None:
            layers = range(num_feature_layers)
            self.features.convs = nn.ModuleList(DiscardingConv(channels, edge_dim=edge_dim, **block) for _ in layers)
        if not label_attention:
            among_labels: BlockOptions = {**block, **(label_kwargs or {})}
            self.labels.label_to_label = nn.ModuleList(LabelMLP(channels, **among_labels) for _ in range(num_steps))
        self.label_attention = label_attention
        self.readout = LabelReadout(self.labels, bias=readout_bias)
        self.pool = None if pool is None else aggregation_resolver(pool)

    def forward(
        self, data: Data, *, return_intermediate: bool = False, return_attention_weights: bool = False
    ) -> Tensor | LaMPOutput:
        """Runs the forward pass of the module, with the arguments of :class:`~tg_mlc.models.LaMP`."""
        output = super().forward(
            data, return_intermediate=return_intermediate, return_attention_weights=return_attention_weights
        )
        if isinstance(output, LaMPOutput) and not self.label_attention:
            return output._replace(intermediate=output.intermediate[1::2])
        return output

    def _read_intermediate(self, u: Tensor) -> Tensor:
        return (u * self.readout.weight.detach()).sum(dim=-1)

    def _encode(
        self, data: Data, return_attention_weights: bool
    ) -> tuple[Tensor, Tensor, Tensor | None, Sequence[FeatureAttention]]:
        x, ptr, to_label, attention = super()._encode(data, return_attention_weights)
        if self.pool is not None:
            x, ptr, to_label = self.pool(x, ptr=ptr), torch.arange(ptr.numel(), device=ptr.device), None
        return x, ptr, to_label, attention
