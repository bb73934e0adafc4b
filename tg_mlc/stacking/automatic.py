"""The default for data without a tuned model: classifiers, label message passing over them, and
thresholds."""

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

#: The share of the time that classifiers may take before label message passing.
CLASSIFIER_SHARE = 0.4
#: The time that learning from given labels may take in addition, as a share of the time that all
#: before may take.
GIVEN_SHARE = 0.2
#: Where labels form a hierarchy, or are more than 512: networks learn more there than messages do.
MANY_SHARE = 0.9
# A classifier replaces the combination only if it is better on all of this many parts (by chance: 1
# in 32).
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
    """Fits a model to any training samples: bags, texts, vectors, molecules or DNA.

    Scores of training samples from models that were fitted without them decide all choices:

    1. Linear, kernel and tree classifiers choose settings and the scale of inputs
       (:class:`~tg_mlc.stacking.StackingFeatures`); for a hierarchy or more than 512 labels,
       kernels, trees and networks that fit all labels at once; kernels use correlations of labels,
       unless these form a hierarchy.
    2. LaMP is trained on their scores and the inputs, once for each of five folds (fewer where time
    is short).
    3. Logits of all are combined with weights of at least zero
       (:class:`~tg_mlc.stacking.combination.LogitStacking`), unless one classifier alone does
       better.
    4. Thresholds are fitted to the combined scores, for each metric of the kind that generalises
       best, or the label sets of training samples decide (:func:`~tg_mlc.metrics.tune_thresholds`,
       cross-fitted).
    5. Where labels of a sample will be known, messages of their residuals go to the others, and
       training samples that agree with them count
       (:class:`~tg_mlc.stacking.given.GivenLabelStacking`); otherwise these change nothing.

    .. code-block:: python

        dataset = from_csv("songs.csv", label_columns=["calm", "sad"])
        split = stratified_split(dataset.y, (0.8, 0.0, 0.2))
        model = auto(dataset[split.train])
        print(model.evaluate(dataset[split.test]))
        probabilities = model.probabilities([[61.5, 0.2]])

    Args:
        dataset (MultiLabelDataset): Training samples, all of which are used.
        seconds (float, optional): The time that may be taken, roughly: small data sets take less;
            hundreds of labels take more where it is short, because each classifier is fitted in any
            case. Where it cuts a search short, results depend on the speed of the machine.
            (default: :obj:`300`)
        seed (int, optional): Seed of folds, trees and weights. (default: :obj:`0`)
        given_masks (str, optional): The labels that ``predict(..., given=...)`` will be told:
            :obj:`"both"`, present and absent ones, or :obj:`"present"`, only labels that apply.
            (default: :obj:`"both"`)
        coverage_share (float, optional): The share of samples, drawn at random, that no fit sees,
            so that ``predict(..., coverage=0.9)`` can promise what label sets hold. (default:
            :obj:`0`)
        calibrate (bool, optional): Whether to calibrate the combined probabilities of each label
            once more, which the combination itself does on average. (default: :obj:`False`)
        search (callable, optional): Finds options of LaMP in further time: it is given a function
            that trains with some of them changed and returns the loss of held-out samples, and the
            default options, and returns the best changes. (default: :obj:`None`, a few options are
            tried)

    Returns:
        Model: Its :attr:`~tg_mlc.inference.Model.report` tells the choices, the scores that decided
        them, and how long each part took; its attribute :obj:`training` is an
        :class:`AutoTraining`.

    Raises:
        ImportError: If scikit-learn is not installed (extra ``data``).
        ValueError: If the samples are of no kind above, or too few for two folds.
    """
    from lightning.pytorch.utilities.seed import isolate_rng  # Loading a model needs no Lightning.

    check_number("seconds", seconds)
    check_number("coverage_share", coverage_share, below=1.0)
    check_choice("given_masks", given_masks, get_args(GivenMasks))
    # At random, because samples of a stratified split depend on each other, and no fit may see any
    # of them.
    split = random_split(len(dataset), (1 - coverage_share, 0.0, coverage_share), seed)
    train = dataset[split.train] if coverage_share else dataset
    with isolate_rng():
        model = _Fit(train, seconds, seed, search).model(given_masks, calibrate)
    return model.conformalize(dataset[split.test]) if coverage_share else model


class AutoTraining(NamedTuple):
    """The results of :func:`auto` beside its model."""

    #: Combined logits :math:`(N, L)` of training samples by fits without them, from which
    #: :class:`~tg_mlc.nn.ResidualMessages` of one's own can start.
    held_out: np.ndarray
    #: The fold of each training sample :math:`(N)` that LaMP was trained without; :obj:`None`
    #: without LaMP.
    fold: np.ndarray | None


class _Fit:
    """Fits the stages of a model one after another; each leaves held-out logits of the training
    samples."""

    def __init__(
        self,
        dataset: MultiLabelDataset,
        seconds: float,
        seed: int,
        search: Search | None,
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
        calibration, scores = self.calibration(given, calibrate, coherence)
        decision = self.decision(coherence, scores)
        first = [
            *stages_of(self.preprocessor),
            *([] if networks is None else [networks]),
            combination,
        ]
        optional = [stage for stage in (given, calibration) if stage is not None]
        model = Model([*first, *optional, coherence, decision], names)
        model.training = AutoTraining(
            self.held_out, None if self.folds is None else self.folds.fold
        )
        model.facts["report"] = self.report(
            features, combination, values, given, calibration, decision
        )
        return model

    def features(self) -> tuple[StackingFeatures, MultiLabelDataset]:
        """The classifiers, and samples with their held-out scores."""
        share, searches = CLASSIFIER_SHARE, AUTOMATIC
        if self.hierarchy is not None or self.dataset.num_labels > MANY_LABELS:
            share, searches = MANY_SHARE, many_labels(self.hierarchy)
        features = StackingFeatures(searches=searches, seconds=self.seconds * share, seed=self.seed)
        self.preprocessor = Chain(*kind_of(self.dataset).steps(), features)
        rows = torch.arange(len(self.dataset))
        everything = Split(rows, rows[:0], rows[:0], "all training samples")
        return features, self.preprocessor.fit_transform(self.dataset, everything)

    def networks(self, samples: MultiLabelDataset) -> Networks | None:
        """LaMP of every fold; none if time is too short, or training diverges."""
        from tg_mlc.stacking.folds import train_folds

        seconds = self.seconds - (time.monotonic() - self.start)
        try:
            self.folds = train_folds(samples, seconds, self.seed, self.search)
            self.without_lamp = "the time was too short to train it" if self.folds is None else None
        except FloatingPointError as error:
            self.without_lamp = f"its training diverged: {error}"
            warnings.warn(
                f"The model is made of classifiers alone, because LaMP's training diverged: {error}",
                stacklevel=5,
            )
        return None if self.folds is None else Networks(self.folds.models, self.dataset.label_names)

    def combination(
        self, features: StackingFeatures, samples: MultiLabelDataset
    ) -> tuple[Combination, dict[str, float]]:
        """The weights of all logits, and the value of each part."""
        logits = samples.rows("base_scores").double().numpy()
        titles = [each.title for each in features.classifiers.values()]
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
        """The stage for given labels; none for one label."""
        if self.y.shape[1] == 1 or len(self.y) == 1:
            return None
        seconds = GIVEN_SHARE * self.seconds
        engine = GivenLabelStacking(masks)
        return GivenLabels(engine.fit(self.held_out, self.y, seconds, self.seed))

    def calibration(
        self, given: GivenLabels | None, wanted: bool, coherence: Coherence
    ) -> tuple[Calibration | None, Tensor]:
        """The calibration, if it is wanted, and held-out probabilities of training samples."""
        scores, calibration = self.scores, None
        if wanted:
            free, masked = LabelCalibration.fit(self.y, scores, self.seed), None
            if given is not None:
                logits, rest = given.engine.masked
                masked = LabelCalibration.fit(rest, expit(logits), self.seed)
            calibration = Calibration(free, masked)
            scores = calibration.probabilities(scores)
        pairs = coherence.pairs()
        return calibration, scores if pairs is None else make_coherent(scores, pairs)

    def decision(self, coherence: Coherence, scores: Tensor) -> Decision:
        """Thresholds or label sets for every metric."""
        tuners = tune_thresholds(self.y, scores, "cross_fitted", seed=self.seed)
        pairs = coherence.pairs()
        if pairs is not None:
            tuners = {
                name: coherent_decider(each, pairs, self.y, scores) for name, each in tuners.items()
            }
        return Decision(tuners)

    def report(
        self,
        features: StackingFeatures,
        combination: Combination,
        values: dict[str, float],
        given: GivenLabels | None,
        calibration: Calibration | None,
        decision: Decision,
    ) -> dict[str, Any]:
        """The choices, and the scores that decided them."""
        folds, plain = self.folds, dict[str, Any]()
        if folds is not None:
            plain = {"folds": len(folds.models), "epochs": folds.epochs, **folds.options}
        report: dict[str, Any] = as_tensors(
            {
                "classifiers": {
                    name: {
                        "view": each.view,
                        "setting": list(each.setting),
                        "seconds": each.seconds,
                    }
                    for name, each in features.classifiers.items()
                },
                "lamp": plain or None,
                "without_lamp": self.without_lamp,
                "values": values,
                "given": None if given is None else given.engine.report,
                "validation": {
                    metric: tuner.best_value for metric, tuner in decision.tuners.items()
                },
                "data": data_hash(self.dataset),
                "weights": combination.weight.mean(axis=0).tolist(),
                "calibration": None if calibration is None else calibration.methods,
                "options": {"seconds": self.seconds, "seed": self.seed},
                "seconds": time.monotonic() - self.start,
            }
        )
        return report


class ClassifierScore(NamedTuple):
    """Probabilities :math:`(N, L)` by one classifier."""

    held_out: np.ndarray  #: of training samples, by classifiers that were fitted without them
    scores: np.ndarray  #: of the samples that were asked for
    seconds: float  #: that tuning and fitting it took


def classifier_scores(model: Model, raw: Any) -> dict[str, ClassifierScore]:
    """Returns the probabilities of each classifier alone, by its title in tables of results; only
    of a model that was fitted here, because no saved model holds scores of training samples.

    Args:
        model (Model): The result of :func:`auto`.
        raw (Any): As of :meth:`~tg_mlc.inference.Model.predict`.

    Raises:
        RuntimeError: If the model was loaded.
    """
    stage = model.stage(Classifiers)
    if stage is None or model.training is None:
        raise RuntimeError(
            "Expected a model that was fitted here (got one without scores of training samples)"
        )
    base_scores = model.prepare(raw).samples.rows("base_scores").double().numpy()
    found = {}
    for place, each in enumerate(stage.features.classifiers.values()):
        scores = expit(base_scores[..., place] / each.scale)
        found[each.title] = ClassifierScore(expit(each.held_out), scores, each.seconds)
    return found


def best_combination(
    logits: np.ndarray, y: np.ndarray, names: Sequence[str]
) -> tuple[LogitStacking, dict[str, float]]:
    """The weights of all, or of the one that alone does better on every part of the samples; and
    the value of each."""
    found = {"all": LogitStacking().fit(logits, y)}
    for place, name in zip(range(logits.shape[-1]), names, strict=False):
        alone = LogitStacking().fit(logits[..., [place]], y)
        weight = np.zeros(logits.shape[1:])
        weight[:, [place]] = alone.weight
        found[name] = LogitStacking().load_state_dict({"weight": weight, "bias": alone.bias})
    probabilities = {name: each.predict_proba(logits) for name, each in found.items()}
    values = {name: _values(y, scores) for name, scores in probabilities.items()}
    better = [name for name in found if (values[name] > values["all"]).all()]
    return found[max(better, key=lambda name: values[name].sum(), default="all")], {
        name: float(each.mean()) for name, each in values.items()
    }


def _values(y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """How well scores rank and decide, on each of a few parts of the samples."""
    given = np.flatnonzero(~np.isnan(y).all(axis=1))
    parts = [given[i::_PARTS] for i in range(min(_PARTS, len(given)))]
    return np.array([ranks_and_decides(y[part], scores[part]) for part in parts])
