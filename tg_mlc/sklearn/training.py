"""Training of the estimator's model, and its scores."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from lightning.pytorch import Callback, LightningModule, Trainer

from tg_mlc._options import check_choice, check_count
from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.graphs import LabelGraph, co_occurrence, edgeless, fully_connected
from tg_mlc.inputs import Chain
from tg_mlc.metrics._inputs import FloatArray
from tg_mlc.models import LaMP, molecule_lamp, table_lamp
from tg_mlc.saving.scorer import logits_of
from tg_mlc.sklearn.inputs import preprocessor_of
from tg_mlc.stacking.tuned_scores import GRIDS
from tg_mlc.training import BinaryObjective, MultiLabelDataModule, MultiLabelModule, fit

if TYPE_CHECKING:
    from tg_mlc.sklearn.lamp import LaMPClassifier

GraphName = Literal["fully_connected", "co_occurrence", "edgeless"]

#: Below, classifiers cannot be fitted without some of the samples.
MIN_SAMPLES = 20
#: A training takes about so many steps, of so many epochs at least and at most: those of the recipes for tables.
NUM_STEPS, MIN_EPOCHS, MAX_EPOCHS = 1000, 4, 60

# Those of the recipes, but that the loss of few validation samples says more than how they are ranked, and that nobody
# waits for epochs that are not going to be better.
_MODULE: dict[str, Any] = {"decay": "cosine", "warmup": 0.05}
_FIT: dict[str, Any] = {"patience": 10, "ema_decay": 0.998, "gradient_clip": 1.0}
_MODEL: dict[str, Any] = {"attention_dropout": 0.0, "score_skip": True}


@dataclass(frozen=True)
class TrainedModel:
    """A model with the preprocessor of its inputs."""

    preprocessor: Chain
    model: LaMP
    num_epochs: int = 0

    def logits(self, samples: MultiLabelDataset, device: torch.device) -> FloatArray:
        """The logits :math:`(N, L)` of preprocessed samples."""
        logits: FloatArray = logits_of(self.model.to(device).eval(), samples).numpy()
        self.model.cpu()  # as it is pickled
        return logits


def train(
    classifier: LaMPClassifier, samples: MultiLabelDataset, split: Split, start: TrainedModel | None, seed: int
) -> tuple[TrainedModel, FloatArray]:
    """Trains a model, and returns it with the logits of the validation samples.

    Args:
        classifier (LaMPClassifier): Whose options say how.
        samples (MultiLabelDataset): All samples.
        split (Split): Which to train and to validate with.
        start (TrainedModel, optional): Whose weights to start from.
        seed (int): Seed of weights, dropout and the order of samples; that of PyTorch stays as it is.
    """
    check_count("max_epochs", classifier.max_epochs, or_none=True)
    objective = BinaryObjective(
        intermediate_weight=0.1, loss_name=classifier.loss_name, loss_options=classifier.loss_options or {}
    )
    device = classifier.torch_device
    on_gpu = device.type == "cuda"
    preprocessor = preprocessor_of(samples, _base_scores(classifier, split), seed)
    prepared = preprocessor.fit_transform(samples, split)
    with torch.random.fork_rng(), tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(seed)
        model = _build(classifier, prepared, split, start)
        options = {**_MODULE, "lr": classifier.learning_rate, "weight_decay": classifier.weight_decay}
        result = fit(
            MultiLabelModule(model, samples.label_names, objective, **options),
            MultiLabelDataModule(prepared, split, classifier.batch_size, seed=seed),
            folder,
            monitor=_monitor(objective, prepared[split.val].y),
            max_epochs=classifier.max_epochs or _num_epochs(split, classifier.batch_size),
            accelerator="gpu" if on_gpu else device.type,
            devices=[device.index or 0] if on_gpu else 1,
            logger=False,
            callbacks=[] if classifier.verbose else [_Silence()],
            **_FIT,
        )
    trained = TrainedModel(preprocessor, model.cpu(), result.num_epochs)
    return trained, trained.logits(prepared[split.val], device)


def _monitor(objective: BinaryObjective, y_val: torch.Tensor) -> str:
    """What says which epoch is best: the loss of validation, which is the plain cross-entropy, unless another loss was
    trained, of which it says little, and validation labels can be ranked.
    """
    plain = objective.loss_name == "bce" and not objective.loss_options
    ranked = ((y_val == 0).any(dim=0) & (y_val == 1).any(dim=0)).any()
    return "val/loss" if plain or not ranked else "val/micro_roc_auc"


def _build(classifier: LaMPClassifier, prepared: MultiLabelDataset, split: Split, start: TrainedModel | None) -> LaMP:
    factory = molecule_lamp if classifier.inputs_ == "smiles" else table_lamp
    options = {name: getattr(classifier, name) for name in ("channels", "num_steps", "heads", "dropout")}
    graph = _label_graph(classifier.label_graph, prepared, split, start)
    model = factory(prepared[split.train], graph, **_MODEL, **options)
    if start is not None:
        try:
            model.load_state_dict(start.model.state_dict())
        except RuntimeError as error:
            got = f"those of another model: {' '.join(str(error).split())[:200]}"
            expected = "the settings and classifiers of the last fit for a warm start"
            raise ValueError(f"Expected {expected} (got {got}); set warm_start=False to start anew") from None
    return model


def _label_graph(
    given: GraphName | LabelGraph, samples: MultiLabelDataset, split: Split, start: TrainedModel | None
) -> LabelGraph:
    if isinstance(given, LabelGraph):
        return given
    check_choice("label_graph", given, ("fully_connected", "co_occurrence", "edgeless"))
    if given == "co_occurrence":
        return co_occurrence(samples, split=split) if start is None else start.model.labels.label_graph
    return (fully_connected if given == "fully_connected" else edgeless)(samples.label_names)


def _base_scores(classifier: LaMPClassifier, split: Split) -> Sequence[str]:
    """The classifiers whose scores are base scores: those that are asked for, or those that samples suffice for."""
    if classifier.base_scores != "auto":
        return classifier.base_scores or ()
    return tuple(GRIDS) if split.train.numel() >= MIN_SAMPLES else ()


def _num_epochs(split: Split, batch_size: int) -> int:
    steps = -(-split.train.numel() // batch_size)
    return int(np.clip(NUM_STEPS // steps, MIN_EPOCHS, MAX_EPOCHS))


class _Silence(Callback):
    """Hides the progress bar."""

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Hides it before it is opened."""
        if trainer.progress_bar_callback is not None:
            trainer.progress_bar_callback.disable()
