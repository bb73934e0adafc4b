"""Recurrent decoder with attention to the input."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch_geometric.utils import segment

from tg_mlc._options import check_count, check_share
from tg_mlc.ops.dropout import dropout
from tg_mlc.papers.decoders.beam_search import padded


class RecurrentState(NamedTuple):
    """State of a :class:`RecurrentDecoder` after some symbols."""

    mask: Tensor  #: ``[B, m]``, the components that every sample has.
    key: Tensor  #: ``[B, m, d]``, the keys of components.
    x: Tensor  #: ``[B, m, d]``, the components.
    hidden: Tensor  #: ``[layers, R, d]``


class RecurrentDecoder(nn.Module):
    r"""The decoder of the `"Maximizing Subset Accuracy with Recurrent Neural Networks in
    Multi-label Classification"
    <https://papers.nips.cc/paper/2017/hash/2eb5657d37f474e4c4cf01e4882b8962-Abstract.html>`_ paper:
    a GRU over the labels so far, with the attention of the `"Effective Approaches to
    Attention-based Neural Machine Translation" <https://arxiv.org/abs/1508.04025>`_ paper.

    .. math::
        \mathbf{h}_i = \textrm{GRU}(\mathbf{h}_{i-1}, \mathbf{e}_{y_i}), \qquad
        \mathbf{c}_i = \sum_j \textrm{softmax}_j (\mathbf{h}_i^{\top} \mathbf{W}^a \mathbf{z}_j /
        \sqrt{d}) \, \mathbf{z}_j, \qquad
        p(y_{i+1} \mid y_1, \ldots, y_i) = \textrm{softmax}(\mathbf{W}^o \tanh(\mathbf{W}^c
        [\mathbf{h}_i, \mathbf{c}_i]))

    The GRU starts from a linear map of the mean component. The result of its attention is not fed
    back, so that training computes all attention at once.

    Args:
        channels (int): Size :math:`d` of all states.
        num_labels (int): Number of labels :math:`L`.
        num_layers (int, optional): Number of layers of the GRU. (default: :obj:`1`)
        dropout (float, optional): Dropout between layers and before the readout.
            (default: :obj:`0.0`)

    Shapes:
        - **input:** component states :math:`(N, d)`, pointers :math:`(B + 1)`, symbols
          :math:`(B, n)`
        - **output:** logits of the symbol after each, :math:`(B, n, L + 1)`, the stop symbol last
    """

    def __init__(
        self, channels: int, num_labels: int, num_layers: int = 1, *, dropout: float = 0.0
    ) -> None:
        super().__init__()
        check_count("num_labels", num_labels)
        check_count("num_layers", num_layers)
        check_share("dropout", dropout)
        self.num_labels = num_labels
        self.dropout = dropout
        self.embedding = nn.Embedding(num_labels + 1, channels)
        self.lin_start = nn.Linear(channels, num_layers * channels)
        between_layers = dropout if num_layers > 1 else 0.0
        self.gru = nn.GRU(channels, channels, num_layers, dropout=between_layers)
        self.lin_key = nn.Linear(channels, channels, bias=False)
        self.lin_out = nn.Linear(2 * channels, channels)
        self.readout = nn.Linear(channels, num_labels + 1)

    def forward(self, x: Tensor, ptr: Tensor, symbols: Tensor) -> Tensor:
        """Returns the logits for component states, pointers, and symbols after the first stop."""
        state = self.start(x, ptr)
        out, _ = self.gru(self.embedding(symbols.t()), state.hidden)
        logits = self._read(out.transpose(0, 1).flatten(end_dim=1), state)
        return logits.view(*symbols.shape, -1)

    def start(self, x: Tensor, ptr: Tensor) -> RecurrentState:
        """The state before any symbol; see :func:`~tg_mlc.papers.decoders.beam_search`."""
        start = self.lin_start(segment(x, ptr, reduce="mean"))
        hidden = start.tanh().view(ptr.numel() - 1, self.gru.num_layers, -1).transpose(0, 1)
        dense, mask = padded(x, ptr)
        return RecurrentState(mask, self.lin_key(dense), dense, hidden.contiguous())

    def step(self, state: RecurrentState, symbols: Tensor) -> tuple[Tensor, RecurrentState]:
        """The logits of the next symbols, and the state after the given ones."""
        out, hidden = self.gru(self.embedding(symbols).unsqueeze(0), state.hidden)
        return self._read(out.squeeze(0), state), state._replace(hidden=hidden)

    def select(self, state: RecurrentState, rows: Tensor) -> RecurrentState:
        """The state of other rows."""
        return state._replace(hidden=state.hidden[:, rows])

    def _read(self, h: Tensor, state: RecurrentState) -> Tensor:
        query = h.view(state.x.size(0), -1, h.size(1))
        mask = state.mask.unsqueeze(1)
        context = scaled_dot_product_attention(query, state.key, state.x, attn_mask=mask)
        combined = self.lin_out(torch.cat([h, context.view_as(h)], dim=-1)).tanh()
        logits: Tensor = self.readout(dropout(combined, self.dropout, self.training))
        return logits
