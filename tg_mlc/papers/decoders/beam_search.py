"""Beam search for the likeliest label sets, the same for all decoders."""

from __future__ import annotations

import warnings
from typing import NamedTuple, Protocol, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from tg_mlc._options import check_count, check_number
from tg_mlc.nn._batch import to_dense

State = TypeVar("State")


class StepDecoder(Protocol[State]):
    """Decoder of one symbol after another, with a row of its state for every hypothesis.

    Rows are grouped by sample, and all samples have the same number of them: one at first.
    """

    num_labels: int

    def start(self, x: Tensor, ptr: Tensor) -> State:
        """The state before any symbol, from states :math:`(N, d)` and pointers :math:`(B + 1)`."""

    def step(self, state: State, symbols: Tensor) -> tuple[Tensor, State]:
        """The logits :math:`(R, L + 1)` after symbols :math:`(R)`, and the new state."""

    def select(self, state: State, rows: Tensor) -> State:
        """The state of other rows, each a continuation of a row of the same sample."""


def padded(x: Tensor, ptr: Tensor) -> tuple[Tensor, Tensor]:
    """Components padded with zeros, and their mask. A sample without any has one zero."""
    dense, mask = to_dense(x, ptr)
    mask[:, 0] = True
    return dense, mask


class Hypotheses(NamedTuple):
    """Output of :func:`beam_search`: for each sample the best label sequences, the best first."""

    sequences: Tensor  #: ``[B, K, n]``, labels and then stop symbols ``L``.
    labels: Tensor  #: ``[B, K, L]``, the labels of each sequence as a mask.
    log_probs: Tensor  #: ``[B, K]``, the log-probabilities of the sequences.
    peaks: Tensor  #: ``[B, K, L]``, the highest probability of each label at any position.
    weights: Tensor  #: ``[B, K]``, softmax weights of the sequences by rank.

    def scores(self) -> Tensor:
        r"""Scores of all labels in :math:`[0, 1]`, above 0.5 exactly in the best sequence.

        .. math::
            s_i = \frac{1}{2} [i \in \mathcal{Y}_1] + \frac{1}{2} \sum_{k=1}^{K} w_k \, p_{ki},
            \qquad
            w_k = \frac{\exp \textrm{rank}(\mathcal{Y}_k)}{\sum_l \exp \textrm{rank}(\mathcal{Y}_l)}

        with :math:`p_{ki}` the peaks. They rank the labels that are in all sequences or in none.

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
    r"""Searches for the likeliest label sequences, of all samples and hypotheses at once.

    .. math::
        \textrm{rank}(\mathcal{Y}) = \frac{\log p(\mathcal{Y})}{(|\mathcal{Y}| + 1)^{\alpha}}

    Where fewer than :math:`K` sequences are possible, the last ones are empty, of log-probability
    minus infinity. No label comes twice: the other symbols share the probability of the labels that
    a sequence has already. A sequence that has stopped stays in the beam as long as it is among the
    best. With a beam of one and no length penalty, the search is greedy.

    Args:
        decoder (StepDecoder): The decoder.
        x, ptr (torch.Tensor): The states of components, and the pointers of the samples.
        beam_size (int, optional): Number of hypotheses :math:`K`; the papers take 5.
            (default: :obj:`5`)
        length_penalty (float, optional): The exponent :math:`\alpha`: larger ones prefer longer
            sequences with a higher mean log-probability. (default: :obj:`0.0`)
        max_length (int, optional): The largest number of labels in a sequence, all if :obj:`None`.
            Warns if a best sequence would continue. (default: :obj:`None`)
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
        none = torch.zeros_like(excluded).unsqueeze(1)
        start = torch.full_like(none[..., :1], decoder.num_labels, dtype=torch.long)
        log_probs = none.new_zeros(none.shape[:2], dtype=torch.float)
        beam = _Beam(start, log_probs, none, ~excluded.unsqueeze(1), none.float())
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
                cut = f"Sequences were cut at 'max_length', {max_length} labels"
                warnings.warn(f"{cut}, where others were likelier than a stop", stacklevel=2)
    weights = beam.ranks(length_penalty).softmax(dim=1)
    return Hypotheses(beam.symbols[..., 1:], beam.labels, beam.log_probs, beam.peaks, weights)


class _Beam(NamedTuple):
    """The hypotheses of all samples after some steps, the best first."""

    symbols: Tensor  # [B, K, n + 1], from the first stop symbol
    log_probs: Tensor  # [B, K]
    labels: Tensor  # [B, K, L]
    open: Tensor  # [B, K, L], the labels that may follow, none after the end
    peaks: Tensor  # [B, K, L]

    def extend(self, logits: Tensor, beam_size: int, length_penalty: float) -> tuple[_Beam, Tensor]:
        """The best hypotheses that are one symbol longer, and the row that each continues."""
        num_samples, width, stop = self.open.shape
        step = self._log_probs_of(logits)
        totals = (self.log_probs.unsqueeze(-1) + step).flatten(start_dim=1)
        # The number of symbols of all continuations, with the stop.
        by_stop = self.labels.sum(dim=-1, keepdim=True) + 1
        lengths = torch.cat([(by_stop + 1).expand_as(self.labels), by_stop], dim=-1)
        ranks = totals / lengths.flatten(start_dim=1) ** length_penalty
        chosen = ranks.topk(min(beam_size, ranks.size(1))).indices
        symbol = (chosen % (stop + 1)).unsqueeze(-1)
        first = torch.arange(num_samples, device=chosen.device).unsqueeze(-1) * width
        rows = chosen // (stop + 1) + first
        log_probs = totals.gather(1, chosen)
        labels = F.pad(self.labels.flatten(end_dim=1)[rows], (0, 1))
        labels = labels.scatter(2, symbol, True)[..., :stop]
        # Sequences of probability zero fill a beam with too few others; they have no labels.
        impossible = log_probs.isneginf().unsqueeze(-1)
        symbols = torch.cat([self.symbols.flatten(end_dim=1)[rows], symbol], dim=-1)
        symbols = symbols.masked_fill(impossible, stop)
        labels = labels & ~impossible
        ended = (symbol == stop) | impossible
        still_open = self.open.flatten(end_dim=1)[rows] & ~labels & ~ended
        peaks = torch.maximum(self.peaks, step[..., :stop].exp()).flatten(end_dim=1)[rows]
        return _Beam(symbols, log_probs, labels, still_open, peaks), rows.flatten()

    def close(self, logits: Tensor, length_penalty: float) -> tuple[_Beam, Tensor]:
        """All hypotheses with a final stop, and for each sample whether the best would continue."""
        step = self._log_probs_of(logits)
        beam = self._replace(
            symbols=F.pad(self.symbols, (0, 1), value=self.labels.size(-1)),
            log_probs=self.log_probs + step[..., -1],
            open=torch.zeros_like(self.open),
        )
        order = beam.ranks(length_penalty).argsort(dim=1, descending=True, stable=True)
        goes_on = (step[..., :-1].amax(dim=-1) > step[..., -1]).gather(1, order)
        rows = order + torch.arange(len(order), device=order.device).unsqueeze(-1) * order.size(1)
        return _Beam(*(entry.flatten(end_dim=1)[rows] for entry in beam)), goes_on[:, 0]

    def ranks(self, length_penalty: float) -> Tensor:
        """The ranks of hypotheses that have ended, the best having the largest."""
        return self.log_probs / (self.labels.sum(dim=-1) + 1) ** length_penalty

    def _log_probs_of(self, logits: Tensor) -> Tensor:
        # A sequence that has ended is followed by stops of log-probability zero.
        closed = ~F.pad(self.open, (0, 1), value=True)
        return logits.float().view_as(closed).masked_fill(closed, -torch.inf).log_softmax(dim=-1)
