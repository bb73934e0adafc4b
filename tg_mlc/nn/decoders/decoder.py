"""Step decoder: what beam search asks of a model that gives one label after another."""

from __future__ import annotations

from typing import Protocol, TypeVar

import torch
from torch import Tensor

from tg_mlc.ops import Blocks

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


def to_components(num_rows: int, ptr: Tensor, num_components: int) -> Blocks:
    """The pattern along which equally many rows of every sample attend to all components of their sample."""
    num_samples = ptr.numel() - 1
    per_sample = num_rows // num_samples
    return Blocks(
        torch.arange(num_samples + 1, device=ptr.device) * per_sample,
        ptr,
        num_queries=num_rows,
        num_keys=num_components,
        max_queries=per_sample,
        validate=False,
    )
