"""The pictures of the papers, of an explanation."""

from __future__ import annotations

import os
from typing import Any, Literal, get_args

import numpy as np

from tg_mlc._names import shorten
from tg_mlc._options import check_choice
from tg_mlc.explanations.explanation import Explanation, SampleExplanation
from tg_mlc.graphs.plot import INK, POSITIVE, new_figure, write_figure

Of = Literal["components", "labels"]
MOST_COLUMNS = 40  #: labels or components side by side; of more, those of the largest values
MOST_ROWS = 14  #: labels whose attention is shown
MOST_LINES = 40  #: names in a column of a drawing of lines


def plot_states(
    explanation: Explanation,
    sample: int = 0,
    step: int = 1,
    path: str | os.PathLike[str] | None = None,
) -> Any:
    """Draws Figure 2 of the `"Neural Message Passing for Multi-Label Classification"
    <https://arxiv.org/abs/1904.08049>`_ paper, or, for the second step, its Figure 3: (a) the predictions that are read
    out of every intermediate state, from the first one upwards, with stars at the positive labels; (b) what positive
    labels attend to among the components, and (c) among the labels, in one step, summed over heads.

    Positive labels are those that apply, or, where that is not known, the predicted ones.

    Args:
        explanation (Explanation): An explanation by a model that passes messages.
        sample (int, optional): Which sample. (default: :obj:`0`)
        step (int, optional): Which step of message passing, from 1. (default: :obj:`1`)
        path (str or PathLike, optional): A picture file to write, its type by its suffix. (default: :obj:`None`)

    Returns:
        The :class:`matplotlib.figure.Figure`.

    Raises:
        ValueError: If the model passes no messages, or has fewer steps.
        ImportError: If matplotlib is not installed (extra ``plot``).
    """
    shown = explanation[sample]
    to_components, to_labels = _attention(shown, step)
    positive = _positive(shown)
    # Positive labels come first where not all have room.
    is_positive = np.isin(np.arange(len(shown.probability)), positive)
    labels = _largest(np.nan_to_num(shown.probability) + 2 * is_positive, MOST_COLUMNS)
    marked = [f"{explanation.labels[place]}{' ★' * bool(is_positive[place])}" for place in labels]
    panels: list[tuple[str, np.ndarray, list[str], list[str], float | None]] = [
        (
            "(a) predictions after every state",
            shown.states[:, labels],
            explanation.state_names,
            marked,
            1.0,
        )
    ]
    for title, cells, names in (
        (f"(b) attention to components, state {step}.1", to_components, shown.components),
        (f"(c) attention to labels, state {step}.2", to_labels, explanation.label_names),
    ):
        if cells.size:
            chosen = _largest(cells[:, positive].max(axis=1), MOST_COLUMNS)
            rows = [explanation.labels[place] for place in positive]
            panels.append(
                (
                    title,
                    cells[chosen][:, positive].T,
                    rows,
                    [names[place] for place in chosen],
                    None,
                )
            )
    heights = [len(rows) + 1.0 for _, _, rows, _, _ in panels]
    figure = new_figure(11.0, 0.24 * sum(heights) + 1.9 * len(panels))
    for axis, (title, cells, rows, columns, most) in zip(
        figure.subplots(len(panels), 1, height_ratios=heights), panels, strict=True
    ):
        style = {"aspect": "auto", "origin": "lower", "interpolation": "nearest"}
        image = axis.imshow(cells, cmap="Blues", vmin=0.0, vmax=most, **style)
        axis.set_title(title, loc="left", fontsize=10, color=INK)
        axis.set_yticks(range(len(rows)), [shorten(name, 30) for name in rows], fontsize=8)
        axis.set_xticks(
            range(len(columns)), [shorten(name, 30) for name in columns], rotation=90, fontsize=7
        )
        axis.spines[:].set_visible(False)
        axis.tick_params(length=0)
        bar = figure.colorbar(image, ax=axis, pad=0.01)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=7, length=0)
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
    <https://openreview.net/forum?id=r1xYr3C5t7>`_ paper, MPED's: lines from the positive labels on the left to all
    labels on the right, as dark as the attention between them; or its Figure 4, to all components.

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
    shown = explanation[sample]
    weights = _attention(shown, step)[0 if of == "components" else 1]
    if not weights.size:
        raise ValueError(
            f"Expected 'of' to be what labels attend to (got {of!r}, to which this model sends no messages)"
        )
    names = shown.components if of == "components" else explanation.label_names
    positive = _positive(shown)
    right = _largest(weights[:, positive].max(axis=1), MOST_LINES)
    cells = weights[right][:, positive]
    sides = [
        [shorten(explanation.labels[place], 36) for place in positive],
        [shorten(names[place], 36) for place in right],
    ]
    # room for names, in lengths of a line
    left, beyond = (0.1 + 0.03 * max(map(len, side)) for side in sides)
    figure = new_figure(2.4 * (left + 1 + beyond), 0.8 + 0.19 * max(len(right), len(positive)))
    axis = figure.subplots()
    levels = [np.linspace(1, 0, len(side) + 2)[1:-1] for side in (positive, right)]
    for (place, target), share in np.ndenumerate(cells / max(cells.max(), 1e-12)):
        ends = [levels[0][target], levels[1][place]]
        axis.plot(
            [0, 1], ends, color=POSITIVE, alpha=float(share), linewidth=1.4, solid_capstyle="round"
        )
    for x, align, side, heights in zip(
        (-0.03, 1.03), ("right", "left"), sides, levels, strict=True
    ):
        for name, level in zip(side, heights, strict=True):
            axis.text(x, level, name, ha=align, va="center", fontsize=8, color=INK)
    axis.set(xlim=(-left, 1 + beyond), ylim=(0, 1))
    axis.set_axis_off()
    if path is not None:
        write_figure(figure, path)
    return figure


def _attention(sample: SampleExplanation, step: int) -> tuple[np.ndarray, np.ndarray]:
    """The attention of labels in a step to components :math:`(C, L)` and labels :math:`(J, L)`, summed over heads."""
    if not 1 <= step <= len(sample.attention):
        raise ValueError(
            f"Expected 'step' to be one of the {len(sample.attention)} of the model (got {step})"
        )
    to_labels = sample.label_attention
    among = (
        to_labels[step - 1].sum(axis=0)
        if len(to_labels)
        else np.empty((0, sample.attention.shape[-1]))
    )
    return sample.attention[step - 1].sum(axis=0), among


def _positive(sample: SampleExplanation) -> np.ndarray:
    """The most probable labels that apply, or, where that is not known, that are predicted; else the first one."""
    known = sample.truth == 1 if not np.isnan(sample.truth).all() else sample.decision
    order = np.argsort(-np.nan_to_num(sample.probability), kind="stable")
    return order[known[order]][:MOST_ROWS] if known.any() else order[:1]


def _largest(values: np.ndarray, most: int) -> np.ndarray:
    """The places of the largest values, in their order."""
    return np.sort(np.argsort(-values, kind="stable")[:most])
