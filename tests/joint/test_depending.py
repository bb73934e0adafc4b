import numpy as np
import pytest
import torch

import tg_mlc
from tests.quick import train_little
from tg_mlc.data import from_arrays

NAMES = ["a", "with a", "not a", "x", "also x"]


@pytest.fixture(scope="module")
def model():
    """Returns a model of labels that depend on each other ("with a", "not a") or on inputs."""
    rng = np.random.default_rng(0)
    x, a = rng.standard_normal((400, 3)), rng.random(400) < 0.5
    flips = rng.random((400, 2)) < [0.1, 0.25]
    by_inputs = 3 * x[:, [0]] + rng.logistic(size=(400, 2)) > 0
    y = np.column_stack([a, a ^ flips[:, 0], ~a ^ flips[:, 1], by_inputs]).astype(float)
    with pytest.MonkeyPatch.context() as patch:
        train_little(patch)
        return tg_mlc.auto(from_arrays(x, y, label_names=NAMES), seconds=0)


def signs(graph):
    frame = graph.to_frame()
    return {(j, i): np.sign(w) for j, i, w in frame.itertuples(index=False) if j < i}


def test_edges_have_names_and_signs(model):
    graph = model.dependencies()
    assert signs(graph) == {("a", "with a"): 1, ("a", "not a"): -1, ("not a", "with a"): -1}
    assert graph.is_undirected()
    assert graph.label_names == NAMES
    assert graph.kind == "dependencies"


def test_edges_are_selected_by_size(model):
    frame = model.dependencies().to_frame()
    weakest = frame["weight"].abs().min()
    assert len(model.dependencies(min_weight=1.01 * weakest).to_frame()) == 4
    # Label "not a" keeps its strongest edge, which is not the strongest of the other end.
    assert signs(model.dependencies(top_k=1)) == {("a", "with a"): 1, ("a", "not a"): -1}
    assert model.dependencies(min_weight=1.0).num_edges == 0


def test_a_loaded_model_has_the_same_dependencies(model, tmp_path):
    loaded = tg_mlc.load(model.save(tmp_path / "model")).dependencies()
    graph = model.dependencies()
    assert torch.equal(loaded.edge_index, graph.edge_index)
    assert torch.equal(loaded.edge_weight, graph.edge_weight)
    assert loaded.label_names == graph.label_names


def test_the_report_shows_the_strongest_pairs(model):
    pytest.importorskip("jinja2")
    explanation = tg_mlc.explain(model, np.zeros((1, 3)), method="occlusion")
    assert len(explanation.facts["dependencies"]) == 3
    text = explanation.to_html()
    assert text.index('row">a</th><td>with a</td><td>+') < text.index("<td>not a</td><td>-")


@pytest.mark.parametrize(
    ("options", "message"),
    [({"min_weight": -1}, "'min_weight' to be a finite"), ({"top_k": 0}, "'top_k' to be a whole")],
)
def test_invalid_options_are_refused(model, options, message):
    with pytest.raises(ValueError, match=message):
        model.dependencies(**options)


def test_a_model_without_residual_messages_is_refused():
    one = from_arrays(np.zeros((3, 2)), np.array([[0.0], [1.0], [0.0]]), label_names=["a"])
    with pytest.raises(ValueError, match="how given labels change others"):
        tg_mlc.auto(one, seconds=0).dependencies()
