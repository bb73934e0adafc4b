"""The default model: classifiers, label message passing over their scores, and thresholds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor

from tg_mlc._options import check_choice, check_number
from tg_mlc.data import MultiLabelDataset, Split, random_split
from tg_mlc.data._label_values import check_known
from tg_mlc.graphs.hierarchy import coherent as make_coherent
from tg_mlc.graphs.hierarchy import coherent_decider
from tg_mlc.inference import Model
from tg_mlc.inference.decisions import Calibration, Coherence, Decision, GivenLabels
from tg_mlc.inference.features import Classifiers, stages_of
from tg_mlc.inference.network import data_hash
from tg_mlc.inference.networks import Combination, Networks
from tg_mlc.inputs import Chain, kind_of
from tg_mlc.inputs.preprocessor import as_tensors
from tg_mlc.metrics import tune_thresholds
from tg_mlc.metrics.calibration import Calibration as LabelCalibration
from tg_mlc.stacking.classifiers import AUTOMATIC, MANY_LABELS, many_labels, ranks_and_decides
from tg_mlc.stacking.combination import LogitStacking
from tg_mlc.stacking.features import StackingFeatures
from tg_mlc.stacking.given import GivenLabelStacking, GivenMasks

if TYPE_CHECKING:
    from tg_mlc.stacking.folds import Folds, Search

#: Fraction of the time for classifiers; a larger one for hierarchies or more than 512 labels,
#: where classifiers contribute more than messages.
CLASSIFIER_SHARE, MANY_SHARE = 0.4, 0.9
# A classifier replaces the combination if it is better on all parts (by chance: 1 in 32).
_PARTS = 5


def auto(
    dataset: MultiLabelDataset,
    seconds: float = 300.0,
    seed: int = 0,
    given_masks: GivenMasks = "both",
    coverage_share: float = 0.0,
    calibrate: bool = False,
    *,
    search: Search | None = None,
) -> Model:
    """Fits a model to training samples: bags, texts, vectors, molecules or DNA.

    Held-out scores of training samples decide all choices:

    1. Classifiers are tuned, with the scale of inputs (:class:`~tg_mlc.stacking.StackingFeatures`):
       linear models, kernels and trees; for a hierarchy or more than 512 labels, kernels, trees and
       networks that fit all labels at once.
    2. LaMP is trained on scores and inputs, once for each of five folds (fewer in short time).
    3. The logits of classifiers and LaMP are combined with weights of at least zero
       (:class:`~tg_mlc.stacking.combination.LogitStacking`), unless one of them alone is better.
    4. For each metric, thresholds or label sets are fitted to the combined scores
       (:func:`~tg_mlc.metrics.tune_thresholds`, cross-fitted).
    5. Given labels change other labels by messages from residuals and by similar training samples
       (:class:`~tg_mlc.stacking.given.GivenLabelStacking`).

    .. code-block:: python

        dataset = from_csv("songs.csv", label_columns=["calm", "sad"])
        split = stratified_split(dataset.y, (0.8, 0.0, 0.2))
        model = auto(dataset[split.train])
        print(model.evaluate(dataset[split.test]))
        probabilities = model.probabilities([[61.5, 0.2]])

    Args:
        dataset (MultiLabelDataset): The training samples. All are used, even those of a test part.
        seconds (float, optional): The approximate time; hundreds of labels may take longer. If time
            runs out during a search, results depend on the speed of the machine.
            (default: :obj:`300`)
        seed (int, optional): Seed of folds, trees and weights. (default: :obj:`0`)
        given_masks (str, optional): The labels that ``predict(..., given=...)`` will get:
            present and absent labels (:obj:`"both"`), or only :obj:`"present"` labels.
            (default: :obj:`"both"`)
        coverage_share (float, optional): Fraction of randomly drawn samples that are held out to
            guarantee the coverage of ``predict(..., coverage=0.9)``. (default: :obj:`0`)
        calibrate (bool, optional): Whether to calibrate each label; otherwise, probabilities are
            calibrated only on average over labels. (default: :obj:`False`)
        search (callable, optional): A function that searches options of LaMP, in additional time.
            It is called with a function ``attempt(changes)``, which returns a held-out loss, and
            the default options, and returns the best changes. (default: :obj:`None`, a few trials)

    Returns:
        Model: Its :attr:`~tg_mlc.inference.Model.report` holds the choices, their scores, and the
        time of each part; its attribute :obj:`training` is an :class:`AutoTraining`.

    Raises:
        ImportError: If scikit-learn is not installed (extra ``data``).
        ValueError: If samples are of another kind, or too few for two folds, or no sample knows a
            label.
    """
    from lightning.pytorch.utilities.seed import isolate_rng  # Loading a model needs no Lightning.

    check_number("seconds", seconds)
    check_number("coverage_share", coverage_share, below=1.0)
    check_choice("given_masks", given_masks, get_args(GivenMasks))
    # Coverage guarantees need exchangeable samples, so the split is not stratified.
    split = random_split(len(dataset), (1 - coverage_share, 0.0, coverage_share), seed)
    train = dataset[split.train] if coverage_share else dataset
    if len(train) < 2:
        expected = "at least 2 samples to train on"
        raise ValueError(f"Expected {expected} (got {len(train)} of {len(dataset)})")
    check_known(train.y, dataset.label_names)
    with isolate_rng():
        model = _Fit(train, seconds, seed, search).model(given_masks, calibrate)
    return model.conformalize(dataset[split.test]) if coverage_share else model


class AutoTraining(NamedTuple):
    """Further results of :func:`auto`."""

    held_out: np.ndarray  #: Combined held-out logits :math:`(N, L)` of training samples.
    fold: np.ndarray | None  #: Each sample's fold index :math:`(N)`, if LaMP was trained.


class _Fit:
    """Fits the stages of a model in turn, each to held-out logits of the previous stage."""

    def __init__(
        self, dataset: MultiLabelDataset, seconds: float, seed: int, search: Search | None
    ) -> None:
        self.dataset, self.seconds, self.seed, self.search = dataset, seconds, seed, search
        self.start, self.y = time.monotonic(), dataset.y.numpy()
        graph = dataset.label_graph
        # Only hierarchies have parents.
        self.hierarchy = graph if graph is not None and graph.is_hierarchy else None
        self.folds: Folds | None = None
        self.without_lamp: str | None = None

    def model(self, given_masks: GivenMasks, calibrate: bool) -> Model:
        names = list(self.dataset.label_names)
        features, samples = self.features()
        networks = self.networks(samples)
        combination, values = self.combination(features, samples)
        given = self.given(given_masks)
        coherence = Coherence(names, self.hierarchy)
        calibration, scores = self.calibration(given, calibrate)
        decision = self.decision(coherence, scores)
        stages = [networks, combination, given, calibration, coherence, decision]
        fitted = [stage for stage in stages if stage is not None]
        model = Model([*stages_of(self.preprocessor), *fitted], names)
        fold = None if self.folds is None else self.folds.fold
        model.training = AutoTraining(self.held_out, fold)
        report = self.report(features, values)
        report["given"] = None if given is None else given.engine.report
        report["validation"] = {name: tuner.best_value for name, tuner in decision.tuners.items()}
        report["weights"] = combination.weight.mean(axis=0).tolist()
        report["calibration"] = None if calibration is None else calibration.methods
        report["seconds"] = time.monotonic() - self.start
        model.facts["report"] = as_tensors(report)
        return model.count_labels(self.y)

    def features(self) -> tuple[StackingFeatures, MultiLabelDataset]:
        """Returns the classifiers, and samples with their held-out scores."""
        share, searches = CLASSIFIER_SHARE, AUTOMATIC
        if self.hierarchy is not None or self.dataset.num_labels > MANY_LABELS:
            share, searches = MANY_SHARE, many_labels(self.hierarchy)
        seconds = self.seconds * share
        features = StackingFeatures(searches=searches, seconds=seconds, seed=self.seed)
        self.preprocessor = Chain(*kind_of(self.dataset).steps(), features)
        rows = torch.arange(len(self.dataset))
        everything = Split(rows, rows[:0], rows[:0], "all training samples")
        return features, self.preprocessor.fit_transform(self.dataset, everything)

    def networks(self, samples: MultiLabelDataset) -> Networks | None:
        """Returns one LaMP per fold; :obj:`None` if time is too short or training diverges."""
        from tg_mlc.stacking.folds import train_folds

        seconds = self.seconds - (time.monotonic() - self.start)
        try:
            self.folds = train_folds(samples, seconds, self.seed, self.search)
            self.without_lamp = "the time was too short to train it" if self.folds is None else None
        except FloatingPointError as error:
            self.without_lamp = f"its training diverged: {error}"
            reason = f"because LaMP's training diverged: {error}"
            warnings.warn(f"The model is made of classifiers alone, {reason}", stacklevel=5)
        return None if self.folds is None else Networks(self.folds.models, self.dataset.label_names)

    def combination(
        self, features: StackingFeatures, samples: MultiLabelDataset
    ) -> tuple[Combination, dict[str, float]]:
        """Returns the combination of all logits, and the validation value of each candidate."""
        logits = samples.rows("base_scores").double().numpy()
        titles = [classifier.title for classifier in features.classifiers.values()]
        if self.folds is not None:
            logits = np.concatenate([logits, self.folds.held_out[..., None]], axis=-1)
            titles.append("LaMP")
        stacking, values = best_combination(logits, self.y, [*features.classifiers, "lamp"])
        self.scores = torch.from_numpy(stacking.predict_proba(logits))
        self.held_out = stacking.decision_function(logits)
        assert stacking.weight is not None
        assert stacking.bias is not None
        return Combination(stacking.weight, stacking.bias, titles), values

    def given(self, masks: GivenMasks) -> GivenLabels | None:
        """Returns the stage for given labels; :obj:`None` for a single label or sample."""
        if self.y.shape[1] == 1 or len(self.y) == 1:
            return None
        engine = GivenLabelStacking(masks)
        return GivenLabels(engine.fit(self.held_out, self.y, self.seed))

    def calibration(
        self, given: GivenLabels | None, calibrate: bool
    ) -> tuple[Calibration | None, Tensor]:
        """Returns the calibration, if requested, and held-out probabilities of training samples."""
        if not calibrate:
            return None, self.scores
        free, masked = LabelCalibration.fit(self.y, self.scores, self.seed), None
        if given is not None:
            logits, targets = given.engine.masked
            masked = LabelCalibration.fit(targets, expit(logits), self.seed)
        calibration = Calibration(free, masked)
        return calibration, calibration.probabilities(self.scores)

    def decision(self, coherence: Coherence, scores: Tensor) -> Decision:
        """Returns thresholds or label sets for every metric."""
        pairs = coherence.pairs()
        scores = scores if pairs is None else make_coherent(scores, pairs)
        tuners = tune_thresholds(self.y, scores, "cross_fitted", seed=self.seed)
        if pairs is not None:
            for name, tuner in tuners.items():
                tuners[name] = coherent_decider(tuner, pairs, self.y, scores)
        return Decision(tuners)

    def report(self, features: StackingFeatures, values: dict[str, float]) -> dict[str, Any]:
        """Returns the chosen settings, and the scores that decided them."""
        folds, lamp = self.folds, None
        if folds is not None:
            lamp = {"folds": len(folds.models), "epochs": folds.epochs, **folds.options}
        names, classifiers = ("view", "setting", "seconds"), {}
        for key, classifier in features.classifiers.items():
            classifiers[key] = {name: getattr(classifier, name) for name in names}
        return {
            "classifiers": classifiers,
            "lamp": lamp,
            "without_lamp": self.without_lamp,
            "values": values,
            "data": data_hash(self.dataset),
            "options": {"seconds": self.seconds, "seed": self.seed},
        }


class ClassifierScore(NamedTuple):
    """Probabilities :math:`(N, L)` by one classifier."""

    held_out: np.ndarray  #: probabilities of training samples, by fits without these samples
    scores: np.ndarray  #: probabilities of the raw inputs
    seconds: float  #: time of tuning and fitting


def classifier_scores(model: Model, raw: Any) -> dict[str, ClassifierScore]:
    """Returns probabilities of raw inputs by the title of each classifier in a model of
    :func:`auto`. Raises :obj:`RuntimeError` for a loaded model, which has no held-out scores.
    """
    stage = model.stage(Classifiers)
    if stage is None or model.training is None:
        got = "one without scores of training samples"
        raise RuntimeError(f"Expected a model that was fitted here (got {got})")
    base_scores = model.prepare(raw).samples.rows("base_scores").double().numpy()
    results = {}
    for index, classifier in enumerate(stage.features.classifiers.values()):
        held_out = expit(classifier.held_out)
        scores = expit(base_scores[..., index] / classifier.scale)
        results[classifier.title] = ClassifierScore(held_out, scores, classifier.seconds)
    return results


def best_combination(
    logits: np.ndarray, y: np.ndarray, names: Sequence[str]
) -> tuple[LogitStacking, dict[str, float]]:
    """Returns the best stacking, and all values. A single input must be better on every part."""
    stackings = {"all": LogitStacking().fit(logits, y)}
    for index, name in zip(range(logits.shape[-1]), names, strict=False):
        stackings[name] = single = LogitStacking().fit(logits[..., [index]], y)
        weight = np.zeros(logits.shape[1:])
        weight[:, [index]] = single.weight
        single.weight = weight
    values = {name: _values(y, value.predict_proba(logits)) for name, value in stackings.items()}
    better = [name for name in stackings if (values[name] > values["all"]).all()]
    best = max(better, key=lambda name: values[name].sum(), default="all")
    return stackings[best], {name: float(value.mean()) for name, value in values.items()}


def _values(y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Returns the value of :func:`ranks_and_decides` for up to five parts of the samples."""
    labelled = np.flatnonzero(~np.isnan(y).all(axis=1))
    parts = [labelled[i::_PARTS] for i in range(min(_PARTS, len(labelled)))]
    return np.array([ranks_and_decides(y[part], scores[part]) for part in parts])
