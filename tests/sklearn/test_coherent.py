from __future__ import annotations

import numpy as np
import pytest

from tg_mlc.baselines import KernelRidgeBaseline
from tg_mlc.graphs import fully_connected, tree
from tg_mlc.sklearn import AutoClassifier, KernelRidgeClassifier, LaMPClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
Y = np.column_stack([X[:, 0] + X[:, 1] > 0, X[:, 0] > 0.5, X[:, 2] > 0]).astype(int)
Y[:, 0] |= Y[:, 1]
NEW = rng.normal(size=(200, 3))
GRAPH = tree([("1", "0"), ("2", None)])


@pytest.mark.parametrize("upside_down", [False, True])
def test_any_estimator_is_coherent_with_any_hierarchy(upside_down):
    """Predictions obey even a reversed hierarchy, which contradicts the training labels."""
    graph = tree([("0", "1"), ("2", None)]) if upside_down else GRAPH
    above, below = (1, 0) if upside_down else (0, 1)
    estimator = KernelRidgeClassifier().fit(X, Y)
    plain, scores = estimator.predict_proba(NEW), estimator.predict_proba(NEW, coherent=graph)
    np.testing.assert_allclose(scores[:, above], plain[:, :2].max(axis=1), rtol=1e-6)
    np.testing.assert_allclose(scores[:, [below, 2]], plain[:, [below, 2]], rtol=1e-6)
    [tuner] = estimator.model_.decision.tuners.values()
    tuner.thresholds = np.array([0.7, 0.3, 0.5])
    decisions = estimator.predict(NEW, coherent=graph)
    assert (decisions[:, above] >= decisions[:, below]).all()
    baseline = KernelRidgeBaseline().fit(X, Y)
    decisions = baseline.predict(NEW, coherent=tree([(below, above), (2, None)]))
    np.testing.assert_array_equal(decisions[:, above], baseline.predict(NEW)[:, :2].max(axis=1))


def test_lamp_is_coherent_with_its_label_graph():
    graph = tree([("0", "1"), ("2", None)], ["0", "1", "2"])
    options = {"base_scores": None, "max_epochs": 1, "random_state": 0}
    estimator = LaMPClassifier(label_graph=graph, **options).fit(X, Y)
    plain, scores = (estimator.predict_proba(NEW, coherent=coherent) for coherent in (False, True))
    np.testing.assert_allclose(scores[:, 1], plain[:, :2].max(axis=1), rtol=1e-5)
    decisions = estimator.predict(NEW, coherent=True)
    assert (decisions[:, 1] >= decisions[:, 0]).all()


def test_auto_classifier_is_coherent(tmp_path):
    estimator = AutoClassifier(seconds=0, label_graph=GRAPH, random_state=0).fit(X, Y)
    scores = estimator.predict_proba(NEW)
    assert (scores[:, 0] >= scores[:, 1]).all()
    plain = estimator.predict_proba(NEW, coherent=False)
    np.testing.assert_allclose(scores[:, 0], plain[:, :2].max(axis=1), atol=1e-12)
    decisions = estimator.predict(NEW)
    assert (decisions[:, 0] >= decisions[:, 1]).all()
    loaded = AutoClassifier.load(estimator.save(tmp_path / "model"))
    np.testing.assert_allclose(loaded.predict_proba(NEW), scores, atol=1e-6)


@pytest.fixture(scope="module")
def knowing():
    options = {"base_scores": None, "max_epochs": 1, "random_state": 0}
    graph = tree([("1", "0"), ("2", None)], ["0", "1", "2"])
    lamp = LaMPClassifier(label_graph=graph, validation_fraction=0.9, **options)
    return {
        "default": AutoClassifier(seconds=0, label_graph=GRAPH, random_state=0).fit(X, Y),
        "lamp": lamp.fit(np.tile(X, (4, 1)), np.tile(Y, (4, 1))),
    }


@pytest.mark.parametrize(
    ("name", "coherent"), [("default", None), ("default", True), ("lamp", True)]
)
@pytest.mark.parametrize(
    ("label", "value", "others"),
    [("0", 0, {"1": 0}), ("0", 1, {}), ("1", 0, {}), ("1", 1, {"0": 1})],
)
def test_given_labels_stay_and_determine_their_relatives(
    name, coherent, label, value, others, knowing
):
    given = {label: value}
    scores = knowing[name].predict_proba(NEW, given=given, coherent=coherent)
    decisions = knowing[name].predict(NEW, given=given, coherent=coherent)
    for column, expected in {**given, **others}.items():
        assert (scores[:, int(column)] == expected).all()
        assert (decisions[:, int(column)] == expected).all()
    assert (scores[:, 0] >= scores[:, 1]).all()
    assert (decisions[:, 0] >= decisions[:, 1]).all()


@pytest.mark.parametrize(
    ("coherent", "match"),
    [(True, "for coherent=True"), (fully_connected(3), "'coherent' to keep the parents")],
)
def test_graphs_without_parents_are_refused(coherent, match):
    with pytest.raises(ValueError, match=match):
        KernelRidgeClassifier().fit(X, Y).predict(NEW, coherent=coherent)
