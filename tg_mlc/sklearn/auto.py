"""The default for data without a tuned model, as an estimator."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from typing_extensions import Self

from tg_mlc._options import check_choice
from tg_mlc.metrics import DECISION_METRICS
from tg_mlc.metrics._inputs import FloatArray
from tg_mlc.sklearn.estimator import draw_seed, log_odds
from tg_mlc.sklearn.inputs import RawInputEstimator, make_samples
from tg_mlc.stacking import auto


@dataclass(eq=False, repr=False)
class AutoClassifier(RawInputEstimator):
    """Label message passing and other classifiers, combined by scores of samples that they have not seen
    (:func:`tg_mlc.stacking.auto`), as an estimator of scikit-learn.

    Args:
        inputs (str, optional): As of :class:`LaMPClassifier`. (default: :obj:`"auto"`)
        seconds (float, optional): The time that fitting may take, roughly. (default: :obj:`300`)
        threshold (str, optional): The metric for which thresholds are chosen. (default: :obj:`"f1_micro"`)
        random_state (int or RandomState, optional): What decides folds, trees and weights. (default: :obj:`None`)

    Attributes:
        model_ (AutoModel): The fitted model.
    """

    inputs: str = "auto"
    _: KW_ONLY
    seconds: float = 300.0
    threshold: str = "f1_micro"
    random_state: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Fits the model.

        Args:
            X, y (Any): Inputs and labels, as of :meth:`LaMPClassifier.fit`.
        """
        check_choice("threshold", self.threshold, DECISION_METRICS)
        X = self._read_training_inputs(X)
        matrix = self._read_labels(X, y)
        samples = make_samples(self.inputs_, X, matrix, self._form.names, np.arange(len(matrix)))
        self.model_ = auto(samples, self.seconds, draw_seed(self.random_state))
        if self._form.form == "classes":
            return self._fix_threshold(0.5)
        self.thresholds_ = self.model_.tuners[self.threshold].fitted()
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _logits(self, X: Any) -> FloatArray:
        return log_odds(self.model_.predict_proba(X))
