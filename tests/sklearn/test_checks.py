"""Runs all checks of scikit-learn on one estimator, and checks of state on the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from tests.quick import train_little
from tg_mlc._optional import is_installed
from tg_mlc.sklearn import (
    AutoClassifier,
    ChainEnsembleClassifier,
    ForestClassifier,
    KernelRidgeClassifier,
    LabelFrequencyClassifier,
    LabelTreesClassifier,
    LaMPClassifier,
    LinearClassifier,
    MLkNNClassifier,
)

SMALL = {"model_options": {"channels": 4, "heads": 1}, "num_steps": 1, "max_epochs": 1}
OTHERS = [
    LaMPClassifier(base_scores=("svm",), random_state=0, **SMALL),
    AutoClassifier(seconds=0, random_state=0),
    KernelRidgeClassifier(),
    ChainEnsembleClassifier(3),
    MLkNNClassifier(n_neighbors=3),
    ForestClassifier(5, random_state=0),
    LabelFrequencyClassifier(),
    *([LabelTreesClassifier(1)] if is_installed("napkinxc") else []),
]
#: Checks of arguments, and of the state that a fit makes.
STATE = {
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_fit_check_is_fitted",
    "check_n_features_in",
    "check_dict_unchanged",
    "check_estimators_pickle",
    "check_fit_idempotent",
}
#: napkinxc's trees cannot be pickled, and its solver starts at random whatever the seed.
SKIPPED = {"LabelTreesClassifier": {"check_estimators_pickle", "check_fit_idempotent"}}


@parametrize_with_checks([LinearClassifier()])
def test_linear_classifier_passes_all_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def run_checks(estimator: Any, names: set[str]) -> None:
    checks = estimator_checks_generator(estimator)
    chosen = [check for check in checks if check[1].func.__name__ in names]
    assert {check.func.__name__ for _, check in chosen} == names
    for cloned, check in chosen:
        check(cloned)


@pytest.mark.parametrize("estimator", OTHERS, ids=lambda value: type(value).__name__)
def test_estimators_pass_the_checks_of_state(estimator: Any) -> None:
    run_checks(estimator, STATE - SKIPPED.get(type(estimator).__name__, set()))


@pytest.mark.slow
def test_auto_classifier_with_lamp_passes_checks_of_state(monkeypatch: pytest.MonkeyPatch) -> None:
    trained, fit = [], AutoClassifier.fit
    train_little(monkeypatch, max_epochs=1)
    record = lambda self, X, y: trained.append(fit(self, X, y)) or self  # noqa: E731
    monkeypatch.setattr(AutoClassifier, "fit", record)
    names = STATE - {"check_fit_idempotent"}
    run_checks(AutoClassifier(seconds=60, random_state=0), names)
    assert all(classifier.model_.networks for classifier in trained)


def test_labels_that_programs_have_changed_are_warned_of():
    X, y = np.arange(12.0).reshape(-1, 1), [["ca\u200blm"], ["sad", "2-Mar"], ["sad"]] * 4
    with pytest.warns(UserWarning, match="invisible characters") as caught:
        LinearClassifier().fit(X, y)
    assert any("dates or decimals" in str(warning.message) for warning in caught)
