"""Objective of models that predict one label after another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from torch import Tensor, nn
from torch_geometric.data import Batch

from tg_mlc._options import check_count, check_number
from tg_mlc.losses import sequence_loss
from tg_mlc.papers.decoders import Hypotheses
from tg_mlc.training import Objective


@dataclass(frozen=True)
class SequenceObjective(Objective):
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

    Raises:
        ValueError: If an option is out of range.
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

    def check_model(self, model: nn.Module) -> None:
        """Refuses a model without a search."""
        if not callable(getattr(model, "search", None)):
            raise ValueError(f"Expected a model with 'search', as LabelSequenceModel has (got {type(model).__name__})")
