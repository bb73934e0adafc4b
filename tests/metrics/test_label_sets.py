from itertools import product

import numpy as np
import pytest
import torch

from tests.nn.samples import through_a_file
from tg_mlc.inputs.preprocessor import as_tensors
from tg_mlc.metrics import LabelSets, example_f1, label_sets

rng = np.random.default_rng(0)
NAN = float("nan")


@pytest.mark.parametrize("prior", [0.0, 1.0])
def test_predictions_equal_an_exhaustive_search(prior, monkeypatch):
    monkeypatch.setattr(label_sets, "_CHUNK", 20_000)
    y_train = (rng.random((300, 6)) < [0.5, 0.4, 0.3, 0.1, 0.1, 0.1]).astype(float)
    scores = rng.uniform(0.01, 0.99, (2000, 6))  # The scores span several chunks.
    actual = LabelSets(y_train, prior).predict(scores)
    sets, counts = np.unique(y_train, axis=0, return_counts=True)
    for row in range(0, 2000, 37):
        p = scores[row]
        values = np.log(np.where(sets == 1, p, 1 - p)).sum(axis=1) + prior * np.log(counts)
        np.testing.assert_array_equal(actual[row], sets[int(np.argmax(values))])


def test_one_certain_label_does_not_outvote_all_others():
    sets = LabelSets(np.array([[1.0, 0, 0], [0, 1, 1]]))
    assert sets.predict(np.array([[1.0, 0.999, 0.999]])).tolist() == [[0, 1, 1]]


def test_tuning_keeps_the_prior_that_validation_samples_prefer():
    y_train = np.array([[1.0, 0.0]] * 99 + [[0.0, 1.0]])
    scores = np.full((100, 2), 0.5)
    scores[:, 1] = 0.6
    assert LabelSets.tuned(y_train, y_train, scores).prior > 0
    assert LabelSets.tuned(y_train, 1 - y_train, scores).prior == 0


def test_samples_with_unknown_labels_give_no_set():
    sets = LabelSets(np.array([[1, NAN], [0, 1.0], [0, 1]]))
    assert sets.sets.toarray().tolist() == [[0, 1]]
    assert sets.counts.tolist() == [2]
    with pytest.raises(ValueError, match="without unknown labels"):
        LabelSets(np.array([[1, NAN]]))


@pytest.mark.parametrize("metric", ["subset_accuracy", "f1_samples"])
@pytest.mark.parametrize("prior", [0.0, 0.5])
def test_training_samples_do_not_use_their_own_sets(metric, prior):
    y = (rng.random((60, 4)) < 0.3).astype(float)
    y[::7, 1] = NAN
    scores = rng.random(y.shape)
    [actual] = LabelSets(y, metric=metric).decide(scores, [prior], of_training=True)
    for row in range(len(y)):
        remaining = LabelSets(np.delete(y, row, axis=0), prior, metric)
        np.testing.assert_array_equal(actual[row], remaining.predict(scores[[row]])[0])


def test_no_decision_has_a_higher_expected_f1():
    all_decisions = np.array(list(product([0.0, 1.0], repeat=5)))
    y_train = (rng.random((40, 5)) < [0.6, 0.4, 0.3, 0.2, 0.1]).astype(float)
    y_train[:3] = 0
    sets, scores = LabelSets(y_train, 0.5, "f1_samples"), rng.uniform(0.05, 0.95, (50, 5)) ** 2
    actual = sets.predict(scores)
    p = scores[:, None]
    weight = np.where(sets.sets.toarray() == 1, p, 1 - p).prod(axis=-1) * sets.counts**0.5

    def expected(row, decision):
        return weight[row] @ [example_f1([labels], [decision]) for labels in sets.sets.toarray()]

    assert actual.sum() not in (0, actual.size)
    for row in range(0, 50, 5):
        best = max(expected(row, decision) for decision in all_decisions)
        assert expected(row, actual[row]) == pytest.approx(best)


@pytest.mark.parametrize("metric", ["subset_accuracy", "f1_samples"])
@pytest.mark.parametrize("y_train", [np.eye(3), np.zeros((2, 3))])
def test_label_sets_survive_a_weights_only_checkpoint(metric, y_train):
    scores, sets = rng.random((20, 3)), LabelSets(y_train, 0.25, metric)
    loaded = LabelSets.from_state(through_a_file(as_tensors(sets.state_dict())))
    np.testing.assert_array_equal(loaded.predict(scores), sets.predict(scores))
    assert (loaded.metric, loaded.prior, loaded.best_value) == (metric, 0.25, None)
    assert repr(loaded) == repr(sets)


def test_tensors_give_tensors():
    actual = LabelSets(torch.eye(2)).predict(torch.tensor([[0.9, 0.2]]))
    assert isinstance(actual, torch.Tensor)
    assert actual.tolist() == [[1, 0]]


STATE = LabelSets(np.eye(3)).state_dict()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LabelSets(np.eye(3)).predict(np.full((2, 2), 0.5)), "'scores' of 3 labels"),
        (lambda: LabelSets(np.eye(3)).predict(np.full((2, 3), 4.0)), "Expected probabilities"),
        (lambda: LabelSets.from_state({**STATE, "num_labels": 2}), "must be < 2"),
        (lambda: LabelSets.tuned(np.eye(3), np.eye(3), np.eye(3), metric="F1"), "'metric' to be"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
