"""Decoders, which predict label sets as sequences, and beam search for the likeliest sequences."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.utils import segment

from tg_mlc._options import check_count, check_number, check_share
from tg_mlc.nn import AttentionConv, BlockOptions, FeatureToLabelConv, LabelToLabelConv
from tg_mlc.nn._batch import to_dense
from tg_mlc.ops import Blocks, Edges, Shared
from tg_mlc.ops.dropout import dropout

__all__ = ["AttentionDecoder", "Hypotheses", "RecurrentDecoder", "beam_search"]

State = TypeVar("State")


class StepDecoder(Protocol[State]):
    """Decoder of one symbol at a time. Its state has a row for every hypothesis.

    Rows are grouped by sample. All samples have the same number of rows, which is 1 at the start.
    """

    num_labels: int

    def start(self, x: Tensor, ptr: Tensor) -> State:
        """Returns the initial state, for components :math:`(N, d)` and pointers :math:`(B + 1)`."""

    def step(self, state: State, symbols: Tensor) -> tuple[Tensor, State]:
        """Returns the logits :math:`(R, L + 1)` after symbols :math:`(R)`, and the new state."""

    def select(self, state: State, rows: Tensor) -> State:
        """Returns the state of hypotheses that continue ``rows``, grouped by sample as before."""


def padded(x: Tensor, ptr: Tensor) -> tuple[Tensor, Tensor]:
    """Returns components padded with zeros, and their mask. Empty samples get a zero component."""
    dense, mask = to_dense(x, ptr)
    mask[:, 0] = True
    return dense, mask


class Hypotheses(NamedTuple):
    """Output of :func:`beam_search`: the best label sequences of each sample, the best first."""

    sequences: Tensor  #: ``[B, K, n]``, labels and then stop symbols ``L``.
    labels: Tensor  #: ``[B, K, L]``, the labels of each sequence as a mask.
    log_probs: Tensor  #: ``[B, K]``, the log-probabilities of the sequences.
    peaks: Tensor  #: ``[B, K, L]``, the highest probability of each label at any position.
    weights: Tensor  #: ``[B, K]``, the softmax of the ranks of sequences.

    def scores(self) -> Tensor:
        r"""Returns scores in :math:`[0, 1]`, above 0.5 exactly for labels of the best sequence.

        .. math::
            s_i = \frac{1}{2} [i \in \mathcal{Y}_1] + \frac{1}{2} \sum_{k=1}^{K} w_k \, p_{ki},
            \qquad
            w_k = \frac{\exp \textrm{rank}(\mathcal{Y}_k)}{\sum_l \exp \textrm{rank}(\mathcal{Y}_l)}

        The peaks :math:`p_{ki}` rank labels that are in all sequences or in none.

        Shapes:
            - **output:** scores :math:`(B, L)`
        """
        expected = (self.weights.unsqueeze(-1) * self.peaks).sum(dim=1).clamp(max=1.0)
        return torch.where(self.labels[:, 0], 0.5 + 0.5 * expected, 0.5 * expected)


def beam_search(
    decoder: StepDecoder[State],
    x: Tensor,
    ptr: Tensor,
    *,
    beam_size: int = 5,
    length_penalty: float = 0.0,
    max_length: int | None = None,
    excluded: Tensor | None = None,
) -> Hypotheses:
    r"""Searches for the likeliest label sequences of all samples at once.

    .. math::
        \textrm{rank}(\mathcal{Y}) = \frac{\log p(\mathcal{Y})}{(|\mathcal{Y}| + 1)^{\alpha}}

    If fewer than :math:`K` sequences are possible, the last sequences are empty and have a
    log-probability of minus infinity. No label repeats: the softmax excludes labels that a sequence
    already has. A sequence that has stopped stays in the beam while it is among the best. With a
    beam of one and no length penalty, the search is greedy.

    Args:
        decoder (StepDecoder): The decoder.
        x, ptr (torch.Tensor): The states of components, and the pointers of the samples.
        beam_size (int, optional): Number of hypotheses :math:`K`; the papers take 5.
            (default: :obj:`5`)
        length_penalty (float, optional): The exponent :math:`\alpha`. Larger exponents prefer
            longer sequences. (default: :obj:`0.0`)
        max_length (int, optional): The maximum number of labels in a sequence, no limit if
            :obj:`None`. Warns if it cuts a best sequence. (default: :obj:`None`)
        excluded (torch.Tensor, optional): A mask of excluded labels, :math:`(B, L)`.
            (default: :obj:`None`)

    Shapes:
        - **input:** component states :math:`(N, d)`, pointers :math:`(B + 1)`
        - **output:** :class:`Hypotheses` of :math:`B` samples
    """
    check_count("beam_size", beam_size)
    check_number("length_penalty", length_penalty)
    max_length = decoder.num_labels if max_length is None else max_length
    check_count("max_length", max_length)
    with torch.no_grad():
        if excluded is None:
            shape = (ptr.numel() - 1, decoder.num_labels)
            excluded = torch.zeros(shape, dtype=torch.bool, device=x.device)
        no_labels = torch.zeros_like(excluded).unsqueeze(1)
        start = torch.full_like(no_labels[..., :1], decoder.num_labels, dtype=torch.long)
        log_probs = no_labels.new_zeros(no_labels.shape[:2], dtype=torch.float)
        beam = _Beam(start, log_probs, no_labels, ~excluded.unsqueeze(1), no_labels.float())
        state = decoder.start(x, ptr)
        for _ in range(min(max_length, decoder.num_labels)):
            logits, state = decoder.step(state, beam.symbols[..., -1].flatten())
            beam, rows = beam.extend(logits, beam_size, length_penalty)
            if not beam.open.any():
                break
            state = decoder.select(state, rows)
        else:
            logits, _ = decoder.step(state, beam.symbols[..., -1].flatten())
            beam, is_cut = beam.close(logits, length_penalty)
            if is_cut.any():
                message = f"Sequences were cut at max_length={max_length}"
                reason = "although a label was likelier than a stop"
                warnings.warn(f"{message}, {reason}", stacklevel=2)
    weights = beam.ranks(length_penalty).softmax(dim=1)
    return Hypotheses(beam.symbols[..., 1:], beam.labels, beam.log_probs, beam.peaks, weights)


class _Beam(NamedTuple):
    """The hypotheses of all samples after some steps, in descending order of rank."""

    symbols: Tensor  # [B, K, n + 1], starting with a stop symbol
    log_probs: Tensor  # [B, K]
    labels: Tensor  # [B, K, L]
    open: Tensor  # [B, K, L], the labels that may follow; none after a final stop
    peaks: Tensor  # [B, K, L]

    def extend(self, logits: Tensor, beam_size: int, length_penalty: float) -> tuple[_Beam, Tensor]:
        """Returns the best hypotheses with one more symbol, and the rows that they continue."""
        num_samples, width, stop = self.open.shape
        next_log_probs = self._next_log_probs(logits)
        totals = (self.log_probs.unsqueeze(-1) + next_log_probs).flatten(start_dim=1)
        # The number of symbols of each continuation, including the stop.
        stopped_lengths = self.labels.sum(dim=-1, keepdim=True) + 1
        lengths = torch.cat([(stopped_lengths + 1).expand_as(self.labels), stopped_lengths], dim=-1)
        ranks = totals / lengths.flatten(start_dim=1) ** length_penalty
        best = ranks.topk(min(beam_size, ranks.size(1))).indices
        symbol = (best % (stop + 1)).unsqueeze(-1)
        first_rows = torch.arange(num_samples, device=best.device).unsqueeze(-1) * width
        rows = best // (stop + 1) + first_rows
        log_probs = totals.gather(1, best)
        labels = F.pad(self.labels.flatten(end_dim=1)[rows], (0, 1))
        labels = labels.scatter(2, symbol, True)[..., :stop]
        # If a beam lacks possible sequences, impossible ones fill it, with their labels cleared.
        impossible = log_probs.isneginf().unsqueeze(-1)
        symbols = torch.cat([self.symbols.flatten(end_dim=1)[rows], symbol], dim=-1)
        symbols = symbols.masked_fill(impossible, stop)
        labels = labels & ~impossible
        ended = (symbol == stop) | impossible
        still_open = self.open.flatten(end_dim=1)[rows] & ~labels & ~ended
        peaks = torch.maximum(self.peaks, next_log_probs[..., :stop].exp()).flatten(end_dim=1)[rows]
        return _Beam(symbols, log_probs, labels, still_open, peaks), rows.flatten()

    def close(self, logits: Tensor, length_penalty: float) -> tuple[_Beam, Tensor]:
        """Appends a stop to all hypotheses. Returns a mask of samples whose best would continue."""
        log_probs = self._next_log_probs(logits)
        beam = self._replace(
            symbols=F.pad(self.symbols, (0, 1), value=self.labels.size(-1)),
            log_probs=self.log_probs + log_probs[..., -1],
            open=torch.zeros_like(self.open),
        )
        order = beam.ranks(length_penalty).argsort(dim=1, descending=True, stable=True)
        continues = (log_probs[..., :-1].amax(dim=-1) > log_probs[..., -1]).gather(1, order)
        rows = order + torch.arange(len(order), device=order.device).unsqueeze(-1) * order.size(1)
        return _Beam(*(tensor.flatten(end_dim=1)[rows] for tensor in beam)), continues[:, 0]

    def ranks(self, length_penalty: float) -> Tensor:
        """Returns the ranks of hypotheses that have ended; higher is better."""
        return self.log_probs / (self.labels.sum(dim=-1) + 1) ** length_penalty

    def _next_log_probs(self, logits: Tensor) -> Tensor:
        # A sequence that has ended is followed by stops of log-probability zero.
        closed = ~F.pad(self.open, (0, 1), value=True)
        return logits.float().view_as(closed).masked_fill(closed, -torch.inf).log_softmax(dim=-1)


class AttentionState(NamedTuple):
    """State of an :class:`AttentionDecoder` after some symbols."""

    mask: Tensor  #: ``[B, m]``, a mask of components that are not padding.
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

    A symbol starts from its embedding, without a position, because the labels so far are a set.
    Training computes all positions at once. A step of a search computes the states of the last
    symbols only, and caches keys and values of earlier symbols.

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
        - **output:** logits :math:`(B, n, L + 1)` of each next symbol, with the stop symbol last
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
        causal = Shared(Edges(torch.stack([source, target]), length, length), num_samples)
        cross = Blocks(torch.arange(num_samples + 1, device=x.device) * length, ptr)
        u = self.embedding(symbols).flatten(end_dim=1)
        for xy, yy in self._steps():
            u = yy(xy((x, u), cross), causal)
        logits: Tensor = self.readout(u)
        return logits.view(num_samples, length, -1)

    def start(self, x: Tensor, ptr: Tensor) -> AttentionState:
        """Returns the state before any symbol, for :func:`~tg_mlc.papers.decoders.beam_search`."""
        dense, mask = padded(x, ptr)
        pairs = [xy.project(dense.flatten(end_dim=1)) for xy, _ in self._steps()]
        components = []
        for pair in pairs:
            key, value = (tensor.view(*mask.shape, *tensor.shape[1:]) for tensor in pair)
            components.append((key, value))
        labels = [(key[:, :0], value[:, :0]) for key, value in components]
        return AttentionState(mask, components, labels)

    def step(self, state: AttentionState, symbols: Tensor) -> tuple[Tensor, AttentionState]:
        """Returns the logits of the next symbols, and the state after ``symbols``."""
        u, labels = self.embedding(symbols), []
        for t, (xy, yy) in enumerate(self._steps()):
            u = xy.attend(u, *state.components[t], state.mask)
            pairs = zip(state.labels[t], yy.project(u), strict=True)
            key, value = (torch.cat([past, new[:, None]], dim=1) for past, new in pairs)
            labels.append((key, value))
            u = yy.attend(u, key, value)
        return self.readout(u), state._replace(labels=labels)

    def select(self, state: AttentionState, rows: Tensor) -> AttentionState:
        """Returns the state of hypotheses that continue ``rows``."""
        return state._replace(labels=[(key[rows], value[rows]) for key, value in state.labels])

    def _steps(self) -> list[tuple[AttentionConv, AttentionConv]]:
        pairs: Any = zip(self.feature_to_label, self.label_to_label, strict=True)
        return list(pairs)


class RecurrentState(NamedTuple):
    """State of a :class:`RecurrentDecoder` after some symbols."""

    mask: Tensor  #: ``[B, m]``, a mask of components that are not padding.
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

    The GRU starts from the tanh of a linear map of the mean component. The context of the attention
    is not fed back, so training computes the attention of all positions at once.

    Args:
        channels (int): Size :math:`d` of all states.
        num_labels (int): Number of labels :math:`L`.
        num_layers (int, optional): Number of layers of the GRU. (default: :obj:`1`)
        dropout (float, optional): Dropout between layers and before the readout.
            (default: :obj:`0.0`)

    Shapes:
        - **input:** component states :math:`(N, d)`, pointers :math:`(B + 1)`, symbols
          :math:`(B, n)`
        - **output:** logits :math:`(B, n, L + 1)` of each next symbol, with the stop symbol last
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
        """Returns the state before any symbol, for :func:`~tg_mlc.papers.decoders.beam_search`."""
        start = self.lin_start(segment(x, ptr, reduce="mean"))
        hidden = start.tanh().view(ptr.numel() - 1, self.gru.num_layers, -1).transpose(0, 1)
        dense, mask = padded(x, ptr)
        return RecurrentState(mask, self.lin_key(dense), dense, hidden.contiguous())

    def step(self, state: RecurrentState, symbols: Tensor) -> tuple[Tensor, RecurrentState]:
        """Returns the logits of the next symbols, and the state after ``symbols``."""
        out, hidden = self.gru(self.embedding(symbols).unsqueeze(0), state.hidden)
        return self._read(out.squeeze(0), state), state._replace(hidden=hidden)

    def select(self, state: RecurrentState, rows: Tensor) -> RecurrentState:
        """Returns the state of hypotheses that continue ``rows``."""
        return state._replace(hidden=state.hidden[:, rows])

    def _read(self, h: Tensor, state: RecurrentState) -> Tensor:
        query = h.view(state.x.size(0), -1, h.size(1))
        mask = state.mask.unsqueeze(1)
        context = F.scaled_dot_product_attention(query, state.key, state.x, attn_mask=mask)
        combined = self.lin_out(torch.cat([h, context.view_as(h)], dim=-1)).tanh()
        return cast(Tensor, self.readout(dropout(combined, self.dropout, self.training)))
