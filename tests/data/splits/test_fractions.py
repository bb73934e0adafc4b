from __future__ import annotations

import pytest

from tg_mlc.data.splits._fractions import part_sizes


@pytest.mark.parametrize(
    ("num_samples", "fractions", "sizes"),
    [
        (1427, (0.8, 0.1, 0.1), [1141, 143, 143]),  # the sizes of the papers
        (100, (0.8, 0.1, 0.1), [80, 10, 10]),
        (10, (0.7, 0.2, 0.1), [7, 2, 1]),
        (3, (1 / 3, 1 / 3, 1 / 3), [1, 1, 1]),
        (7, (0.5, 0.0, 0.5), [4, 0, 3]),
        (5, (1.0, 0.0, 0.0), [5, 0, 0]),
        (7_000_003, (0.8, 0.1, 0.1), [5_600_003, 700_000, 700_000]),
    ],
)
def test_sizes(num_samples, fractions, sizes):
    assert part_sizes(num_samples, fractions).tolist() == sizes


@pytest.mark.parametrize(
    "fractions",
    [(0.8, 0.2), (0.8, 0.3, -0.1), (0.8, 0.1, 0.2), (0.5, 0.2, 0.2), (float("nan"), 0.5, 0.5), 0.5, ("a", 0, 1)],
)
def test_wrong_fractions(fractions):
    with pytest.raises(ValueError, match="Expected 'fractions'"):
        part_sizes(100, fractions)


def test_too_few_samples():
    with pytest.raises(ValueError, match=r"got 3 samples.*\[3, 0, 0\]"):
        part_sizes(3, (0.8, 0.1, 0.1))
