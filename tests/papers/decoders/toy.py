"""A decoder whose probabilities follow from the labels so far and their order."""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

import torch
from torch import Tensor

NUM_LABELS = 5


class ToyState(NamedTuple):
    sample: Tensor
    history: Tensor


class ToyDecoder:
    """Its components are one vector for each sample."""

    num_labels = NUM_LABELS

    def __init__(self, seed: int = 0, sharpness: float = 2.0) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.embedding = torch.randn(NUM_LABELS + 1, 8, generator=generator)
        self.mix = torch.randn(8, 8, generator=generator) / 8**0.5
        self.readout = torch.randn(8, NUM_LABELS + 1, generator=generator) * sharpness
        self.num_rows: list[int] = []

    def start(self, x, ptr):
        return ToyState(x, torch.zeros_like(x))

    def step(self, state, symbols):
        self.num_rows.append(symbols.numel())
        history = torch.tanh(state.history @ self.mix + self.embedding[symbols] + state.sample)
        return history @ self.readout, ToyState(state.sample, history)

    def select(self, state, rows):
        return ToyState(state.sample[rows], state.history[rows])


def samples(num_samples: int) -> tuple[Tensor, Tensor]:
    x = torch.randn(num_samples, 8, generator=torch.Generator().manual_seed(1))
    return x, torch.arange(num_samples + 1)


def log_prob(decoder, x, sequence):
    """The log-probability of one sequence, a stop at the end if there are labels left, symbol by symbol."""
    state, last, total = decoder.start(x, None), NUM_LABELS, 0.0
    stops = [NUM_LABELS] if len(sequence) < NUM_LABELS else []
    for place, symbol in enumerate([*sequence, *stops]):
        logits, state = decoder.step(state, torch.tensor([last]))
        allowed = [s for s in range(NUM_LABELS + 1) if s not in sequence[:place]]
        total += (logits[0, symbol] - logits[0, allowed].logsumexp(dim=0)).item()
        last = symbol
    return total


def all_sequences(decoder, x):
    """The log-probabilities of all sequences of one sample."""
    sequences = [s for n in range(NUM_LABELS + 1) for s in permutations(range(NUM_LABELS), n)]
    return {s: log_prob(decoder, x, s) for s in sequences}
