"""Random splits."""

from __future__ import annotations

import numpy as np

from tg_mlc.data.splits._fractions import DEFAULT_FRACTIONS, Fractions, part_sizes
from tg_mlc.data.splits.split import Split


def random_split(num_samples: int, fractions: Fractions = DEFAULT_FRACTIONS, seed: int = 0) -> Split:
    """Splits samples at random.

    Args:
        num_samples (int): Number of samples.
        fractions (tuple[float], optional): Shares of training, validation and test samples.
            (default: :obj:`(0.8, 0.1, 0.1)`)
        seed (int, optional): Determines the split. (default: :obj:`0`)

    Raises:
        ValueError: If the fractions are no shares, or leave a part empty that should not be.
    """
    sizes = part_sizes(num_samples, fractions)
    part_of = np.repeat(np.arange(len(sizes)), sizes)
    shuffled = np.random.default_rng(seed).permutation(part_of)
    return Split.from_assignment(shuffled, name=f"random(seed={seed})")
