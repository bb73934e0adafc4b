"""Label graphs that need no knowledge of the labels, and the choice of edges by their weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from tg_mlc._options import check_count
from tg_mlc.graphs.label_graph import LabelGraph, check_label_names


def fully_connected(labels: int | Sequence[str], self_loops: bool = True) -> LabelGraph:
    r"""The complete label graph, the "fc" graph of the `"Neural Message Passing for Multi-Label
    Classification" <https://arxiv.org/abs/1904.08049>`_ paper: every label attends to every label.

    Args:
        labels (int or list of str): The number of labels, or their names.
        self_loops (bool, optional): If set to :obj:`False`, a label does not attend to itself.
            (default: :obj:`True`)
    """
    options: dict[str, Any] = {**edgeless(labels).to_dict(), "kind": "fully_connected"}
    index = torch.arange(options["num_nodes"])
    options["edge_index"] = torch.cartesian_prod(index, index).t()
    return LabelGraph(**options) if self_loops else LabelGraph(**options).remove_self_loops()


def edgeless(labels: int | Sequence[str]) -> LabelGraph:
    r"""The label graph without messages between different labels, the "el" graph of the `"Neural
    Message Passing for Multi-Label Classification" <https://arxiv.org/abs/1904.08049>`_ paper: each
    label attends to itself only.

    Args:
        labels (int or list of str): The number of labels, or their names.
    """
    is_number = isinstance(labels, int) and not isinstance(labels, bool) and labels >= 0
    if not is_number and (isinstance(labels, int | str) or not isinstance(labels, Sequence)):
        expected = "'labels' to be a non-negative number of labels or a list of names"
        raise ValueError(f"Expected {expected} (got {labels!r})")
    names = None if isinstance(labels, int) else check_label_names(labels)
    num_labels = labels if isinstance(labels, int) else len(labels)
    loops = torch.arange(num_labels).expand(2, -1)
    return LabelGraph(loops, num_nodes=num_labels, label_names=names, kind="edgeless")


def check_selection(threshold: float | None, top_k: int | None) -> None:
    """Raises ValueError for options that :func:`select` cannot use."""
    if threshold is not None and not np.isfinite(threshold):
        raise ValueError(f"Expected 'threshold' to be a finite number or None (got {threshold!r})")
    check_count("top_k", top_k, or_none=True)


def select(
    source: np.ndarray,
    target: np.ndarray,
    strength: np.ndarray,
    num_labels: int,
    threshold: float | None,
    top_k: int | None,
    self_loops: bool,
    eligible: np.ndarray | None = None,
) -> np.ndarray:
    """Tells which pairs become edges: eligible pairs of different labels that reach
    :obj:`threshold` and are among the :obj:`top_k` strongest of their target (of equal ones, the
    first sources), and loops, without :obj:`self_loops` only for labels without another source.
    """
    loops = source == target
    keep = ~loops if eligible is None else ~loops & eligible
    if threshold is not None:
        keep &= strength >= threshold
    if top_k is not None:
        pairs = np.flatnonzero(keep)
        pairs = pairs[np.lexsort((source[pairs], -strength[pairs], target[pairs]))]
        # Sorted by target, so a pair's rank is its distance from where its target begins.
        rank = np.arange(len(pairs)) - np.searchsorted(target[pairs], target[pairs])
        keep[pairs[rank >= top_k]] = False
    needs_loop = np.ones(num_labels, dtype=bool)
    if not self_loops:
        needs_loop[target[keep]] = False
    chosen: np.ndarray = keep | (loops & needs_loop[target])
    return chosen


def source_in_words(origin: str, **options: Any) -> str:
    """Returns the source of a graph in words: its origin, then the options that are set."""
    given = [f"{key}={value}" for key, value in options.items() if value is not None]
    return ", ".join([origin, *given])
