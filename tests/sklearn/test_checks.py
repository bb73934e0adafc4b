"""scikit-learn's own checks of estimators."""

from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from tg_mlc.sklearn import (
    ChainEnsembleClassifier,
    KernelRidgeClassifier,
    LabelFrequencyClassifier,
    LaMPClassifier,
    LinearClassifier,
    MLkNNClassifier,
)

# The smallest model, as the checks fit it some hundred times. LabelTreesClassifier has a solver of its own randomness,
# and MorganForestClassifier takes SMILES where the checks pass numbers: both have tests of their own.
SMALL = LaMPClassifier(channels=4, num_steps=1, heads=1, evidence=("svm",), max_epochs=1, random_state=0)
ESTIMATORS = [
    SMALL,
    LinearClassifier(),
    KernelRidgeClassifier(),
    ChainEnsembleClassifier(num_chains=3),
    MLkNNClassifier(k=3),
    LabelFrequencyClassifier(),
]


def skipped(estimator: Any) -> dict[str, str]:
    """The checks that an estimator cannot pass, with the reason."""
    return {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=skipped)
def test_checks(estimator: Any, check: Any) -> None:
    check(estimator)
