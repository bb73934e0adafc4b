"""Estimators of the baselines, with raw inputs, thresholds and all formats of labels."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any, ClassVar

import numpy as np
import torch
from typing_extensions import Self

from tg_mlc import baselines
from tg_mlc.data import Split
from tg_mlc.inference import Model
from tg_mlc.inference.decisions import Coherence, Decision
from tg_mlc.inference.features import Features
from tg_mlc.inference.flow import Flow
from tg_mlc.inputs import Chain, Preprocessor
from tg_mlc.inputs.kinds import kinds_by_form
from tg_mlc.sklearn.estimator import RawInputEstimator, draw_seed
from tg_mlc.sklearn.label_form import SMALLEST

_OWN_OPTIONS = {"inputs": "auto", "threshold": 0.5}


class BaselineScores(Features):
    """Computes the scores of a baseline for raw inputs, or for matrices if there are no steps."""

    def __init__(self, baseline: baselines.Baseline, view: Any, *steps: Preprocessor) -> None:
        super().__init__(*steps)
        self.baseline, self.view = baseline, view

    def read(self, raw: Any) -> Any:
        return super().read(raw) if self.steps else raw

    def apply(self, flow: Flow) -> None:
        super().apply(flow)
        X = flow.samples if self.view is None else self.view.matrix(flow.samples)
        scores = np.asarray(self.baseline.predict_proba(X), dtype=float)
        # scikit-learn's estimator checks reject probabilities of exactly 0 and 1.
        flow.probabilities = torch.from_numpy(np.clip(scores, SMALLEST, 1 - SMALLEST))

    def state_dict(self) -> dict[str, Any]:
        hint = "pickle the estimator"
        raise ValueError(f"Expected a model that a folder can hold (got a baseline); {hint}")


class BaselineEstimator(RawInputEstimator):
    """Base class of the baselines' estimators. Each has two more arguments than its baseline.

    Texts, SMILES and DNA become matrices as in :func:`tg_mlc.auto`: weighted words, substructures
    (Morgan fingerprints) or k-mers.

    Args:
        inputs (str, optional): As in :class:`LaMPClassifier`. (default: :obj:`"auto"`)
        threshold (float, optional): The score from which a label applies. (default: :obj:`0.5`)

    Attributes:
        baseline_ (Baseline): The fitted baseline.
    """

    baseline: ClassVar[type[baselines.Baseline]]
    threshold: float

    def __init_subclass__(cls, baseline: type[baselines.Baseline], **kwargs: Any) -> None:
        """Gives the class the arguments of its baseline."""
        super().__init_subclass__(**kwargs)
        keyword = Parameter.KEYWORD_ONLY
        extra = [Parameter(name, keyword, default=value) for name, value in _OWN_OPTIONS.items()]
        parameters = [*signature(baseline).parameters.values(), *extra]
        arguments = signature(baseline).replace(parameters=parameters)

        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            bound = arguments.bind(*args, **kwargs)
            bound.apply_defaults()
            vars(self).update(bound.arguments)

        self_parameter = Parameter("self", Parameter.POSITIONAL_ONLY)
        typed_init: Any = init
        typed_init.__signature__ = arguments.replace(parameters=[self_parameter, *parameters])
        cls.baseline, cls.__init__ = baseline, typed_init  # type: ignore[method-assign]

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def fit(self, X: Any, y: Any) -> Self:
        """Fits the baseline to inputs and labels as in :meth:`LaMPClassifier.fit`."""
        X = self._read_training_inputs(X)
        matrix = self._read_labels(X, y)
        kind = kinds_by_form()[self.inputs_]
        steps, view = Chain(), None
        if not kind.forms[self.inputs_].is_matrix:
            rows = torch.arange(len(matrix))
            samples = self._make_samples(X, matrix, rows.numpy())
            steps = Chain(*kind.steps())
            samples = steps.fit_transform(samples, Split(rows, rows[:0], rows[:0], "all samples"))
            view = next(iter(kind.make_views(samples).values())).fit(samples)
            X = view.matrix(samples)
        options = {key: v for key, v in self.get_params().items() if key not in _OWN_OPTIONS}
        if not isinstance(options.get("random_state", 0), int):
            options["random_state"] = draw_seed(options["random_state"])
        self.baseline_ = self.baseline(**options).fit(X, matrix)
        scores, names = BaselineScores(self.baseline_, view, *steps.steps), self._form.names
        self.model_ = Model([scores, Coherence(names), Decision()], names)
        self._fix_threshold(self.threshold)
        return self


class LinearClassifier(BaselineEstimator, baseline=baselines.LinearBaseline):
    """The estimator of :class:`~tg_mlc.baselines.LinearBaseline`."""


class KernelRidgeClassifier(BaselineEstimator, baseline=baselines.KernelRidgeBaseline):
    """The estimator of :class:`~tg_mlc.baselines.KernelRidgeBaseline`."""


class ChainEnsembleClassifier(BaselineEstimator, baseline=baselines.ChainEnsemble):
    """The estimator of :class:`~tg_mlc.baselines.ChainEnsemble`."""


class MLkNNClassifier(BaselineEstimator, baseline=baselines.MLkNN):
    """The estimator of :class:`~tg_mlc.baselines.MLkNN`."""


class LabelTreesClassifier(BaselineEstimator, baseline=baselines.LabelTrees):
    """The estimator of :class:`~tg_mlc.baselines.LabelTrees`."""


class ForestClassifier(BaselineEstimator, baseline=baselines.ForestBaseline):
    """The estimator of :class:`~tg_mlc.baselines.ForestBaseline`."""


class LabelFrequencyClassifier(BaselineEstimator, baseline=baselines.LabelFrequency):
    """The estimator of :class:`~tg_mlc.baselines.LabelFrequency`, which ignores inputs."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags
