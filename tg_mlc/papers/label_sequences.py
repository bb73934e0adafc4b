"""Label sets as sequences of symbols, the labels :math:`0, ..., L - 1` and a stop that also begins every sequence: an
encoder with a decoder that gives one label after another, and the objective that trains it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from tg_mlc._options import check_choice, check_count, check_number
from tg_mlc.data import MultiLabelDataset
from tg_mlc.losses import sequence_loss
from tg_mlc.nn.encoders.components import Components
from tg_mlc.nn.given import given_in
from tg_mlc.papers.decoders import Hypotheses, beam_search
from tg_mlc.papers.decoders.beam_search import StepDecoder
from tg_mlc.training import Objective

#: An order of labels, as :func:`label_ranks` takes it.
LabelOrder = Literal["frequency", "reverse", "given", "random"]


class LabelSequenceModel(nn.Module):
    r"""A model of label sets as sequences that end with a stop symbol, trained by
    :class:`~tg_mlc.papers.LabelSequenceObjective`.

    .. math::
        p(\mathcal{Y} \mid \mathbf{x}) = \prod_{i=1}^{|\mathcal{Y}| + 1} p(y_i \mid y_1, \ldots, y_{i-1}, \mathbf{x})

    No label comes twice, so that these probabilities of all sequences without repetitions sum to one.

    Args:
        encoder (torch.nn.Module): Turns a batch into components.
        decoder (torch.nn.Module): Gives the logits of the next symbols, *e.g.*
            :class:`~tg_mlc.papers.decoders.RecurrentDecoder`.
        ranks (torch.Tensor): The place of every label in the order of training sequences (see :func:`label_ranks`).
        max_length (int, optional): The most labels of a sample in a search, all if :obj:`None`. (default: :obj:`None`)

    Shapes:
        - **input:** a batch of :math:`B` samples with labels :obj:`y`, :math:`(B, L)`: 0, 1, or NaN for unknown
        - **output:** log-probabilities :math:`(B, n, L + 1)` of symbols, and the sequences :math:`(B, n)`
    """

    ranks: Tensor
    max_length: Tensor

    def __init__(
        self, encoder: nn.Module, decoder: nn.Module, ranks: Tensor, max_length: int | None = None
    ) -> None:
        super().__init__()
        num_labels = cast(int, decoder.num_labels)
        if list(ranks.shape) != [num_labels]:
            raise ValueError(f"Expected 'ranks' of shape [{num_labels}] (got {list(ranks.shape)})")
        max_length = ranks.numel() if max_length is None else max_length
        check_count("max_length", max_length)
        self.encoder = encoder
        self.decoder = decoder
        self.register_buffer("ranks", ranks)
        self.register_buffer("max_length", torch.tensor(max_length))

    @classmethod
    def of_training_samples(
        cls,
        train: MultiLabelDataset,
        encoder: nn.Module,
        decoder: nn.Module,
        label_order: LabelOrder,
    ) -> LabelSequenceModel:
        """Makes a model with the order of the labels, and their largest number, of training samples."""
        longest = max(int(train.y.nansum(dim=1).max()), 1)
        return cls(encoder, decoder, label_ranks(train.y, label_order), longest)

    def forward(self, data: Data) -> tuple[Tensor, Tensor]:
        """Runs the forward pass with teacher forcing; unknown labels are in no sequence and compete with no symbol."""
        symbols = label_sequences(data.y, self.ranks)
        logits = self.decoder(*self._encode(data), shifted(symbols, self.ranks.numel()))
        return next_log_probs(logits, symbols, data.y.isnan()), symbols

    def search(self, data: Data, *, beam_size: int = 5, length_penalty: float = 0.0) -> Hypotheses:
        """Searches for the likeliest sequences of labels that are not yet known (see
        :func:`~tg_mlc.papers.decoders.beam_search`); two of them may hold the same set in different orders.
        """
        decoder = cast("StepDecoder[object]", self.decoder)
        given = given_in(self, data)
        return beam_search(
            decoder,
            *self._encode(data),
            beam_size=beam_size,
            length_penalty=length_penalty,
            max_length=int(self.max_length),
            excluded=None if given is None else ~given.isnan(),
        )

    def _encode(self, data: Data) -> tuple[Tensor, Tensor]:
        components: Components = self.encoder(data)
        return components.x, components.ptr


@dataclass(frozen=True)
class LabelSequenceObjective(Objective):
    r"""Sequences of labels: :func:`~tg_mlc.losses.sequence_loss` with teacher forcing, and scores from a beam search
    (see :meth:`tg_mlc.papers.decoders.Hypotheses.scores`), which are above one half for the labels of the best
    sequence.

    Unknown labels are no targets, and compete with none. The loss of validation has no smoothing.

    Args:
        label_smoothing (float, optional): Smoothing of the training targets; the released code of LaMP's recurrent
            rival takes 0.1. (default: :obj:`0.0`)
        beam_size (int, optional): Number of hypotheses; the papers take 5. (default: :obj:`5`)
        length_penalty (float, optional): Preference for long sequences (see
            :func:`~tg_mlc.papers.decoders.beam_search`). (default: :obj:`0.0`)
        max_given (float, optional): The largest share of labels that are given in training, as of
            :class:`~tg_mlc.training.Objective`. (default: :obj:`0.0`)
    """

    label_smoothing: float = 0.0
    beam_size: int = 5
    length_penalty: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("label_smoothing", self.label_smoothing, below=1.0)
        check_count("beam_size", self.beam_size)
        check_number("length_penalty", self.length_penalty)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The cross-entropy of the label sequences of a batch."""
        return sequence_loss(*model(batch), label_smoothing=self.label_smoothing)

    def scores(self, model: nn.Module, batch: Batch) -> Tensor:
        """The scores of the likeliest label sets that a beam search finds."""
        search: Callable[..., Hypotheses] = cast(Any, model).search
        return search(batch, beam_size=self.beam_size, length_penalty=self.length_penalty).scores()

    def validate(self, model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        """Those scores, and the loss without smoothing."""
        return self.scores(model, batch), sequence_loss(*model(batch))

    def num_terms(self, batch: Batch) -> Tensor:
        """The number of symbols: the labels that apply, and the stop of each sample."""
        num_labels: Tensor = (batch.y == 1).sum()
        return num_labels + len(batch.y)

    def is_mean(self) -> bool:
        """Tells that the loss is the mean over symbols."""
        return True

    def check_model(self, model: nn.Module) -> None:
        if not callable(getattr(model, "search", None)):
            raise ValueError(
                f"Expected a model with 'search', as LabelSequenceModel has (got {type(model).__name__})"
            )


def label_ranks(y: Tensor, order: LabelOrder) -> Tensor:
    r"""The places :math:`(L)` of the labels of training samples :math:`(N, L)` in an order: :obj:`"frequency"` from the
    most to the least frequent, :obj:`"reverse"` the other way round, :obj:`"given"` as the data set has them, or
    :obj:`"random"` as PyTorch's generator draws it once.
    """
    check_choice("label_order", order, get_args(LabelOrder))
    if order == "random":
        return torch.randperm(y.size(1))
    if order == "given":
        return torch.arange(y.size(1))
    labels = y.nansum(dim=0).argsort(descending=order == "frequency", stable=True)
    return labels.argsort()


def label_sequences(y: Tensor, ranks: Tensor) -> Tensor:
    r"""The positive labels of every sample in the order of :func:`label_ranks` as symbols :math:`(B, n)`, each sequence
    filled up with at least one stop symbol.
    """
    stop = y.size(1)
    positive = y == 1
    length = int(positive.sum(dim=1).max()) + 1
    places = (
        F.pad(torch.where(positive, ranks, stop), (0, 1), value=stop).sort(dim=1).values[:, :length]
    )
    return F.pad(ranks.argsort(), (0, 1), value=stop)[places]


def shifted(symbols: Tensor, stop: int) -> Tensor:
    """The symbol before each: what a decoder is given to predict it, first of all the stop."""
    return F.pad(symbols[:, :-1], (1, 0), value=stop)


def next_log_probs(logits: Tensor, symbols: Tensor, unknown: Tensor | None = None) -> Tensor:
    r"""The log-probabilities :math:`(B, n, L + 1)` of all symbols at each place of sequences :math:`(B, n)`, where no
    label comes twice, and labels of the mask :obj:`unknown` compete with no other.
    """
    stop = logits.size(-1) - 1
    excluded = torch.zeros_like(logits, dtype=torch.bool).scatter_(
        2, shifted(symbols, stop).unsqueeze(-1), True
    )
    excluded = excluded.cumsum(dim=1) > 0
    if unknown is not None:
        excluded[..., :stop] |= unknown.unsqueeze(1)
    excluded[..., stop] = False
    return logits.float().masked_fill(excluded, -torch.inf).log_softmax(dim=-1)
