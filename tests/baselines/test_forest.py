import numpy as np
import pytest
import torch
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor

from tests.baselines.test_baseline import NAN, X, Y
from tg_mlc.baselines import ForestBaseline, LabelFrequency
from tg_mlc.metrics import macro_roc_auc


def gini(n_estimators=20, **kwargs):
    return ForestBaseline(n_estimators, criterion="gini", **kwargs)


@pytest.mark.parametrize("criterion", ["squared_error", "gini"])
def test_scores_equal_those_of_scikit_learn(criterion):
    options = {"min_samples_leaf": 0.02, "random_state": 3}
    forest = ForestBaseline(20, criterion=criterion, **options).fit(X[:80], Y[:80])
    is_regressor = criterion == "squared_error"
    make = RandomForestRegressor if is_regressor else RandomForestClassifier
    reference = make(20, max_features="sqrt", **options).fit(X[:80], Y[:80])
    columns = reference.predict(X) if is_regressor else np.array(reference.predict_proba(X))
    expected = columns if is_regressor else columns[..., 1].T
    np.testing.assert_allclose(forest.predict_proba(X), expected, atol=1e-12)
    options["random_state"] = 4
    other = ForestBaseline(20, criterion=criterion, **options).fit(X[:80], Y[:80])
    assert (other.predict_proba(X) != forest.predict_proba(X)).any()


def test_squared_errors_count_unknown_labels_as_their_frequency():
    y = Y.copy()
    y[:, 2] = NAN
    y[:4, 2] = [0, 1, 0, 0]
    scores = ForestBaseline(50).fit(X, y).predict_proba(X)[:, 2]
    assert scores.mean() == pytest.approx(0.25, abs=0.05)


def test_gini_grows_a_forest_per_label_where_labels_are_unknown():
    y = Y[:, :2].copy()
    y[0, 0] = y[29, 1] = NAN
    together, first = gini().fit(X, y), gini().fit(X[1:], y[1:, :1])
    np.testing.assert_array_equal(together.predict_proba(X)[:, :1], first.predict_proba(X))
    restored = ForestBaseline().load_state_dict(together.state_dict())
    np.testing.assert_array_equal(restored.predict_proba(X), together.predict_proba(X))


@pytest.mark.parametrize("unknown", [False, True])
def test_gini_gives_labels_of_one_class_their_frequency(unknown):
    y = np.column_stack([np.tile([0.0, 1.0, NAN if unknown else 1.0], (len(Y), 1)), Y])
    y[0, 1] = NAN if unknown else 1.0
    model = gini()
    held_out = (model.held_out_scores(X, y) + 1) / 2
    expected = LabelFrequency().fit(X, y).predict_proba(X)[:, :3]
    for scores in (model.predict_proba(X), held_out):
        np.testing.assert_array_equal(scores[:, :3], expected)
        assert macro_roc_auc(y[:, 3:], scores[:, 3:]) > 0.8
    constant = gini().fit(X[:2], [[1, 0], [1, 0]])
    assert constant.predict_proba(X[:1]).tolist() == [[1.0, 0.0]]
    assert constant.module()(torch.from_numpy(X[:1]).float()).tolist() == [[1.0, -1.0]]


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_samples_in_every_bag_get_label_frequencies():
    y = Y.copy()
    y[0, 1] = NAN
    model = gini()
    # No tree has seen this label.
    assert model.held_out_scores(X, y)[0, 1] == model.decision_function(X[:1])[0, 1]
    frequency = LabelFrequency().fit(X, Y).decision_function(X[:1])
    in_bag = (gini(1).held_out_scores(X, Y) == frequency).all(axis=1)
    assert 0.5 < in_bag.mean() < 0.75  # A tree is grown on 63% of all samples.


@pytest.mark.parametrize("extra_trees", [False, True])
def test_trees_of_random_combinations_predict_all_labels(extra_trees):
    y = Y.copy()
    y[0, 1] = NAN
    forest = ForestBaseline(40, max_outputs=2, extra_trees=extra_trees, min_samples_leaf=2)
    held_out = forest.held_out_scores(X, y)
    assert macro_roc_auc(y, held_out) > 0.8
    scores = forest.predict_proba(X)
    assert 0 <= scores.min() <= scores.max() <= 1
    np.testing.assert_allclose(scores.mean(axis=0), np.nanmean(y, axis=0), atol=0.1)
    restored = ForestBaseline().load_state_dict(forest.state_dict())
    np.testing.assert_array_equal(restored.predict_proba(X), scores)
    state = forest.state_dict()
    state["forests"][0]["columns"] = state["forests"][0]["columns"] + 99
    with pytest.raises(ValueError, match="ind"):
        ForestBaseline().load_state_dict(state)


def test_extra_trees_equal_those_of_scikit_learn():
    reference = ExtraTreesRegressor(7, max_features="sqrt", random_state=0).fit(X, Y)
    forest = ForestBaseline(7, extra_trees=True)
    held_out = forest.held_out_scores(X, Y)
    np.testing.assert_allclose(forest.predict_proba(X), reference.predict(X), atol=1e-12)
    # Extra trees remember all samples.
    assert macro_roc_auc(Y, held_out) < macro_roc_auc(Y, forest.predict_proba(X)) == 1.0


def test_max_outputs_of_all_labels_changes_nothing():
    forests = ForestBaseline(5), ForestBaseline(5, max_outputs=Y.shape[1])
    np.testing.assert_array_equal(*(forest.fit(X, Y).predict_proba(X) for forest in forests))


def test_a_module_sends_entries_at_a_threshold_to_the_left():
    """Thresholds of double precision lie between numbers of single precision."""
    forest = ForestBaseline(3).fit(X, Y)
    trees = forest._forests[0]
    nodes = np.flatnonzero(trees.left >= 0)
    x = np.tile(X[:1], (len(nodes), 1)).astype(np.float32)
    x[np.arange(len(nodes)), trees.feature[nodes]] = trees.threshold[nodes].astype(np.float32)
    decisions = forest.module()(torch.from_numpy(x))
    np.testing.assert_allclose(decisions, forest.decision_function(x), atol=2e-5)
