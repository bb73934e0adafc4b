"""Decoder by message passing: each label attends to the input and to the labels before it."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tg_mlc._options import check_count
from tg_mlc.nn import AttentionConv, BlockOptions, FeatureToLabelConv, LabelToLabelConv
from tg_mlc.ops import Blocks, Edges, Shared
from tg_mlc.papers.decoders.beam_search import padded


class AttentionState(NamedTuple):
    """State of an :class:`AttentionDecoder` after some symbols."""

    mask: Tensor  #: ``[B, m]``, the components that every sample has.
    #: For each step the keys and values of components, each ``[B, m, heads, C]``.
    components: list[tuple[Tensor, Tensor]]
    #: For each step the keys and values of the symbols so far, each ``[R, n, heads, C]``.
    labels: list[tuple[Tensor, Tensor]]


class AttentionDecoder(nn.Module):
    r"""The autoregressive decoder from the `"Neural Message Passing for Multi-Label Classification"
    <https://openreview.net/forum?id=r1xYr3C5t7>`_ paper: label message passing along the sequence
    of labels so far.

    .. math::
        \mathbf{u}^{t.1}_i = \textrm{xy}^t \big( \mathbf{u}^{t-1}_i, \{ \mathbf{z}_j \} \big),
        \qquad
        \mathbf{u}^{t.2}_i = \textrm{yy}^t \big( \mathbf{u}^{t.1}_i,
        \{ \mathbf{u}^{t.1}_j : j \leq i \} \big), \qquad
        p(y_{i+1} \mid y_1, \ldots, y_i) = \textrm{softmax} (\mathbf{W}^o \mathbf{u}^{T.2}_i +
        \mathbf{b})

    A symbol starts from its embedding alone, without its position, as the labels so far are a set.
    Training computes all positions at once; a step of a search computes the states of the last
    symbols only, from stored keys and values of the others.

    Args:
        channels (int): Size :math:`d` of all states.
        num_labels (int): Number of labels :math:`L`.
        num_steps (int, optional): Number of steps :math:`T`. (default: :obj:`3`)
        heads (int, optional): Number of attention heads. (default: :obj:`4`)
        mlp_channels (int, optional): Hidden size of the MLPs, :math:`d` if :obj:`None`.
            (default: :obj:`None`)
        dropout (float, optional): Dropout of the blocks. (default: :obj:`0.0`)

    Shapes:
        - **input:** component states :math:`(N, d)`, pointers :math:`(B + 1)`, symbols
          :math:`(B, n)`
        - **output:** logits of the symbol after each, :math:`(B, n, L + 1)`, the stop symbol last
    """

    def __init__(
        self,
        channels: int,
        num_labels: int,
        num_steps: int = 3,
        *,
        heads: int = 4,
        mlp_channels: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_count("num_labels", num_labels)
        check_count("num_steps", num_steps)
        self.num_labels = num_labels
        self.embedding = nn.Embedding(num_labels + 1, channels)
        block: BlockOptions = {"heads": heads, "mlp_channels": mlp_channels, "dropout": dropout}
        xy = (FeatureToLabelConv(channels, **block) for _ in range(num_steps))
        yy = (LabelToLabelConv(channels, **block) for _ in range(num_steps))
        self.feature_to_label, self.label_to_label = nn.ModuleList(xy), nn.ModuleList(yy)
        self.readout = nn.Linear(channels, num_labels + 1)

    def forward(self, x: Tensor, ptr: Tensor, symbols: Tensor) -> Tensor:
        """Returns the logits for component states, pointers, and symbols after the first stop."""
        num_samples, length = symbols.shape
        target, source = torch.tril_indices(length, length, device=x.device)
        before = Shared(Edges(torch.stack([source, target]), length, length), num_samples)
        across = Blocks(torch.arange(num_samples + 1, device=x.device) * length, ptr)
        u = self.embedding(symbols).flatten(end_dim=1)
        for xy, yy in self._steps():
            u = yy(xy((x, u), across), before)
        logits: Tensor = self.readout(u)
        return logits.view(num_samples, length, -1)

    def start(self, x: Tensor, ptr: Tensor) -> AttentionState:
        """The state before any symbol; see :func:`~tg_mlc.papers.decoders.beam_search`."""
        dense, mask = padded(x, ptr)
        pairs = [xy.project(dense.flatten(end_dim=1)) for xy, _ in self._steps()]
        components = []
        for pair in pairs:
            key, value = (tensor.view(*mask.shape, *tensor.shape[1:]) for tensor in pair)
            components.append((key, value))
        labels = [(key[:, :0], value[:, :0]) for key, value in components]
        return AttentionState(mask, components, labels)

    def step(self, state: AttentionState, symbols: Tensor) -> tuple[Tensor, AttentionState]:
        """The logits of the next symbols, and the state after the given ones."""
        u, labels = self.embedding(symbols), []
        for t, (xy, yy) in enumerate(self._steps()):
            u = xy.attend(u, *state.components[t], state.mask)
            pairs = zip(state.labels[t], yy.project(u), strict=True)
            key, value = (torch.cat([past, new[:, None]], dim=1) for past, new in pairs)
            labels.append((key, value))
            u = yy.attend(u, key, value)
        return self.readout(u), state._replace(labels=labels)

    def select(self, state: AttentionState, rows: Tensor) -> AttentionState:
        """The state of other rows."""
        return state._replace(labels=[(key[rows], value[rows]) for key, value in state.labels])

    def _steps(self) -> list[tuple[AttentionConv, AttentionConv]]:
        pairs: Any = zip(self.feature_to_label, self.label_to_label, strict=True)
        return list(pairs)
