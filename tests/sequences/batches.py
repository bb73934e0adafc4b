"""Random batches as NextSetDataset makes them."""

from __future__ import annotations

import torch
from torch_geometric.data import Batch

NUM_LABELS, NUM_ENTITIES, NUM_BINS, NUM_FEATURES, WINDOW_SIZE = 6, 4, 5, 7, 3
FREQUENCY = torch.linspace(0.1, 0.6, NUM_LABELS)
PROFILES = torch.rand(NUM_ENTITIES, NUM_LABELS, generator=torch.Generator().manual_seed(1))


def batch(num_samples: int = 5, seed: int = 0, num_labels: int = NUM_LABELS) -> Batch:
    """Returns a batch: its first sample has no history, its second is of an unseen entity."""
    generator = torch.Generator().manual_seed(seed)

    def draw(high: int, *size: int) -> torch.Tensor:
        return torch.randint(high, size, generator=generator)

    present = torch.rand(num_samples, WINDOW_SIZE, num_labels, generator=generator) < 0.4
    present[0] = False
    sample, step, label = present.nonzero().unbind(dim=1)
    dt = draw(40, num_samples, WINDOW_SIZE)[sample, step].float()
    remembered = torch.rand(num_samples, num_labels, generator=generator) < 0.5
    remembered[0] = False
    memory_sample, memory_label = remembered.nonzero().unbind(dim=1)
    memory = torch.rand(memory_sample.numel(), NUM_FEATURES, generator=generator)
    entity = draw(NUM_ENTITIES, num_samples)
    entity[1:2] = NUM_ENTITIES
    data = Batch(
        y=(torch.rand(num_samples, num_labels, generator=generator) < 0.4).float(),
        entity=entity,
        label=label,
        sample=sample,
        position=WINDOW_SIZE - step,
        dt=dt,
        bin=draw(NUM_BINS, sample.numel()),
        amount=torch.randn(sample.numel(), generator=generator),
        memory_label=memory_label,
        memory_sample=memory_sample,
        memory=memory,
        trend=torch.rand(num_samples, num_labels, 3, generator=generator),
    )
    data._num_graphs = num_samples
    return data
