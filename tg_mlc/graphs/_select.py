"""Selection of the weighted pairs that become edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from tg_mlc._options import check_count


def check_selection(threshold: float | None, top_k: int | None) -> None:
    """Raises if one of the two is not what :func:`select` can use."""
    if threshold is not None and not np.isfinite(threshold):
        raise ValueError(f"Expected 'threshold' to be a finite number or None (got {threshold!r})")
    check_count("top_k", top_k, or_none=True)


def select(
    source: np.ndarray, target: np.ndarray, strength: np.ndarray, threshold: float | None, top_k: int | None
) -> np.ndarray:
    """Tells which pairs reach the threshold and are, of those, among the strongest of their target; of equal ones
    those whose source comes first.
    """
    keep = np.ones(len(strength), dtype=bool) if threshold is None else strength >= threshold
    if top_k is not None:
        keep[keep] = _strongest(source[keep], target[keep], strength[keep], top_k)
    return keep


def select_with_loops(
    source: np.ndarray,
    target: np.ndarray,
    strength: np.ndarray,
    threshold: float | None,
    top_k: int | None,
    num_labels: int,
    self_loops: bool,
    eligible: np.ndarray | None = None,
) -> np.ndarray:
    """Tells which pairs become edges: of different labels those of :func:`select`, and loops wherever there is one for
    a label, or only where it has no other source.
    """
    loops = source == target
    keep = ~loops if eligible is None else ~loops & eligible
    keep[keep] = select(source[keep], target[keep], strength[keep], threshold, top_k)
    needs_loop = np.ones(num_labels, dtype=bool)
    if not self_loops:
        needs_loop[target[keep]] = False
    chosen: np.ndarray = keep | (loops & needs_loop[target])
    return chosen


def _strongest(source: np.ndarray, target: np.ndarray, strength: np.ndarray, top_k: int) -> np.ndarray:
    order = np.lexsort((source, -strength, target))
    # Sorted by target, so a pair's rank is its distance from where its target begins.
    ranked = target[order]
    rank = np.arange(len(order)) - np.searchsorted(ranked, ranked, side="left")
    strongest = np.zeros(len(order), dtype=bool)
    strongest[order[rank < top_k]] = True
    return strongest


def source_in_words(origin: str, **options: Any) -> str:
    """The source of a graph in words: what it was built from, then the options that are set."""
    return ", ".join([origin, *(f"{key}={value}" for key, value in options.items() if value is not None)])
