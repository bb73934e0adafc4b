"""The papers' figures, drawn from an explanation."""

from __future__ import annotations

import os
from typing import Any, Literal, get_args

import numpy as np

from tg_mlc._names import shorten
from tg_mlc._options import check_choice
from tg_mlc.explanations.explanation import Explanation, SampleExplanation
from tg_mlc.graphs.plot import INK, POSITIVE, new_figure, write_figure

Of = Literal["components", "labels"]
MAX_COLUMNS = 40  #: Maximum number of labels or components in a row. Largest values are kept.
MAX_ROWS = 14  #: Maximum number of positive labels.
MAX_LINES = 40  #: Maximum number of names in a column of :func:`plot_lines`.


def plot_states(
    explanation: Explanation,
    sample: int = 0,
    step: int = 1,
    path: str | os.PathLike[str] | None = None,
) -> Any:
    """Draws Figure 2 of the `"Neural Message Passing for Multi-Label Classification"
    <https://arxiv.org/abs/1904.08049>`_ paper, or, for the second step, its Figure 3: (a) the
    predictions from every intermediate state, from bottom to top, with stars at the positive
    labels; (b) the attention of positive labels to components, and (c) to labels, in one step,
    summed over heads.

    Positive labels are the true labels, or the predicted labels if the true labels are unknown.

    Args:
        explanation (Explanation): An explanation by a model that passes messages.
        sample (int, optional): The index of the sample. (default: :obj:`0`)
        step (int, optional): The step of message passing, from 1. (default: :obj:`1`)
        path (str or PathLike, optional): A picture file to write; the suffix is its format.
            (default: :obj:`None`)

    Returns:
        The :class:`matplotlib.figure.Figure`.

    Raises:
        ValueError: If the model passes no messages, or has fewer steps.
        ImportError: If matplotlib is not installed (extra ``plot``).
    """
    entry = explanation[sample]
    to_components, to_labels = _attention(entry, step)
    positive = _positive(entry)
    # If not all labels fit, positive labels take precedence.
    is_positive = np.isin(np.arange(len(entry.probability)), positive)
    labels = _largest(np.nan_to_num(entry.probability) + 2 * is_positive, MAX_COLUMNS)
    starred = [f"{explanation.labels[label]}{' ★' * bool(is_positive[label])}" for label in labels]
    title, states = "(a) predictions after every state", entry.states[:, labels]
    panels: list[tuple[str, np.ndarray, list[str], list[str], float | None]] = [
        (title, states, explanation.state_names, starred, 1.0)
    ]
    rows = [explanation.labels[label] for label in positive]
    for title, cells, names in (
        (f"(b) attention to components, state {step}.1", to_components, entry.components),
        (f"(c) attention to labels, state {step}.2", to_labels, explanation.label_names),
    ):
        if cells.size:
            indices = _largest(cells[:, positive].max(axis=1), MAX_COLUMNS)
            columns = [names[index] for index in indices]
            panels.append((title, cells[indices][:, positive].T, rows, columns, None))
    heights = [len(rows) + 1.0 for _, _, rows, _, _ in panels]
    figure = new_figure(11.0, 0.24 * sum(heights) + 1.9 * len(panels))
    axes = figure.subplots(len(panels), 1, height_ratios=heights)
    style = {"aspect": "auto", "origin": "lower", "interpolation": "nearest", "cmap": "Blues"}
    for axis, (title, cells, rows, columns, largest) in zip(axes, panels, strict=True):
        image = axis.imshow(cells, vmin=0.0, vmax=largest, **style)
        axis.set_title(title, loc="left", fontsize=10, color=INK)
        row_names, column_names = (
            [shorten(name, 30) for name in names] for names in (rows, columns)
        )
        axis.set_yticks(range(len(rows)), row_names, fontsize=8)
        axis.set_xticks(range(len(columns)), column_names, rotation=90, fontsize=7)
        axis.spines[:].set_visible(False)
        axis.tick_params(length=0)
        colorbar = figure.colorbar(image, ax=axis, pad=0.01)
        colorbar.outline.set_visible(False)
        colorbar.ax.tick_params(labelsize=7, length=0)
    if path is not None:
        write_figure(figure, path)
    return figure


def plot_lines(
    explanation: Explanation,
    sample: int = 0,
    of: Of = "labels",
    step: int = 1,
    path: str | os.PathLike[str] | None = None,
) -> Any:
    """Draws Figure 3 of the `"Neural Message Passing for Multi-Label Classification"
    <https://openreview.net/forum?id=r1xYr3C5t7>`_ paper (MPED): lines from the positive labels on
    the left to all labels on the right, darker for more attention. With components on the right, it
    is Figure 4.

    Args:
        explanation, sample, step, path: As in :func:`plot_states`.
        of (str, optional): :obj:`"labels"` or :obj:`"components"`. (default: :obj:`"labels"`)

    Returns:
        The :class:`matplotlib.figure.Figure`.

    Raises:
        ValueError: If the model passes no messages, or has fewer steps.
        ImportError: If matplotlib is not installed (extra ``plot``).
    """
    check_choice("of", of, get_args(Of))
    entry = explanation[sample]
    weights = _attention(entry, step)[0 if of == "components" else 1]
    if not weights.size:
        got = f"(got {of!r}, to which this model sends no messages)"
        raise ValueError(f"Expected 'of' to name components or labels that get attention {got}")
    names = entry.components if of == "components" else explanation.label_names
    positive = _positive(entry)
    targets = _largest(weights[:, positive].max(axis=1), MAX_LINES)
    cells = weights[targets][:, positive]
    columns = [
        [shorten(explanation.labels[label], 36) for label in positive],
        [shorten(names[target], 36) for target in targets],
    ]
    # The width of each column of names, relative to the width of the lines.
    left, right = (0.1 + 0.03 * max(map(len, column)) for column in columns)
    height = 0.8 + 0.19 * max(len(targets), len(positive))
    figure = new_figure(2.4 * (left + 1 + right), height)
    axis = figure.subplots()
    levels = [np.linspace(1, 0, len(column) + 2)[1:-1] for column in columns]
    style = {"color": POSITIVE, "linewidth": 1.4, "solid_capstyle": "round"}
    for (target, label), weight in np.ndenumerate(cells / max(cells.max(), 1e-12)):
        axis.plot([0, 1], [levels[0][label], levels[1][target]], alpha=float(weight), **style)
    for x, align, column, heights in zip(
        (-0.03, 1.03), ("right", "left"), columns, levels, strict=True
    ):
        for name, level in zip(column, heights, strict=True):
            axis.text(x, level, name, ha=align, va="center", fontsize=8, color=INK)
    axis.set(xlim=(-left, 1 + right), ylim=(0, 1))
    axis.set_axis_off()
    if path is not None:
        write_figure(figure, path)
    return figure


def _attention(sample: SampleExplanation, step: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the attention in a step to components :math:`(C, L)` and to labels :math:`(J, L)`,
    summed over heads.
    """
    steps = len(sample.attention)
    if not 1 <= step <= steps:
        raise ValueError(f"Expected 'step' to be one of the model's {steps} steps (got {step})")
    to_labels = np.empty((0, sample.attention.shape[-1]))
    if len(sample.label_attention):
        to_labels = sample.label_attention[step - 1].sum(axis=0)
    return sample.attention[step - 1].sum(axis=0), to_labels


def _positive(sample: SampleExplanation) -> np.ndarray:
    """Returns the most probable true labels, or predicted labels if the true labels are unknown. If
    there are none, returns the most probable label.
    """
    is_positive = sample.decision if np.isnan(sample.truth).all() else sample.truth == 1
    order = np.argsort(-np.nan_to_num(sample.probability), kind="stable")
    return order[is_positive[order]][:MAX_ROWS] if is_positive.any() else order[:1]


def _largest(values: np.ndarray, number: int) -> np.ndarray:
    """Returns the indices of the largest values, in ascending order."""
    return np.sort(np.argsort(-values, kind="stable")[:number])
