"""The default for data without a tuned model: classifiers, label message passing over them, and thresholds."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor, nn
from torch_geometric.data import Data
from typing_extensions import Self

from tg_mlc._options import check_choice, check_number
from tg_mlc.baselines.baseline import read_array
from tg_mlc.data import MultiLabelDataset, Split, random_split
from tg_mlc.graphs.hierarchy import coherent as make_coherent
from tg_mlc.graphs.hierarchy import coherent_decider
from tg_mlc.inputs import Chain, Preprocessor, kind_of
from tg_mlc.inputs.preprocessor import as_tensors, from_state, to_state
from tg_mlc.metrics import Evaluation, evaluate, tune_thresholds
from tg_mlc.metrics.calibration import Calibration
from tg_mlc.metrics.coverage import Coverage, Per
from tg_mlc.metrics.thresholds import Decider
from tg_mlc.saving.checkpoint import restore_tuners
from tg_mlc.saving.inference import InferenceModel, batches_of, logits_of
from tg_mlc.saving.model import data_hash, model_state, packed, restore_model, unpacked
from tg_mlc.stacking.classifiers import AUTOMATIC, MANY_LABELS, many_labels, ranks_and_decides
from tg_mlc.stacking.combination import LogitStacking
from tg_mlc.stacking.features import ResumableParts, StackingFeatures
from tg_mlc.stacking.given import GivenLabelStacking, GivenMasks

if TYPE_CHECKING:
    from tg_mlc.stacking.folds import Folds, Search

#: The share of the time that classifiers may take before label message passing.
CLASSIFIER_SHARE = 0.4
#: The time that learning from given labels may take in addition, as a share of the time that all before may take.
GIVEN_SHARE = 0.2
#: Where labels form a hierarchy, or are more than 512: networks learn more there than messages do.
MANY_SHARE = 0.9
# One classifier has to be better than all together on this many parts of the samples, of which chance gives 1 in 32.
_PARTS = 5
# That are predicted at a time, because classifiers take many times the memory of their inputs and scores.
_ROWS = 4096


class ClassifierScore(NamedTuple):
    """Probabilities :math:`(N, L)` by one classifier."""

    held_out: np.ndarray  #: of training samples, by classifiers that were fitted without them
    scores: np.ndarray  #: of the samples that were asked for
    seconds: float  #: that tuning and fitting it took


def auto(
    dataset: MultiLabelDataset,
    seconds: float = 300.0,
    seed: int = 0,
    given_masks: GivenMasks = "both",
    coverage_share: float = 0.0,
    calibrate: bool = False,
) -> AutoModel:
    """Fits a model to any training samples: bags, texts, vectors, molecules or DNA.

    Scores of training samples from models that were fitted without them decide all choices:

    1. Linear, kernel and tree classifiers choose settings and the scale of inputs
       (:class:`~tg_mlc.stacking.StackingFeatures`); for a hierarchy or more than 512 labels, kernels, trees and
       networks that fit all labels at once; kernels use correlations of labels, unless these form a hierarchy.
    2. LaMP is trained on their scores and the inputs, once for each of five folds (fewer where time is short).
    3. Logits of all are combined with weights of at least zero (:class:`~tg_mlc.stacking.combination.LogitStacking`),
       unless one classifier alone does better.
    4. Thresholds are fitted to the combined scores, for each metric of the kind that generalises best, or the label
       sets of training samples decide (:func:`~tg_mlc.metrics.tune_thresholds`, cross-fitted).
    5. Where labels of a sample will be known, messages of their residuals go to the others, and training samples that
       agree with them count (:class:`~tg_mlc.stacking.given.GivenLabelStacking`); otherwise these change nothing.

    .. code-block:: python

        dataset = from_csv("songs.csv", label_columns=["calm", "sad"])
        split = stratified_split(dataset.y, (0.8, 0.0, 0.2))
        model = auto(dataset[split.train])
        print(model.evaluate(dataset[split.test]))
        probabilities = model.predict_proba([[61.5, 0.2]])

    Args:
        dataset (MultiLabelDataset): Training samples, all of which are used.
        seconds (float, optional): The time that may be taken, roughly: small data sets take less; hundreds of labels
            take more where it is short, because each classifier is fitted in any case. Where it cuts a search short,
            results depend on the speed of the machine. (default: :obj:`300`)
        seed (int, optional): Seed of folds, trees and weights. (default: :obj:`0`)
        given_masks (str, optional): The labels that ``predict(..., given=...)`` will be told: :obj:`"both"`, present
            and absent ones, or :obj:`"present"`, only labels that apply. (default: :obj:`"both"`)
        coverage_share (float, optional): The share of samples, drawn at random, that no fit sees, so that
            ``predict(..., coverage=0.9)`` can promise what label sets hold. (default: :obj:`0`)
        calibrate (bool, optional): Whether to calibrate the combined probabilities of each label once more, which the
            combination itself does on average. (default: :obj:`False`)

    Raises:
        ImportError: If scikit-learn is not installed (extra ``data``).
        ValueError: If the samples are of no kind above, or too few for two folds.
    """
    return AutoModel(seconds, seed, given_masks=given_masks, coverage_share=coverage_share, calibrate=calibrate).fit(
        dataset
    )


class AutoModel(InferenceModel):
    """The model that :func:`auto` fits, which takes raw inputs.

    .. code-block:: python

        auto(dataset).save("model")
        tg_mlc.load("model").predict(["A text without labels."])

    Args:
        seconds, seed (optional): As in :func:`auto`.
        search (callable, optional): Finds options of LaMP in further time: it is given a function that trains with some
            of them changed and returns the loss of samples left out, and the usual options, and returns the best
            changes. (default: :obj:`None`, a few options are tried)
        given_masks, coverage_share, calibrate (optional): As in :func:`auto`.

    Attributes:
        label_names (list[str]): The names of the labels.
        preprocessor (Preprocessor): Makes samples with base scores of raw inputs.
        models (list[torch.nn.Module]): LaMP of every fold; none if time was too short, or training diverged.
        combination (LogitStacking): The weights of all logits, those of the models last.
        given (GivenLabelStacking): Changes the logits of other labels if some are given; :obj:`None` for one label.
        tuners (dict[str, ThresholdTuner or LabelSets]): Thresholds or label sets for every metric.
        held_out (numpy.ndarray): Combined logits :math:`(N, L)` of training samples by fits without them, from which
            :class:`~tg_mlc.nn.ResidualMessages` of one's own can start; :obj:`None` in a loaded model.
        report (dict): The choices, the scores that decided them, and how long each part took.
    """

    kind = "auto"
    preprocessor: Preprocessor
    models: list[nn.Module]
    combination: LogitStacking
    given: GivenLabelStacking | None
    tuners: dict[str, Decider]
    report: dict[str, Any]
    held_out: np.ndarray | None = None

    def __init__(
        self,
        seconds: float = 300.0,
        seed: int = 0,
        search: Search | None = None,
        given_masks: GivenMasks = "both",
        coverage_share: float = 0.0,
        calibrate: bool = False,
    ) -> None:
        check_number("seconds", seconds)
        check_number("coverage_share", coverage_share, below=1.0)
        check_choice("given_masks", given_masks, get_args(GivenMasks))
        self.seconds = seconds
        self.seed = seed
        self.search = search
        self.given_masks: GivenMasks = given_masks
        self.coverage_share = coverage_share
        self.calibrate = calibrate

    def fit(self, dataset: MultiLabelDataset, keep: Path | None = None) -> Self:
        """Fits to training samples; see :func:`auto`.

        Args:
            dataset (MultiLabelDataset): Training samples.
            keep (Path, optional): A folder that gets classifiers and models as soon as they are done, from which the
                same call goes on after an interruption; it belongs to these samples and options, and stays.
                (default: :obj:`None`, nothing is kept)
        """
        from lightning.pytorch.utilities.seed import isolate_rng  # loading a model needs no Lightning

        # At random, because samples of a stratified split depend on each other, and no fit may see any of them.
        split = random_split(len(dataset), (1 - self.coverage_share, 0.0, self.coverage_share), self.seed)
        with isolate_rng():
            model = self._fit(dataset[split.train] if self.coverage_share else dataset, ResumableParts(keep))
        held_out: MultiLabelDataset = dataset[split.test]
        return model.conformalize(held_out, held_out.y) if self.coverage_share else model

    def _fit(self, dataset: MultiLabelDataset, parts: ResumableParts) -> Self:
        from tg_mlc.stacking.folds import train_folds

        start, rows = parts.clock(), torch.arange(len(dataset))
        self.label_names = list(dataset.label_names)
        graph, share, searches = dataset.label_graph, CLASSIFIER_SHARE, AUTOMATIC
        self.hierarchy = graph if graph is not None and graph.is_hierarchy else None  # others know no parents
        if self.hierarchy is not None or dataset.num_labels > MANY_LABELS:
            share, searches = MANY_SHARE, many_labels(self.hierarchy)
        features = StackingFeatures(searches=searches, seconds=self.seconds * share, seed=self.seed, parts=parts)
        self.preprocessor = Chain(*kind_of(dataset).steps(), features)
        everything = Split(rows, rows[:0], rows[:0], "all training samples")
        train = self.preprocessor.fit_transform(dataset, everything)
        folds: Folds | None = None
        without_lamp: str | None = None
        try:
            folds = train_folds(train, self.seconds - (parts.clock() - start), self.seed, self.search, parts)
            without_lamp = "the time was too short to train it" if folds is None else None
        except FloatingPointError as error:
            without_lamp = f"its training diverged: {error}"
            warnings.warn(
                f"The model is made of classifiers alone, because LaMP's training diverged: {error}", stacklevel=4
            )
        self.models = [] if folds is None else folds.models
        inputs = train.rows("base_scores").double().numpy()
        logits = inputs if folds is None else np.concatenate([inputs, folds.held_out[..., None]], axis=-1)
        y = train.y.numpy()
        self.combination, values = best_combination(logits, y, [*features.classifiers, "lamp"])
        scores = torch.from_numpy(self.combination.predict_proba(logits))
        if self.calibrate:
            self.calibration = Calibration.fit(y, scores, self.seed)
        scores = self.calibrated(scores)
        if (pairs := self.coherence(None)) is not None:
            scores = make_coherent(scores, pairs)
        self.tuners = tune_thresholds(y, scores, "cross_fitted", seed=self.seed)
        if pairs is not None:
            self.tuners = {name: coherent_decider(each, pairs, y, scores) for name, each in self.tuners.items()}
        self.held_out = self.combination.decision_function(logits)
        self.given = None
        if y.shape[1] > 1 and len(y) > 1:
            make = partial(
                GivenLabelStacking(self.given_masks).fit, self.held_out, y, GIVEN_SHARE * self.seconds, self.seed
            )
            self.given = parts.part("given", make, GivenLabelStacking.state_dict, GivenLabelStacking.from_state)
        self.report = {
            "classifiers": {
                name: {"view": each.view, "setting": list(each.setting), "seconds": each.seconds}
                for name, each in features.classifiers.items()
            },
            "lamp": None if folds is None else {"folds": len(folds.models), "epochs": folds.epochs, **folds.options},
            "without_lamp": without_lamp,
            "values": values,
            "given": None if self.given is None else self.given.report,
            "validation": {metric: tuner.best_value for metric, tuner in self.tuners.items()},
            "data": data_hash(dataset),
            "weights": np.asarray(self.combination.weight).mean(axis=0).tolist(),
            "calibration": self.calibration_methods or None,
            "seconds": parts.clock() - start,
        }
        return self

    def predict_proba(
        self, raw: Any, batch_size: int = 256, *, given: Any = None, coherent: bool | Data | None = None
    ) -> np.ndarray:
        """Returns probabilities :math:`(N, L)`; given labels have 0 or 1, as they were given.

        Args:
            raw (Any): Raw inputs as the preprocessor takes them (texts, rows, SMILES, DNA), or samples.
            batch_size (int, optional): The number of samples that LaMP takes at a time. (default: :obj:`256`)
            given (Any, optional): Labels that are known already, in any form that :func:`~tg_mlc.data.given_labels`
                takes. (default: :obj:`None`, those that samples have as attribute :obj:`given`)
            coherent (bool or LabelGraph, optional): As of :meth:`tg_mlc.saving.Predictor.predict`.
                (default: :obj:`None`, where a hierarchy came with the training data)

        Raises:
            ValueError: If a given label is unknown, all labels are given, or the model cannot take any.
        """
        return self.predictions(raw, given, batch_size, coherent)[0].numpy()

    def scores_and_given(self, raw: Any, given: Any = None, batch_size: int = 256) -> tuple[Tensor, Tensor | None]:
        """Returns probabilities, and the labels that were given, by the caller or by the samples."""
        *first, features = self.preprocessor.steps  # type: ignore[attr-defined]
        samples = Chain(*first).transform(raw)
        known = self.known_labels(samples, given)
        starts = range(0, len(samples), _ROWS) if len(samples) > _ROWS else [0]
        parts = (samples if len(starts) == 1 else samples[start : start + _ROWS] for start in starts)
        logits = np.concatenate([self._combined(features.transform(part), batch_size) for part in parts])
        return self.with_given(logits, known)

    def _combined(self, samples: MultiLabelDataset, batch_size: int) -> np.ndarray:
        """The logits of samples with base scores."""
        logits = samples.rows("base_scores").double().numpy()
        if self.models:
            batches = [*batches_of(samples, batch_size)]  # once for all models, which take less time than making them
            of_models = [logits_of(model, batches).double().numpy() for model in self.models]
            logits = np.concatenate([logits, np.mean(of_models, axis=0)[..., None]], axis=-1)
        return self.combination.decision_function(logits)

    def predict(
        self,
        raw: Any,
        metric: str = "f1_micro",
        *,
        given: Any = None,
        coherent: bool | Data | None = None,
        coverage: float | None = None,
        coverage_per: Per = "label",
    ) -> np.ndarray:
        """Returns decisions 0 and 1 :math:`(N, L)`, with the thresholds or label sets that are best for a metric.

        Args:
            raw (Any): As of :meth:`predict_proba`.
            metric (str, optional): One of :obj:`tg_mlc.metrics.DECISION_METRICS`. (default: :obj:`"f1_micro"`)
            given, coherent (Any, optional): As of :meth:`predict_proba`. (default: :obj:`None`)
            coverage, coverage_per (optional): As of :meth:`tg_mlc.saving.Predictor.predict`.

        Raises:
            ValueError: If the metric is not known, or no samples allow to promise the coverage.
        """
        decides: str | Coverage = metric if coverage is None else Coverage(coverage, coverage_per)
        self.decider(decides)
        scores, known = self.predictions(raw, given, coherent=coherent)
        return self.decide(scores, decides, known, coherent).numpy()

    def evaluate(self, dataset: MultiLabelDataset) -> Evaluation:
        """Evaluates probabilities and decisions on samples with known labels, which are matched by name.

        Raises:
            ValueError: If the samples have other labels than the model.
        """
        if others := sorted({*dataset.label_names} ^ {*self.label_names}):
            raise ValueError(f"Expected samples with the labels of the model (got others, or too few: {others[:5]})")
        y = dataset.y[:, [dataset.label_names.index(name) for name in self.label_names]]
        scores, known = self.predictions(dataset)
        y = y if known is None else y.masked_fill(~known.isnan(), torch.nan)
        return evaluate(y, scores, self.tuners, self.label_names)

    def classifier_scores(self, raw: Any) -> dict[str, ClassifierScore]:
        """Returns the probabilities of each classifier alone, by its title in tables of results; only after
        :meth:`fit`, because no saved model holds scores of training samples.

        Raises:
            RuntimeError: If the model was loaded.
        """
        classifiers = self.stacking.classifiers.values()
        base_scores = self.preprocessor.transform(raw).rows("base_scores").double().numpy()
        found = {}
        for place, each in enumerate(classifiers):
            if each.held_out is None:
                raise RuntimeError("Expected a model that was fitted here (got one without scores of training samples)")
            scores = expit(base_scores[..., place] / each.scale)
            found[each.title] = ClassifierScore(expit(each.held_out), scores, each.seconds)
        return found

    @property
    def stacking(self) -> StackingFeatures:
        """The step that gives samples their base scores."""
        features: StackingFeatures = self.preprocessor.steps[-1]  # type: ignore[attr-defined]
        return features

    def state_dict(self) -> dict[str, Any]:
        """Returns all that predictions need, as tensors and plain data."""
        state: dict[str, Any] = as_tensors(
            {
                "label_names": self.label_names,
                "preprocessor": to_state(self.preprocessor),
                "hierarchy": None if self.hierarchy is None else packed(self.hierarchy),
                "models": [model_state(model) for model in self.models],
                "combination": self.combination.state_dict(),
                "given": None if self.given is None else self.given.state_dict(),
                "tuners": {name: tuner.state_dict() for name, tuner in self.tuners.items()},
                "report": self.report,
                "options": {"seconds": self.seconds, "seed": self.seed, "given_masks": self.given_masks},
            }
        )
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Makes a model of its state."""
        model = cls(**state["options"])
        model.label_names, model.report = list(state["label_names"]), state["report"]
        model.preprocessor = from_state(state["preprocessor"])
        restored = [restore_model(each, model.label_names) for each in state["models"]]
        model.models = [each.eval().requires_grad_(False) for each in restored]
        model.combination = LogitStacking().load_state_dict(state["combination"])
        given, hierarchy = state.get("given"), state.get("hierarchy")  # which earlier versions did not write
        model.hierarchy = None if hierarchy is None else unpacked(hierarchy)
        model.given = None if given is None else GivenLabelStacking.from_state(given)
        model.tuners = restore_tuners(state["tuners"])
        parts = len(model.stacking.classifiers) + bool(model.models)
        read_array(state["combination"], "weight", len(model.label_names), parts)
        return model

    def to(self, device: torch.device | str) -> Self:
        """Moves the models to a device; classifiers stay where they are."""
        for model in self.models:
            model.to(device)
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}(seconds={self.seconds:g}, seed={self.seed})"


def best_combination(logits: np.ndarray, y: np.ndarray, names: Sequence[str]) -> tuple[LogitStacking, dict[str, float]]:
    """The weights of all, or of the one that alone does better on every part of the samples; and the value of each."""
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
