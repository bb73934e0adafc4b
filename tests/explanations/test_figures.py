from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.explanations.made import LABELS, make_explanation
from tg_mlc.explanations.figures import plot_lines, plot_states

pytest.importorskip("matplotlib")


def texts(ticks):
    return [tick.get_text() for tick in ticks]


@pytest.mark.parametrize("step", [1, 2])
def test_states_and_attention_stand_below_each_other(step: int, tmp_path):
    explanation = make_explanation("text")
    sample = explanation[0]
    figure = plot_states(explanation, step=step, path=tmp_path / "figure.svg")
    states, to_components, to_labels = (axis for axis in figure.axes if axis.get_title(loc="left"))
    np.testing.assert_array_equal(states.images[0].get_array(), sample.states)
    assert texts(states.get_yticklabels()) == ["1.1", "1.2", "2.1", "2.2"]
    assert not states.yaxis_inverted()  # The first state is the lowest row.
    order = np.argsort(-sample.probability)
    positive = order[sample.truth[order] == 1]
    stars = [name.endswith("★") for name in texts(states.get_xticklabels())]
    assert stars == [label in positive for label in range(4)]
    cells = sample.attention[step - 1].sum(axis=0)[:, positive].T
    np.testing.assert_allclose(to_components.images[0].get_array(), cells)
    assert texts(to_components.get_xticklabels()) == sample.components
    cells = sample.label_attention[step - 1].sum(axis=0)[:, positive].T
    np.testing.assert_allclose(to_labels.images[0].get_array(), cells)
    assert (tmp_path / "figure.svg").stat().st_size > 1000


@pytest.mark.parametrize(
    ("of", "right"), [("labels", LABELS), ("components", make_explanation("dna")[0].components)]
)
def test_lines_are_as_dark_as_attention(of: str, right: list[str]):
    explanation = make_explanation("dna")
    explanation[0].truth[:] = np.nan
    order = np.argsort(-explanation[0].probability)
    positive = order[explanation[0].decision[order]]
    [axis] = plot_lines(explanation, of=of).axes
    attention = explanation[0].label_attention if of == "labels" else explanation[0].attention
    weights = attention[0].sum(axis=0)[:, positive]
    alphas = [line.get_alpha() for line in axis.lines]
    np.testing.assert_allclose(alphas, (weights / weights.max()).ravel())
    names = texts(axis.texts)
    assert len(names) == len(positive) + len(right)
    assert names[len(positive)][:10] == right[0][:10]


@pytest.mark.parametrize("draw", [plot_states, plot_lines])
@pytest.mark.parametrize(("messages", "step"), [(True, 3), (True, 0), (False, 1)])
def test_a_step_that_the_model_lacks_is_refused(draw, messages: bool, step: int):
    with pytest.raises(ValueError, match=rf"'step' .*\(got {step}\)"):
        draw(make_explanation("row", messages=messages), step=step)


def test_lines_are_refused_without_attention_to_labels():
    explanation = make_explanation("row")
    sample = replace(explanation[0], label_attention=np.empty((0, 3, 4, 4)))
    assert len(plot_states(replace(explanation, samples=[sample])).axes) == 4
    with pytest.raises(ValueError, match="'of'"):
        plot_lines(replace(explanation, samples=[sample]))
