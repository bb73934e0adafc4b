"""Rows without label message passing, for every family of data sets."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GINEConv, global_add_pool

from benchmarks.accuracy.runs import FREQUENCY, SILENT, Row, Task
from tg_mlc.baselines import (
    Baseline,
    ChainEnsemble,
    ClassifierChain,
    ForestBaseline,
    LabelFrequency,
    LabelTrees,
    LinearBaseline,
    MLkNN,
)
from tg_mlc.baselines.forest import DEFAULT_GRID
from tg_mlc.baselines.linear import DEFAULT_GRID as LINEAR_GRIDS
from tg_mlc.baselines.linear import Loss
from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.data.bags import inputs_of
from tg_mlc.datasets import Planted
from tg_mlc.inputs import Chain, Fingerprint, TfIdf
from tg_mlc.metrics import macro_roc_auc
from tg_mlc.models.factories import vector_encoders
from tg_mlc.nn.encoders import LinearPath, MoleculeEncoder, VectorEncoder
from tg_mlc.papers.recipes.graphs import DNA, MOLECULES, PLANTED
from tg_mlc.papers.recipes.tables import TABLES
from tg_mlc.stacking import StackingFeatures
from tg_mlc.training import MultiLabelDataModule, MultiLabelModule, Training, fit, seed_everything

#: Grids of random forests. NCI, the larger data set, has few settings: each takes a minute.
FOREST_GRIDS: dict[str, Mapping[str, Sequence[Any]]] = {
    "sider": DEFAULT_GRID,
    "nci": {"max_features": ("sqrt", "log2")},
}
_SCHEDULE: dict[str, Any] = {"lr_schedule": "cosine", "warmup": 0.05}
# The best of a few settings for the pooled GNN on the random splits 0 and 1.
GINE_MODULE: dict[str, Any] = {"lr": 3e-3, "weight_decay": 0.01, **_SCHEDULE}
GINE_FIT: dict[str, Any] = {"max_epochs": 30, "patience": None, "gradient_clip": 1.0}
# Tuned for models that add this linear path to label message passing.
LINEAR_MODULE: dict[str, Any] = {"lr": 3e-4, "weight_decay": 0.1, **_SCHEDULE}
LINEAR_FIT: dict[str, Any] = {**GINE_FIT, "max_epochs": 18, "ema_decay": 0.98}

Scores = tuple[Any, Any]  #: Scores of validation and of test samples.
Made = tuple[str, Callable[[], Scores]]  #: A row's name, and a function that returns its scores.


def baselines(task: Task, split: Split, seed: int, options: dict[str, Any]) -> list[str]:
    """The names of all rows without label message passing."""
    return [name for name, _ in _rows(task, split, seed, options)]


def run_baseline(
    task: Task, split: Split, seed: int, name: str, options: dict[str, Any]
) -> list[dict[str, Any]]:
    """Trains and evaluates the named row with one seed. Returns a list of one run."""
    torch.set_num_threads(1)
    start = time.perf_counter()
    scores = dict(_rows(task, split, seed, options))[name]()
    return [task.run(Row(name), split, seed, time.perf_counter() - start, *scores).to_dict()]


def classifier_scores(dataset: MultiLabelDataset) -> StackingFeatures:
    """The preprocessing step that computed the base scores of a table's samples."""
    return cast(StackingFeatures, cast(Chain, dataset.preprocessor).steps[-1])


def _rows(task: Task, split: Split, seed: int, options: dict[str, Any]) -> Iterator[Made]:
    yield FREQUENCY, lambda: _frequency(task, split)
    if task.name in TABLES:
        if task.recipe.classifiers:
            for entry in classifier_scores(task.dataset).classifiers.values():
                yield entry.title, partial(_base_classifier, task, split, entry.classifier)
        inputs = inputs_of(task.dataset)
        yield "logistic regression, tuned", partial(_linear, inputs, task, split, "logistic")
    if task.name in DNA:
        yield from _both_linear("words of DNA", lambda: _words_of_dna(task, split), task, split)
    if task.name in PLANTED:
        # Components of all labels side by side, scaled to unit length in the mean.
        x = np.stack([data.x.numpy().ravel() for data in task.dataset])
        yield from _both_linear("all components", lambda: x / np.sqrt(x.shape[1]), task, split)
        yield "best without neighbours", lambda: _best(task, split, messages=False)
        yield "best possible", lambda: _best(task, split, messages=True)
    if task.name in MOLECULES:
        yield from _molecules(task, split, seed, options)


class Rival(NamedTuple):
    """A classifier that every model of the papers is compared with, on any data set."""

    scores: Callable[[Task, Split], Scores]
    settings: dict[str, Any]


def rivals(name: str, seed: int) -> dict[str, Rival]:
    """The rivals for a data set, by name."""

    def svm(task: Task, split: Split) -> Scores:
        return _linear(_plain_inputs(task, split), task, split, "hinge")

    def default(baseline: Baseline) -> Rival:
        return Rival(partial(_fitted, baseline), options_of(baseline))

    rows = {
        FREQUENCY: Rival(_frequency, {}),
        "linear SVM": Rival(svm, {**options_of(LinearBaseline()), "grid": LINEAR_GRIDS["hinge"]}),
        "classifier chain": default(ClassifierChain(random_state=seed)),
        "ensemble of chains": default(ChainEnsemble(random_state=seed)),
        "ML-kNN": default(MLkNN()),
        "label trees": default(LabelTrees(random_state=seed)),
    }
    if name in MOLECULES:
        grid = FOREST_GRIDS.get(name, DEFAULT_GRID)
        settings = {**options_of(forest()), "grid": dict(grid)}
        rows["random forest"] = Rival(partial(_forest, seed=seed, tuned=True), settings)
    return rows


def options_of(classifier: Baseline) -> dict[str, Any]:
    """The options of a classifier, without its seed and number of jobs."""
    options = classifier.get_params()
    excluded = ("random_state", "n_jobs")
    return {name: value for name, value in options.items() if name not in excluded}


def forest(seed: int = 0) -> ForestBaseline:
    """The random forest on fingerprints of molecules, with its default settings."""
    return ForestBaseline(500, criterion="gini", random_state=seed)


def _fitted(baseline: Baseline, task: Task, split: Split) -> Scores:
    """Fits a classifier with its default settings, and returns its scores."""
    x = _plain_inputs(task, split)
    return _scores(baseline.fit(x[split.train.numpy()], task.dataset.y[split.train]), x, split)


def _scores(fitted: Any, x: Any, split: Split) -> Scores:
    return fitted.predict_proba(x[split.val.numpy()]), fitted.predict_proba(x[split.test.numpy()])


def _plain_inputs(task: Task, split: Split) -> Any:
    """One vector for each sample."""
    if task.name in MOLECULES:
        return fingerprints(task)
    return _words_of_dna(task, split) if task.name in DNA else inputs_of(task.dataset)


def _frequency(task: Task, split: Split) -> Scores:
    frequency = LabelFrequency().fit(split.train, task.dataset.y[split.train])
    return frequency.predict_proba(split.val), frequency.predict_proba(split.test)


def _base_classifier(task: Task, split: Split, classifier: Any) -> Scores:
    """Scores of a classifier that provides base scores for label message passing."""
    return _scores(classifier, inputs_of(task.dataset), split)


def _both_linear(name: str, inputs: Callable[[], Any], task: Task, split: Split) -> Iterator[Made]:
    rows: dict[str, Loss] = {"linear SVM": "hinge", "logistic regression": "logistic"}
    for title, loss in rows.items():
        yield f"{title} on {name}, tuned", lambda loss=loss: _linear(inputs(), task, split, loss)


def _linear(x: Any, task: Task, split: Split, loss: Loss) -> Scores:
    return _scores(tuned_linear(x, task.dataset.y, split, loss), x, split)


def tuned_linear(
    x: Any, y: torch.Tensor, split: Split, loss: Loss = "hinge", n_jobs: int = 1
) -> LinearBaseline:
    """Linear classifiers with the regularisation of the best micro-F1 on validation samples."""
    train, val = split.train.numpy(), split.val.numpy()
    return LinearBaseline.tuned(x[train], y[train], x[val], y[val], loss=loss, n_jobs=n_jobs)


def _words_of_dna(task: Task, split: Split) -> Any:
    """TF-IDF weights of all words of 5 to 8 letters on either strand."""
    letters = np.array(list("ACGTN"))
    texts = ["".join(letters[data.x]) for data in task.dataset]
    backward = str.maketrans("ACGT", "TGCA")
    strands = [f"{text} {text[::-1].translate(backward)}" for text in texts]
    # The analyzer makes no word across the strands, and pads the ends of a strand with spaces.
    options = {"ngram_range": (5, 8), "lowercase": False, "min_df": 3, "dtype": np.float32}
    vectorizer = CountVectorizer(analyzer="char_wb", **options)
    vectorizer.fit([strands[index] for index in split.train])
    counts = vectorizer.transform(strands)
    return TfIdf().learn(counts[split.train.numpy()]).weigh(counts)


def substructures(task: Task) -> np.ndarray:
    """Whether molecules have each circular substructure: Morgan fingerprints."""
    fingerprint = Fingerprint("morgan")
    counts = torch.cat([fingerprint(Data(smiles=smiles)).morgan for smiles in task.dataset.smiles])
    present: np.ndarray = counts.numpy() > 0
    return present


def fingerprints(task: Task) -> Any:
    """The substructures that random forests take as inputs, as sparse rows of unit length."""
    return normalize(csr_matrix(substructures(task), dtype=np.float32))


def _best(task: Task, split: Split, messages: bool) -> Scores:
    dataset = cast(Planted, task.dataset)
    # The shift maps the threshold that generated the labels to 0.5, which tuning always tries.
    probabilities = 1 / (1 + np.exp(dataset.threshold - dataset.scores(messages)))
    return probabilities[split.val], probabilities[split.test]


def _molecules(task: Task, split: Split, seed: int, options: dict[str, Any]) -> Iterator[Made]:
    yield from _both_linear("fingerprints", lambda: fingerprints(task), task, split)
    yield "random forest", lambda: _forest(task, split, seed, tuned=False)
    yield "random forest, tuned", lambda: _forest(task, split, seed, tuned=True)
    seed_everything(seed, verbose=False)
    gine = PooledGNN(task.dataset.num_labels)
    gine_fit = {**GINE_FIT, **options}
    yield (
        "GINE + sum pooling",
        lambda: _trained(task, split, seed, gine, GINE_MODULE, gine_fit),
    )
    train = task.dataset[split.train]
    if vector_encoders(train, channels=1):
        linear_fit = {**LINEAR_FIT, **options}
        yield (
            "linear path alone",
            lambda: _trained(task, split, seed, LinearAlone(train), LINEAR_MODULE, linear_fit),
        )
    if "base_scores" in task.dataset[0]:
        yield SILENT, lambda: task.recipe.untrained_scores(task.dataset, split)


def _forest(task: Task, split: Split, seed: int, tuned: bool) -> Scores:
    train, val = split.train.numpy(), split.val.numpy()
    x, y, baseline = substructures(task), task.dataset.y.numpy(), forest(seed)
    if not tuned:
        return _scores(baseline.fit(x[train], y[train]), x, split)
    grid = FOREST_GRIDS.get(task.name, DEFAULT_GRID)
    options = {"grid": grid, "metric": macro_roc_auc, **baseline.get_params()}
    return _scores(ForestBaseline.tuned(x[train], y[train], x[val], y[val], **options), x, split)


def _trained(
    task: Task,
    split: Split,
    seed: int,
    model: torch.nn.Module,
    module: dict[str, Any],
    settings: dict[str, Any],
) -> Scores:
    seed_everything(seed, verbose=False)
    lightning_module = MultiLabelModule(model, task.dataset.label_names, **module)
    data = MultiLabelDataModule(task.dataset, split, batch_size=task.recipe.batch_size, seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        trained = fit(lightning_module, data, folder, **settings, accelerator="cpu", logger=False)
        return scores_of(trained.training, data)


def scores_of(training: Training, data: MultiLabelDataModule) -> Scores:
    """The scores of validation and of test samples."""
    return training.scores(data.val_dataloader()), training.scores(data.test_dataloader())


class PooledGNN(nn.Module):
    """The usual graph classifier: isomorphism layers with edge features (Hu et al. 2020,
    arXiv:1905.12265), a sum over the atoms, and one linear layer.
    """

    def __init__(
        self, num_labels: int, channels: int = 64, num_layers: int = 3, dropout: float = 0.1
    ) -> None:
        super().__init__()
        self.inputs = MoleculeEncoder(channels)
        sizes, drop = (channels, 2 * channels), nn.Dropout(dropout)
        self.convs = nn.ModuleList(
            GINEConv(nn.Sequential(nn.Linear(*sizes), nn.ReLU(), drop, nn.Linear(*sizes[::-1])))
            for _ in range(num_layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in range(num_layers))
        self.lin = nn.Linear(channels, num_labels)

    def forward(self, data: Data) -> Tensor:
        atoms = self.inputs(data)
        x = atoms.x
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = x + norm(conv(x, atoms.edge_index, atoms.edge_attr)).relu()
        logits: Tensor = self.lin(global_add_pool(x, data.batch, atoms.ptr.numel() - 1))
        return logits


class LinearAlone(nn.Module):
    """One linear layer over fingerprints and descriptors, plus a bias per label."""

    def __init__(self, train: MultiLabelDataset) -> None:
        super().__init__()
        self.vectors = nn.ModuleList(vector_encoders(train, channels=1))
        vectors = cast("list[VectorEncoder]", list(self.vectors))
        self.linear_path = LinearPath(vectors, train.num_labels)
        self.bias = nn.Parameter(torch.logit(train.y.nanmean(dim=0).nan_to_num(0.5), eps=1e-3))

    def forward(self, data: Data) -> Tensor:
        logits: Tensor = self.linear_path(data) + self.bias
        return logits
