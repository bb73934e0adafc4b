"""Base classes of the estimators, which read raw inputs and all formats of labels."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_array, check_random_state, get_tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data
from typing_extensions import Self

from tg_mlc._frames import as_frame
from tg_mlc._names import shorten
from tg_mlc._numbers import as_list
from tg_mlc._options import check_choice, check_share
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data._label_values import check_known
from tg_mlc.data.parts import KIND
from tg_mlc.graphs import LabelGraph
from tg_mlc.inference import Model, Query
from tg_mlc.inference.flow import Flow
from tg_mlc.inference.folder import read_folder
from tg_mlc.inference.network import packed, unpacked
from tg_mlc.inputs.checks import warn_of_names
from tg_mlc.inputs.kinds import infer_form, kinds_by_form
from tg_mlc.inputs.schema import Schema, cells_of, hints_of, is_dense_frame
from tg_mlc.metrics import ThresholdTuner
from tg_mlc.metrics._inputs import FloatArray
from tg_mlc.metrics.coverage import Per
from tg_mlc.sklearn.label_form import SMALLEST, LabelForm

# Fitted attributes that are saved in a folder; the last one is an array of names.
_FITTED = ("inputs_", "metric_", "n_iter_", "_columns", "n_features_in_", "feature_names_in_")


class RawInputEstimator(ClassifierMixin, BaseEstimator):
    """Base class of classifiers of matrices, data frames, texts, SMILES and DNA, with labels as a
    matrix, sets or classes. :attr:`model_` makes all predictions.

    Attributes:
        model_ (Model): The fitted model.
        metric_ (str): The metric that thresholds or label sets maximise.
        inputs_ (str): The format of raw inputs, specified or inferred.
        n_features_in_ (int): The number of columns of a matrix.
        feature_names_in_ (numpy.ndarray): The names of a data frame's columns.
    """

    inputs: str | Mapping[str, Any]
    inputs_: str
    model_: Model
    metric_: str
    _form: LabelForm
    _columns: dict[str, Any] | None  #: the schema of a data frame

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The names (or indices) of labels; for single-label targets, the classes."""
        return self._form.classes

    @property
    def thresholds_(self) -> FloatArray:
        """The thresholds of probabilities :math:`(L)`, NaN if decisions use no thresholds."""
        thresholds: FloatArray = self.model_.thresholds(self.metric_)
        return thresholds

    def predict(
        self,
        X: Any,
        given: Any = None,
        coherent: bool | LabelGraph | None = None,
        coverage: float | None = None,
        coverage_per: Per = "label",
    ) -> Any:
        """Returns labels for inputs :math:`(N, F)`, both in the format of :meth:`fit`.

        Args:
            X (Any): Inputs.
            given (Any, optional): Known labels, by name or as a matrix with NaN for unknown (see
                :func:`~tg_mlc.data.given_labels`). They keep their values in predictions.
                (default: :obj:`None`)
            coherent (bool or LabelGraph, optional): Whether labels apply only with their ancestors
                in the hierarchy of the fit, or in the label graph that is passed here.
                (default: :obj:`None`, :obj:`True` if the fit had a hierarchy)
            coverage, coverage_per (optional): The fraction of present labels that label sets have
                to hold, per label or per sample (see :meth:`tg_mlc.inference.Model.predict`), after
                a fit with :obj:`coverage_share`. (default: :obj:`None`)

        Raises:
            ValueError: If the model, or a fit to classes, does not support an option.
        """
        query = {"given": given, "coherent": coherent}
        flow = self._ask(X, **query, coverage=coverage, coverage_per=coverage_per)
        return self._form.decide(self._margins(flow))

    def predict_proba(
        self, X: Any, given: Any = None, coherent: bool | LabelGraph | None = None
    ) -> FloatArray:
        """Returns the probabilities :math:`(N, L)` of labels. For classes, rows sum to one.

        Args:
            X, given, coherent (Any): As in :meth:`predict`. In coherent predictions, no label has a
                larger probability than its ancestors.
        """
        flow = self._ask(X, given=given, coherent=coherent)
        return self._form.probabilities(flow.probabilities.double().numpy())

    def decision_function(self, X: Any) -> FloatArray:
        """Returns the log odds :math:`(N, L)` of labels minus the log odds of their thresholds. The
        difference is at least 0 for predicted labels. Two classes give :math:`(N)` log odds.
        """
        margins = self._margins(self._ask(X))
        return margins[:, 0] if self._form.is_binary else margins

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Returns the subset accuracy: the fraction of samples whose observed labels are all right.
        Labels that no training sample had count as wrong.
        """
        margins = self._margins(self._ask(X))
        if self._form.form == "classes":
            return float(accuracy_score(y, self._form.decide(margins), sample_weight=sample_weight))
        target = self._form.encode(y, unseen=True)
        check_consistent_length(margins, target)
        decisions = np.pad(margins >= 0, [(0, 0), (0, target.shape[1] - margins.shape[1])])
        is_right = (target == decisions) | np.isnan(target)
        return float(np.average(is_right.all(axis=1), weights=sample_weight))

    def _ask(self, X: Any, **options: Any) -> Flow:
        """Reads inputs and runs the model."""
        model = self._fitted_model()
        for name in ("given", "coherent", "coverage") if self._form.form == "classes" else ():
            if options.get(name) is not None and options[name] is not False:
                raise ValueError(f"Expected no '{name}' where each sample has one class (got some)")
        return model.run(self._read_inputs(X), Query(metric=self.metric_, **options))

    def _fitted_model(self) -> Model:
        """Returns the model, or raises the error of scikit-learn before a fit."""
        check_is_fitted(self)
        return self.model_

    def _margins(self, flow: Flow) -> FloatArray:
        """Returns log odds :math:`(N, L)` minus log odds of thresholds; for classes, log odds."""
        is_changed = flow.given is not None or flow.pairs is not None or self.model_.is_calibrated
        if flow.logits is None or is_changed:
            logits = log_odds(flow.probabilities.double().numpy())
        else:  # Logits are more precise than probabilities near 1.
            logits = flow.logits.double().numpy()
        if self._form.form == "classes":
            return logits
        assert flow.thresholds is not None
        assert flow.decisions is not None
        # A missing threshold (of label sets) is replaced by 0.5. An infinite one is never reached.
        gaps = logits - logit(np.minimum(np.nan_to_num(flow.thresholds, nan=0.5, posinf=1.0), 1.0))
        # The sign of a margin agrees with the decision in spite of rounding.
        above, below = np.maximum(gaps, 0), np.minimum(gaps, -np.finfo(gaps.dtype).tiny)
        signed: FloatArray = np.where(flow.decisions.numpy() == 1, above, below)
        return signed

    def _read_labels(self, X: Any, y: Any, *, keep: bool = False) -> FloatArray:
        """Returns the matrix of labels, in the format of the last fit or in a new format."""
        if y is None:
            # This is the message of scikit-learn.
            expected = f"This {type(self).__name__} estimator requires y to be passed"
            raise ValueError(f"{expected}, but the target y is None.")
        form, matrix = (self._form, self._form.encode(y)) if keep else LabelForm.read(y)
        check_consistent_length(X, matrix)
        if not keep:
            check_known(matrix, form.names)
            warn_of_names(form.names)
        self._form = form
        return matrix

    def _read_training_inputs(self, X: Any) -> Any:
        X = as_list(as_frame(X))
        self.inputs_ = KIND if isinstance(self.inputs, Mapping) else self.inputs
        check_choice("inputs", self.inputs_, ("auto", *kinds_by_form()))
        self.inputs_ = infer_form(X) if self.inputs_ == "auto" else self.inputs_
        self._columns = None
        return self._read_inputs(X, reset=True)

    def _read_inputs(self, X: Any, *, reset: bool = False) -> Any:
        """Returns a list of inputs, a data frame of inputs of several kinds, or a matrix in which
        nominal columns are one-hot encoded.
        """
        X, kind = as_list(as_frame(X)), kinds_by_form()[self.inputs_]
        if not kind.forms[self.inputs_].is_matrix:
            return kind.listed(X, self.inputs_)
        if reset:
            cells = cells_of(X) if is_dense_frame(X) else {}
            self._columns = Schema.infer(cells, {}, hints_of(X, cells)).to_dict() if cells else None
        allowed: Any = "allow-nan" if get_tags(self).input_tags.allow_nan else True
        options: Any = {"ensure_min_samples": 1 + reset, "ensure_all_finite": allowed}
        schema = None if self._columns is None else Schema.from_dict(self._columns)
        if schema is None or (schema.is_plain and not hasattr(X, "dtypes")):
            return validate_data(self, X, accept_sparse="csr", reset=reset, **options)
        if not hasattr(X, "dtypes"):
            got = f"(got a {type(X).__name__})"
            raise ValueError(f"Expected a data frame with the columns of the last fit {got}")
        validate_data(self, X, reset=reset, skip_check_array=True)
        return check_array(schema.matrix(cells_of(X)), estimator=self, input_name="X", **options)

    def _make_samples(
        self, X: Any, y: FloatArray, train: npt.NDArray[np.intp]
    ) -> MultiLabelDataset:
        """Returns samples from inputs of :meth:`_read_inputs`, with the training vocabulary."""
        kind, columns = kinds_by_form()[self.inputs_], getattr(self, "_columns", None)
        schema = None if columns is None else Schema.from_dict(columns)
        names = None if schema is None else schema.feature_names
        options: Any = {"train": train, "feature_names": names}
        options |= {"columns": self.inputs} if isinstance(self.inputs, Mapping) else {}
        form = kind.forms[self.inputs_].kind
        samples = kind.samples(kind.split(X), y, self._form.names, form, **options)
        samples.schema = samples.schema if schema is None else schema
        return samples

    def _fix_threshold(self, threshold: Any) -> None:
        """Sets the threshold of all labels; the threshold of classes is always one half."""
        check_share("threshold", threshold)
        tuner = ThresholdTuner()
        tuner.thresholds = np.array([0.5 if self._form.form == "classes" else float(threshold)])
        self.metric_ = tuner.metric
        self.model_.decision.tuners = {tuner.metric: tuner}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.sparse = True
        return tags


class SavedEstimator(RawInputEstimator):
    """Base class of estimators whose model learned how labels depend on each other. They are saved
    as tensors and plain data, without code.
    """

    def suggest(
        self,
        X: Any,
        given: Any = None,
        k: int = 1,
        *,
        targets: Sequence[str] | None = None,
        candidates: Sequence[str] | None = None,
        cost: Mapping[str, float] | None = None,
        budget: float | None = None,
    ) -> Any:
        """Suggests which labels of each input to look up next, as a data frame, by
        :func:`tg_mlc.joint.suggest`.

        Args:
            X, given (Any): As in :meth:`predict`.
            k, targets, candidates, cost, budget (optional): As in :func:`tg_mlc.joint.suggest`.
                Labels are named as in :obj:`given`.

        Raises:
            ValueError: If each sample has one class, the model did not learn how given labels
                change others, or :func:`tg_mlc.joint.suggest` refuses an option.
        """
        model = self._joint_model()
        options = {"targets": targets, "candidates": candidates, "cost": cost, "budget": budget}
        return model.suggest(self._read_inputs(X), given=given, k=k, **options)

    def audit(self, X: Any, y: Any) -> Any:
        """Finds recorded labels that are likely wrong, as a :class:`tg_mlc.joint.Audit`, among
        samples to which the estimator was not fitted. It has seen the labels of its training
        samples, and would find too few of their errors: for these, use
        :func:`tg_mlc.joint.audit`.

        Args:
            X, y (Any): Inputs and recorded labels, as in :meth:`fit`.

        Raises:
            ValueError: If each sample has one class, or the model did not learn how given labels
                change others.
        """
        model = self._joint_model()
        inputs, recorded = self._read_inputs(X), self._read_labels(X, y, keep=True)
        return model.audit(inputs, recorded)

    def _joint_model(self) -> Model:
        """Returns the model, if labels of a sample can occur together."""
        model = self._fitted_model()
        if self._form.form == "classes":
            raise ValueError("Expected labels that can occur together (got one class per sample)")
        return model

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes a folder. :meth:`load` restores the estimator from it, and :func:`tg_mlc.load`
        only :attr:`model_`.

        Args:
            path (str or PathLike): The folder. A model in it is replaced.

        Raises:
            ValueError: If a setting is not plain data, such as a :class:`numpy.random.RandomState`.
        """
        check_is_fitted(self)
        settings = {}
        for name, value in self.get_params(deep=False).items():
            is_tuner = isinstance(value, ThresholdTuner)
            settings[name] = {"tuner": value.state_dict()} if is_tuner else packed(value)
            if settings[name] is None:
                expected = f"Expected '{name}' to be plain data or a LabelGraph"
                hint = f"call set_params({name}=...) before 'save'"
                raise ValueError(f"{expected} (got {shorten(repr(value))}); {hint}")
        values = {name: getattr(self, name) for name in _FITTED if hasattr(self, name)}
        fitted = {n: v.tolist() if isinstance(v, np.ndarray) else v for n, v in values.items()}
        entry = {"class": type(self).__name__, "settings": settings, "fitted": fitted}
        entry["form"] = self._form.state_dict()
        return self.model_.save(path, beside={"estimator": entry})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Loads an estimator from a folder of :meth:`save`. Raises :obj:`ValueError` if the folder
        holds a different estimator or none.
        """
        content = read_folder(path)
        entry = content.get("estimator", {"class": "model without an estimator"})
        if entry["class"] != cls.__name__:
            expected = f"Expected '{os.fspath(path)}' to hold a {cls.__name__}"
            raise ValueError(f"{expected} (got a {entry['class']})")
        settings = dict[str, Any]()
        for name, value in entry["settings"].items():
            state = value.get("tuner")
            settings[name] = unpacked(value) if state is None else ThresholdTuner()
            if state is not None:
                settings[name].load_state_dict(state)
        estimator = cls(**settings)
        estimator._form = LabelForm.from_state(entry["form"])
        for name, value in entry["fitted"].items():
            setattr(estimator, name, np.array(value, object) if isinstance(value, list) else value)
        estimator.model_ = Model.from_content(content)
        return estimator


def draw_seed(random_state: Any) -> int:
    """Draws a seed from a random state as in scikit-learn."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def log_odds(probabilities: FloatArray) -> FloatArray:
    """Returns log odds of probabilities, which are finite even for 0 and 1."""
    return np.asarray(logit(np.clip(probabilities, SMALLEST, 1 - SMALLEST)))
