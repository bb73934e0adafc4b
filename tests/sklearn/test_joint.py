"""Suggestions and audits by estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from tg_mlc.sklearn import AutoClassifier, KernelRidgeClassifier, LaMPClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(160, 2))
Y = (X[:, [0, 0, 1]] + rng.normal(size=(160, 3)) > 0).astype(float)
Y[:, 1] = Y[:, 0]  # Labels 0 and 1 are the same.
NEW, RECORDED = X[100:], Y[100:]
LAMP: dict[str, Any] = {"base_scores": None, "max_epochs": 1, "random_state": 0}


@pytest.fixture(scope="module")
def automatic() -> AutoClassifier:
    return AutoClassifier(seconds=0, random_state=0).fit(X[:100], Y[:100])


@pytest.fixture(scope="module")
def lamp() -> LaMPClassifier:
    return LaMPClassifier(**LAMP, validation_fraction=0.4).fit(X[:100], Y[:100])


@pytest.mark.parametrize("name", ["automatic", "lamp"])
def test_estimators_ask_their_model(name: str, request: pytest.FixtureRequest) -> None:
    estimator = request.getfixturevalue(name)
    frame = estimator.suggest(NEW, given={"0": 1}, k=2, cost={"2": 3})
    expected = estimator.model_.suggest(NEW, given={"0": 1}, k=2, cost={"2": 3})
    pd.testing.assert_frame_equal(frame, expected)
    assert "0" not in set(frame["label"])
    wrong = RECORDED.copy()
    wrong[3, 1] = 1 - wrong[3, 1]
    result = estimator.audit(NEW, wrong)
    pd.testing.assert_frame_equal(result.cells, estimator.model_.audit(NEW, wrong).cells)
    probability = result.cells.set_index(["row", "label"])["probability"]
    assert probability[3, "1"] < 0.3


def test_labels_may_be_sets_and_inputs_frames(tmp_path: Any) -> None:
    names = np.array(["calm", "sad", "loud"])
    sets = [set(names[row == 1].tolist()) for row in Y]
    frame = pd.DataFrame(X, columns=["tempo", "energy"])
    estimator = AutoClassifier(seconds=0, random_state=0).fit(frame[:100], sets[:100])
    loaded = AutoClassifier.load(estimator.save(tmp_path / "model"))
    for model in (estimator, loaded):
        suggested = model.suggest(frame[100:], given=[{"calm": 1}] * 60, candidates=["loud"])
        assert set(suggested["label"]) == {"loud"}
        result = model.audit(frame[100:], [*sets[100:-1], None])
        assert len(result.cells) == 59 * 3
    with pytest.raises(ValueError, match="The feature names should match"):
        loaded.suggest(frame[["tempo"]])
    with pytest.raises(ValueError, match="names of labels that training samples have"):
        loaded.audit(frame[100:], [{"happy"}] * 60)


@pytest.mark.parametrize("estimator", [AutoClassifier(), LaMPClassifier()])
def test_an_unfitted_estimator_is_refused(estimator: Any) -> None:
    with pytest.raises(NotFittedError):
        estimator.suggest(X)
    with pytest.raises(NotFittedError):
        estimator.audit(X, Y)


def test_inputs_and_labels_are_checked_as_in_predict(automatic: AutoClassifier) -> None:
    with pytest.raises(ValueError, match="X has 1 features, but AutoClassifier is expecting 2"):
        automatic.suggest(NEW[:, :1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        automatic.audit(NEW, RECORDED[:-1])
    with pytest.raises(ValueError, match="requires y to be passed"):
        automatic.audit(NEW, None)
    with pytest.raises(ValueError, match="'targets' among labels of the model"):
        automatic.suggest(NEW, targets=["happy"])


def test_estimators_without_messages_refuse_with_the_reason() -> None:
    classes = AutoClassifier(seconds=0, random_state=0).fit(X, rng.choice(list("abc"), 160))
    unlearned = LaMPClassifier(**LAMP).fit(X[:60], Y[:60])  # Six samples are for validation.
    for estimator, reason in ((classes, "can occur together"), (unlearned, "how given labels")):
        with pytest.raises(ValueError, match=reason):
            estimator.suggest(X)
        with pytest.raises(ValueError, match=reason):
            estimator.audit(X, estimator.predict(X))
    assert not hasattr(KernelRidgeClassifier(), "suggest")
