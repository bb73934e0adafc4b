"""Estimators of label message passing and of :func:`tg_mlc.stacking.auto`."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp
import torch
from lightning.pytorch.utilities.seed import isolate_rng
from scipy.special import expit
from sklearn.utils.validation import check_consistent_length
from torch import nn
from typing_extensions import Self

from tg_mlc._names import shorten
from tg_mlc._optional import require
from tg_mlc._options import check_choice, check_count, check_flag, check_number, check_share
from tg_mlc.data import MultiLabelDataset, Split, predefined_split, random_split, stratified_split
from tg_mlc.data.bags import with_attribute
from tg_mlc.graphs import LabelGraph, co_occurrence, edgeless, fully_connected
from tg_mlc.inference import Model
from tg_mlc.inference.decisions import Calibration, GivenLabels
from tg_mlc.inference.features import stages_of
from tg_mlc.inference.network import label_graph_users
from tg_mlc.inputs import Chain, kind_of
from tg_mlc.inputs.hierarchies import with_hierarchy
from tg_mlc.inputs.schema import Schema
from tg_mlc.metrics import DECISION_METRICS, ThresholdTuner
from tg_mlc.metrics._inputs import FloatArray
from tg_mlc.metrics.calibration import Calibration as LabelCalibration
from tg_mlc.sklearn.estimator import SavedEstimator, draw_seed
from tg_mlc.stacking import StackingFeatures, auto
from tg_mlc.stacking.classifiers import AUTOMATIC
from tg_mlc.stacking.folds import BATCH_SIZE, FIT, MODEL, MODULE, OBJECTIVE, settings_of
from tg_mlc.stacking.given import GivenLabelStacking, GivenMasks
from tg_mlc.training import BinaryObjective
from tg_mlc.training.fitting import Training, TrainSettings, train_model

GraphName = Literal["fully_connected", "co_occurrence", "edgeless"]

#: Minimum number of samples for held-out scores of classifiers.
MIN_SAMPLES = 20
#: Approximate number of training steps, and limits on epochs, as in the recipes for tables.
NUM_STEPS, MIN_EPOCHS, MAX_EPOCHS = 1000, 4, 60

# Only one model is trained, not one per fold, so patience and the weight average are longer.
_TRAIN: dict[str, Any] = {
    "batch_size": BATCH_SIZE,
    "verbose": False,
    "intermediate_weight": OBJECTIVE.intermediate_weight,
    **{name: value for name, value in MODULE.items() if name != "lr"},
    **FIT,
    "patience": 10,
    "ema_decay": 0.998,
    "given_masks": "both",
    "calibrate": False,
    "coverage_share": 0.0,
}
_OBJECTIVE_OPTIONS = tuple(field.name for field in fields(BinaryObjective))
_MODULE_OPTIONS = ("weight_decay", "betas", "eps", "lr_schedule", "warmup")
_FIT_OPTIONS = ("monitor", "patience", "ema_decay", "gradient_clip", "precision", "deterministic")


@dataclass(eq=False, repr=False)
class LaMPClassifier(SavedEstimator):
    """Label message passing from the `"Neural Message Passing for Multi-Label Classification"
    <https://arxiv.org/abs/1904.08049>`_ paper, as an estimator of scikit-learn.

    A fit preprocesses inputs, computes scores of other classifiers, and trains
    :class:`~tg_mlc.models.LaMP`. A fraction of the samples chooses the epoch and the threshold.
    Save a fitted estimator with :meth:`save`: reading a file of :mod:`joblib` or :mod:`pickle` can
    run any code.

    Args:
        inputs (str or dict, optional): The format of inputs: :obj:`"vectors"`, :obj:`"bags"` (of
            weighted words), :obj:`"texts"` (or lists of words), :obj:`"smiles"`, :obj:`"dna"`, or
            :obj:`"mixed"`, a data frame with columns of several kinds, which a dictionary chooses:
            :obj:`{"text": "note", "features": ["age", "city"]}`. (default: :obj:`"auto"`: dense
            rows are vectors, and sparse rows are bags; strings are SMILES if all are molecules,
            else texts; a data frame is mixed if cells look like texts, molecules or DNA)
        label_graph (str or LabelGraph, optional): :obj:`"fully_connected"`,
            :obj:`"co_occurrence"` (of training samples), :obj:`"edgeless"`, or a label graph.
            (default: :obj:`"fully_connected"`)
        base_scores (Sequence[str], optional): The classifiers whose scores are inputs of labels
            (see :class:`~tg_mlc.stacking.StackingFeatures`), which take about two minutes at most.
            (default: :obj:`"auto"`, all four, or none for fewer than 20 training samples)
        num_steps (int, optional): Number of label message passing steps. (default: :obj:`2`)
        model_options (dict, optional): Further options of :func:`~tg_mlc.models.table_lamp`, or
            :func:`~tg_mlc.models.molecule_lamp` for SMILES, such as :obj:`channels` (64),
            :obj:`heads` (4) and :obj:`dropout` (0.2). (default: :obj:`None`)
        learning_rate (float, optional): The highest learning rate. (default: :obj:`1e-3`)
        max_epochs (int, optional): Largest number of epochs.
            (default: :obj:`None`, about 1000 steps, in 4 to 60 epochs)
        train_options (dict, optional): Further options of training: :obj:`batch_size` (32);
            :obj:`verbose` (a progress bar on a terminal); :obj:`given_masks` (as in
            :func:`tg_mlc.stacking.auto`); :obj:`patience` (10), :obj:`calibrate`,
            :obj:`coverage_share` and others of :func:`~tg_mlc.training.fit`; :obj:`weight_decay`
            (0.01) and others of :class:`~tg_mlc.training.MultiLabelModule`; :obj:`loss_name` and
            :obj:`loss_options` of :class:`~tg_mlc.training.BinaryObjective`. With another loss, the
            best epoch has the largest micro ROC-AUC, if a label has both classes in validation.
            (default: :obj:`None`)
        threshold (float, str or ThresholdTuner, optional): The threshold of probabilities; a
            metric, for the best threshold on validation samples; or a
            :class:`~tg_mlc.metrics.ThresholdTuner`. It is 0.5 if validation samples lack positives,
            and unused for classes. (default: :obj:`"f1_micro"`)
        validation_fraction (float, optional): The fraction of samples for validation, unless
            :meth:`fit` gets an :obj:`eval_set`. (default: :obj:`0.1`)
        warm_start (bool, optional): Whether :meth:`fit` starts from the weights, labels and words
            or columns of the last fit. (default: :obj:`False`)
        random_state (int or RandomState, optional): As in scikit-learn. (default: :obj:`None`)
        device (str, optional): PyTorch's device. (default: :obj:`"auto"`, a GPU if there is one)

    Attributes:
        model_ (Model): The fitted model. From 20 validation samples on, it also learns how given
            labels change other labels.
        metric_ (str): The metric that the thresholds maximise.
        n_iter_ (int): The number of epochs.
    """

    inputs: str | dict[str, Any] = "auto"
    _: KW_ONLY
    label_graph: GraphName | LabelGraph = "fully_connected"
    base_scores: Sequence[str] | Literal["auto"] | None = "auto"
    num_steps: int = 2
    model_options: dict[str, Any] | None = None
    learning_rate: float = MODULE["lr"]
    max_epochs: int | None = None
    train_options: dict[str, Any] | None = None
    threshold: float | str | ThresholdTuner = "f1_micro"
    validation_fraction: float = 0.1
    warm_start: bool = False
    random_state: Any = None
    device: str = "auto"

    def fit(self, X: Any, y: Any, eval_set: tuple[Any, Any] | None = None) -> Self:
        """Trains the model.

        Args:
            X (Any): A matrix (dense or sparse), a data frame, or a list or column of texts, of
                lists of words, or of SMILES.
            y (Any): Labels: a matrix of 0, 1 and NaN (unknown), dense, sparse or as a data frame
                with label names as columns; a set of names per sample, or :obj:`None` if it is
                unknown; or one class per sample.
            eval_set (tuple, optional): Inputs and labels of validation samples.
                (default: :obj:`None`, a fraction of the training samples)

        Raises:
            ValueError: If inputs, labels or options are not allowed, or a warm start has different
                labels or columns.
        """
        last_model: Model | None = getattr(self, "model_", None) if self.warm_start else None
        options = self._checked_options(last_model)
        X = self._read_training_inputs(X) if last_model is None else self._read_inputs(X)
        y = self._read_labels(X, y, keep=last_model is not None)
        seed, held_out = draw_seed(self.random_state), None
        if fraction := options["coverage_share"]:
            parts = random_split(len(y), (1 - fraction, 0.0, fraction), seed)
            held_out = _rows(X, parts.test), y[parts.test.numpy()]
            X, y = _rows(X, parts.train), y[parts.train.numpy()]
        samples, split = self._make_split(X, y, eval_set, last_model, seed)
        preprocessor, training = self._train(samples, split, options, last_model, seed)
        validation = training.part("val")
        self.n_iter_ = training.num_epochs
        model = self.model_ = training.prepared.to(self.torch_device)
        model.network_stage.examples = None  # A pickled estimator holds no samples.
        if options["calibrate"]:
            model.calibrate(validation, seed=seed)
        can_learn = len(validation) >= MIN_SAMPLES and y.shape[1] > 1 and not model.takes_given
        if can_learn and self._form.form != "classes":
            _learn_given(model, validation, options["given_masks"], seed)
        self._choose_thresholds(validation)
        model.stages[:1] = stages_of(preprocessor)
        if held_out is not None:
            model.conformalize(*held_out)
        return self

    def _checked_options(self, last_model: Model | None) -> dict[str, Any]:
        """Returns all options of training."""
        if isinstance(self.threshold, str):
            check_choice("threshold", self.threshold, DECISION_METRICS)
        elif not isinstance(self.threshold, ThresholdTuner):
            check_share("threshold", self.threshold)
        check_count("max_epochs", self.max_epochs, or_none=True)
        options = {**_TRAIN, **(self.train_options or {})}
        allowed = {*_TRAIN, *_OBJECTIVE_OPTIONS, *_MODULE_OPTIONS, *_FIT_OPTIONS}
        if unknown := sorted({*options} - allowed):
            raise ValueError(f"Expected 'train_options' among {sorted(allowed)} (got {unknown})")
        check_flag("calibrate", options["calibrate"])
        check_number("coverage_share", options["coverage_share"], below=1.0)
        if last_model is not None and (fraction := options["coverage_share"]):
            expected = "Expected coverage_share=0 for a warm start, whose last fit saw the samples"
            raise ValueError(f"{expected} (got {fraction}); call fit with warm_start=False")
        return options

    def _make_split(
        self, X: Any, y: FloatArray, eval_set: Any, last_model: Model | None, seed: int
    ) -> tuple[MultiLabelDataset, Split]:
        """Returns samples of the read inputs and labels, and their split."""
        if eval_set is None:
            fraction = max(self.validation_fraction, 1 / len(y))
            split = stratified_split(y, (1 - fraction, fraction, 0.0), seed)
        else:
            X_val, y_val = self._read_inputs(eval_set[0]), self._form.encode(eval_set[1])
            check_consistent_length(X_val, y_val)
            num_train, size = len(y), len(y) + len(y_val)
            split = predefined_split(range(num_train), range(num_train, size), [], size)
            y = np.concatenate([y, y_val])
            if isinstance(X, list):
                X = X + X_val
            elif sp.issparse(X):
                X = sp.vstack([X, X_val], format="csr")
            elif hasattr(X, "iloc"):
                X = require("pandas", extra="data").concat([X, X_val], ignore_index=True)
            else:
                X = np.concatenate([X, X_val])
        if last_model is None:
            return self._make_samples(X, y, split.train.numpy()), split
        # A warm start uses the words and columns of the last fit.
        samples = with_attribute(last_model.features.read(X), "y", torch.from_numpy(y))
        columns = getattr(self, "_columns", None)
        samples.schema = None if columns is None else Schema.from_dict(columns)
        return samples, split

    def _train(
        self, samples: MultiLabelDataset, split: Split, options: Any, last_model: Any, seed: int
    ) -> tuple[Chain, Training]:
        """Fits the preprocessor and trains a network. A warm start begins with the last weights."""
        classifiers: Sequence[str] = () if self.base_scores is None else self.base_scores
        if self.base_scores == "auto":
            classifiers = tuple(AUTOMATIC) if split.train.numel() >= MIN_SAMPLES else ()
        features = [StackingFeatures(classifiers, seed=seed)] if classifiers else []
        preprocessor = Chain(*kind_of(samples).steps(scaled=not classifiers), *features)
        prepared = preprocessor.fit_transform(samples, split)
        settings = self._settings(options, split.train.numel(), prepared[split.val].y)

        def build(train: MultiLabelDataset) -> nn.Module:
            model_options = {**MODEL, "num_steps": self.num_steps, **(self.model_options or {})}
            label_graph = self._make_label_graph(prepared, split, last_model)
            network = settings_of(train).build(train, label_graph, **model_options)
            if last_model is not None:
                try:
                    network.load_state_dict(last_model.networks[0].state_dict())
                except RuntimeError as error:
                    expected = "Expected the settings and classifiers of the last fit"
                    got = f"another model: {shorten(' '.join(str(error).split()))}"
                    raise ValueError(f"{expected} (got {got}); set warm_start=False") from None
            return network

        with isolate_rng(), tempfile.TemporaryDirectory() as folder:
            return preprocessor, train_model(build, prepared, split, settings, folder, seed=seed)

    def _settings(
        self, options: dict[str, Any], num_train: int, y_val: torch.Tensor
    ) -> TrainSettings:
        batch_size, device = options["batch_size"], self.torch_device
        num_epochs = np.clip(NUM_STEPS // -(-num_train // batch_size), MIN_EPOCHS, MAX_EPOCHS)
        objective = BinaryObjective(**_select(_OBJECTIVE_OPTIONS, options))
        # The validation loss is cross-entropy, which is a poor criterion for other losses.
        is_plain = objective.loss_name == "bce" and not objective.loss_options
        can_rank = ((y_val == 0).any(dim=0) & (y_val == 1).any(dim=0)).any()
        fitting = {
            "monitor": "val/loss" if is_plain or not can_rank else "val/micro_roc_auc",
            "max_epochs": self.max_epochs or int(num_epochs),
            "accelerator": "gpu" if device.type == "cuda" else device.type,
            "devices": [device.index or 0] if device.type == "cuda" else 1,
            "logger": False,
            "enable_progress_bar": bool(options["verbose"]),
            **_select(_FIT_OPTIONS, options),
        }
        module = {"lr": self.learning_rate, **_select(_MODULE_OPTIONS, options)}
        return TrainSettings(module, objective, fitting, batch_size)

    def _make_label_graph(
        self, samples: MultiLabelDataset, split: Split, last_model: Model | None
    ) -> LabelGraph:
        if isinstance(self.label_graph, LabelGraph):
            return self.label_graph
        check_choice("label_graph", self.label_graph, get_args(GraphName))
        if self.label_graph != "co_occurrence":
            builder = fully_connected if self.label_graph == "fully_connected" else edgeless
            return builder(samples.label_names)
        if last_model is None:
            return co_occurrence(samples, split=split)
        graph: LabelGraph = next(label_graph_users(last_model.networks[0])).label_graph
        return graph

    def _choose_thresholds(self, validation: MultiLabelDataset) -> None:
        threshold = self.threshold
        is_metric = isinstance(threshold, (str, ThresholdTuner))
        if is_metric and (self._form.form == "classes" or not (validation.y == 1).any()):
            threshold = 0.5
        if not isinstance(threshold, (str, ThresholdTuner)):
            self._fix_threshold(threshold)
            return
        self.model_.tune(validation)
        self.metric_ = threshold if isinstance(threshold, str) else threshold.metric
        if isinstance(threshold, ThresholdTuner):
            scores = self.model_.probabilities(validation)
            tuner = copy(threshold).fit(validation.y, scores)
            self.model_.decision.tuners[threshold.metric] = tuner

    def _fitted_model(self) -> Model:
        return super()._fitted_model().to(self.torch_device)

    def __getstate__(self) -> dict[str, Any]:
        if hasattr(self, "model_"):
            self.model_.to("cpu")  # A process that reads the pickle may have no GPU.
        state: dict[str, Any] = super().__getstate__()
        return state

    @property
    def torch_device(self) -> torch.device:
        """The device of the model."""
        best = "cuda" if torch.cuda.is_available() else "cpu"
        return torch.device(best if self.device == "auto" else self.device)


@dataclass(eq=False, repr=False)
class AutoClassifier(SavedEstimator):
    """The estimator of :func:`tg_mlc.stacking.auto` for scikit-learn.

    Args:
        inputs (str, optional): As in :class:`LaMPClassifier`. (default: :obj:`"auto"`)
        seconds (float, optional): The approximate time of a fit. (default: :obj:`300`)
        threshold (str, optional): The metric that thresholds or label sets maximise.
            (default: :obj:`"f1_micro"`)
        label_graph (LabelGraph, optional): The hierarchy of labels. (default: :obj:`None`)
        given_masks, coverage_share, calibrate (optional): As in :func:`tg_mlc.stacking.auto`.
            (default: :obj:`"both"`, :obj:`0`, :obj:`False`)
        random_state (int or RandomState, optional): The seed of folds, trees and weights.
            (default: :obj:`None`)

    Attributes:
        model_ (Model): The fitted model.
        metric_ (str): The metric that thresholds or label sets maximise.
    """

    inputs: str | dict[str, Any] = "auto"
    _: KW_ONLY
    seconds: float = 300.0
    threshold: str = "f1_micro"
    given_masks: GivenMasks = "both"
    label_graph: LabelGraph | None = None
    coverage_share: float = 0.0
    calibrate: bool = False
    random_state: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Fits the model to inputs and labels as in :meth:`LaMPClassifier.fit`."""
        check_choice("threshold", self.threshold, DECISION_METRICS)
        X = self._read_training_inputs(X)
        matrix = self._read_labels(X, y)
        samples = self._make_samples(X, matrix, np.arange(len(matrix)))
        if self.label_graph is not None:
            samples = with_hierarchy(samples, self.label_graph)
        options = self.given_masks, self.coverage_share, self.calibrate
        self.model_ = auto(samples, self.seconds, draw_seed(self.random_state), *options)
        self.metric_ = self.threshold
        if self._form.form == "classes":
            self._fix_threshold(0.5)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _learn_given(model: Model, validation: MultiLabelDataset, masks: GivenMasks, seed: int) -> None:
    """Adds the stage for given labels to a model, fitted to validation samples."""
    logits = model.run(validation).logits
    assert logits is not None
    y, stacking = validation.y.numpy(), GivenLabelStacking(masks)
    stacking.fit(logits.double().numpy(), y, seed)
    model.stages.insert(model.stages.index(model.network_stage) + 1, GivenLabels(stacking))
    calibration = model.stage(Calibration)
    if calibration is not None:
        # Stacking was fitted to these samples, so calibration needs its held-out logits.
        assert stacking.masked is not None
        masked_logits, masked_y = stacking.masked
        calibration.masked = LabelCalibration.fit(masked_y, expit(masked_logits), seed)


def _rows(X: Any, indices: torch.Tensor) -> Any:
    if isinstance(X, list):
        return [X[row] for row in indices.tolist()]
    return getattr(X, "iloc", X)[indices.numpy()]


def _select(names: Sequence[str], options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in names if name in options}
