"""Step decoder: what beam search asks of a model that gives one label after another."""

from __future__ import annotations

from typing import Protocol, TypeVar

from torch import Tensor

from tg_mlc.nn._batch import to_dense

State = TypeVar("State")


class StepDecoder(Protocol[State]):
    """Decoder of one symbol after another, with a row of its state for every hypothesis.

    Rows are grouped by sample, and all samples have the same number of them: one at first.
    """

    num_labels: int

    def start(self, x: Tensor, ptr: Tensor) -> State:
        """The state before any symbol, from component states :math:`(N, d)` and pointers :math:`(B + 1)`."""

    def step(self, state: State, symbols: Tensor) -> tuple[Tensor, State]:
        """The logits :math:`(R, L + 1)` of what follows the last symbols :math:`(R)`, and the state after these."""

    def select(self, state: State, rows: Tensor) -> State:
        """The state of other rows, each a continuation of a row of the same sample."""


def padded(x: Tensor, ptr: Tensor) -> tuple[Tensor, Tensor]:
    """Components of every sample, filled up with zeros, and which to attend to: of a sample without any, one zero."""
    dense, mask = to_dense(x, ptr)
    mask[:, 0] = True
    return dense, mask
