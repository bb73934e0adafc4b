"""Recipe: settings to load and split a data set, and to train a model on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn

from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.graphs import LabelGraph, co_occurrence, edgeless, fully_connected
from tg_mlc.inference.batches import batches_of, logits_of
from tg_mlc.inputs import Chain, Preprocessor, kind_of
from tg_mlc.metrics import Evaluation, evaluate, tune_thresholds
from tg_mlc.metrics._inputs import FloatArray
from tg_mlc.papers.base_scores import published_features
from tg_mlc.training import BinaryObjective, MultiLabelDataModule, Objective, Training
from tg_mlc.training.fitting import TrainSettings, train_model

#: Options of LaMP's optimiser, which some recipes change.
MODULE: dict[str, Any] = {"lr": 1e-3, "weight_decay": 0.01, "lr_schedule": "cosine", "warmup": 0.05}
#: Options of a model without base scores of other classifiers.
ALONE: dict[str, Any] = {"base_scores": None, "score_skip": False, "attention_dropout": None}
GraphBuilder = Callable[[MultiLabelDataset, Split], LabelGraph]


def official_split(dataset: MultiLabelDataset, method: str, seed: int) -> Split:
    """Returns the published split, which is the same for all seeds."""
    return dataset.official_split()


def correlated(dataset: MultiLabelDataset, split: Split, *, top_k: int) -> LabelGraph:
    """Returns the label graph of the largest correlations among training samples."""
    return co_occurrence(dataset, weight="correlation", top_k=top_k, split=split)


#: Arguments of :func:`~tg_mlc.inputs.input_encoder` that all models of the family share.
INPUT_OPTIONS = ("channels", "num_components", "input_dropout", "min_df", "latent")


@dataclass(frozen=True)
class Member:
    """A model of the family: its builder, and its differences from LaMP as published."""

    #: Builds the model from training samples, a label graph, whether components send messages, and
    #: options. Default: the recipe's function.
    build: Callable[..., nn.Module] | None = None
    changes: Mapping[str, dict[str, Any]] = field(default_factory=dict)  #: Changes of the recipe.
    replaced: Mapping[str, Any] = field(default_factory=dict)  #: Replaced attributes of the recipe.
    uses_graph: bool = False  #: Whether the label graph changes the model; others ignore it.


@dataclass(frozen=True)
class Source:
    """Functions that load and split samples."""

    load: Callable[[Path], MultiLabelDataset]  #: Loads samples from the folder of all data sets.
    #: Splits samples by the name of a method and a seed.
    split: Callable[[MultiLabelDataset, str, int], Split] = official_split
    splits: tuple[str, ...] = ("official",)  #: Names of split methods; the first is the default.
    #: Draws new samples from a seed, for synthetic data.
    redraw: Callable[[int], MultiLabelDataset] | None = None
    min_positives: int = 0  #: Metrics skip labels that occur less often.
    preprocess: bool = True  #: Whether inputs are scaled or weighted.


@dataclass(frozen=True)
class Recipe:
    """Settings to load and split a data set, and to train a model on it."""

    data: Source
    #: Label graphs other than edgeless and complete; "prior" is the default prior graph.
    graphs: Mapping[str, GraphBuilder]
    #: Builds a model from training samples, a label graph, whether components send messages, and
    #: :attr:`model`.
    build: Callable[..., nn.Module]
    model: dict[str, Any]  #: Arguments of :attr:`build`.
    module: dict[str, Any]  #: Arguments of :class:`~tg_mlc.training.MultiLabelModule`.
    fit: dict[str, Any]  #: Arguments of :func:`~tg_mlc.training.fit`.
    batch_size: int
    #: The classifiers of base scores, among :obj:`~tg_mlc.papers.base_scores.PUBLISHED`.
    classifiers: tuple[str, ...] = ()
    objective: dict[str, Any] = field(default_factory=dict)  #: Arguments of the objective class.
    objective_class: type[Objective] = BinaryObjective
    settings: dict[str, Any] = field(default_factory=dict)  #: Preprocessing, for result files.
    #: Changes for LaMP as published: the paper's settings if LaMP learns with them, else ours.
    published: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    rivals: Mapping[str, dict[str, Any]] = field(default_factory=dict)  #: More changes for rivals.

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of split methods; the first is the default."""
        return self.data.splits

    @property
    def redraw(self) -> Callable[[int], MultiLabelDataset] | None:
        """A function that draws new samples from a seed, for synthetic data."""
        return self.data.redraw

    def split(self, dataset: MultiLabelDataset, method: str, seed: int) -> Split:
        """Splits the samples by one of the methods :attr:`splits`."""
        return self.data.split(dataset, method, seed)

    def as_published(self) -> Recipe:
        """Returns the recipe of LaMP without base scores and without a linear path."""
        return replace(self, **self._merged(self.published), classifiers=(), published={})

    def as_member(self, member: Member) -> Recipe:
        """Returns the recipe of another model of the family on the same data.

        It has the settings of LaMP as published, with the changes for rivals in this recipe and the
        changes of the model.
        """
        recipe = self.as_published()
        if member.build is not None:
            recipe = replace(recipe, **recipe._merged(self.rivals))
        shared_options = recipe.model if member.build is None else INPUT_OPTIONS
        inputs = {key: recipe.model[key] for key in shared_options if key in recipe.model}
        model = {**inputs, **member.changes.get("model", {})}
        changed = {**recipe._merged(member.changes), "model": model, **member.replaced}
        return replace(recipe, **{**changed, "build": member.build or recipe.build})

    def _merged(self, changes: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
        """Returns attributes with changed entries."""
        return {name: {**getattr(self, name), **entries} for name, entries in changes.items()}

    def load_dataset(self, root: str | os.PathLike[str]) -> MultiLabelDataset:
        """Loads the data set from its folder in :obj:`root`, the folder of all data sets."""
        return self.data.load(Path(root))

    def prepare(self, dataset: MultiLabelDataset, split: Split) -> MultiLabelDataset:
        """Returns preprocessed samples. Their attribute
        :attr:`~tg_mlc.data.MultiLabelDataset.preprocessor` is fitted to training samples.

        Args:
            dataset (MultiLabelDataset): The data set.
            split (Split): The split of the data set.
        """
        if not self.data.preprocess:
            return dataset
        features = [published_features(self.classifiers)] if self.classifiers else []
        preprocessor = Chain(*kind_of(dataset).steps(scaled=True), *features)
        prepared = copy(preprocessor.fit_transform(dataset, split))
        prepared.preprocessor = preprocessor
        return prepared

    def counted_labels(self, dataset: MultiLabelDataset) -> Tensor:
        """Returns a mask :math:`(L)` of labels with enough positive samples in the data set."""
        is_counted: Tensor = dataset.y.nansum(dim=0) >= self.data.min_positives
        return is_counted

    def untrained_scores(self, dataset: MultiLabelDataset, split: Split) -> tuple[Tensor, Tensor]:
        """Returns scores of validation and test samples before training, from base scores."""
        label_graph = self.label_graph("edgeless", dataset, split)
        model = self.build(dataset[split.train], label_graph, **self.model).eval()
        val, test = (batches_of(dataset[part]) for part in split.parts[1:])
        return logits_of(model, val).sigmoid(), logits_of(model, test).sigmoid()

    def evaluate(
        self,
        dataset: MultiLabelDataset,
        split: Split,
        on_val: Tensor | FloatArray,
        on_test: Tensor | FloatArray,
    ) -> Evaluation:
        """Evaluates :meth:`counted_labels` on test samples, with thresholds from validation."""
        is_counted = self.counted_labels(dataset).numpy()
        y_val, y_test = (dataset.y[part][:, is_counted] for part in split.parts[1:])
        names = list(compress(dataset.label_names, is_counted))
        tuners = tune_thresholds(y_val, on_val[:, is_counted])
        return evaluate(y_test, on_test[:, is_counted], tuners, names)

    def label_graph(self, name: str, dataset: MultiLabelDataset, split: Split) -> LabelGraph:
        """Returns a label graph by name.

        Args:
            name (str): :obj:`"edgeless"`, :obj:`"complete"`, or one of :attr:`graphs`.
            dataset (MultiLabelDataset): The data set, as :meth:`prepare` returns it.
            split (Split): The split of the data set.
        """
        builders = {"edgeless": edgeless, "complete": fully_connected}
        if name in builders:
            return builders[name](dataset.label_names)
        if name not in self.graphs:
            names = [*builders, *self.graphs]
            raise ValueError(f"Expected a label graph among {names} (got {name!r})")
        return self.graphs[name](dataset, split)

    def train(
        self,
        dataset: MultiLabelDataset,
        split: Split,
        label_graph: LabelGraph,
        folder: str | os.PathLike[str],
        *,
        node_messages: bool = True,
        seed: int = 0,
        model_options: dict[str, Any] | None = None,
        module_options: dict[str, Any] | None = None,
        config: dict[str, Any] | None = None,
        **fit_options: Any,
    ) -> tuple[Training, MultiLabelDataModule]:
        """Trains a model.

        Args:
            dataset (MultiLabelDataset): The data set, as :meth:`prepare` returns it.
            split (Split): The split of the data set.
            label_graph (LabelGraph): The label graph.
            folder (str or PathLike): Folder of checkpoints and logs.
            node_messages (bool, optional): Whether components send messages to each other.
                (default: :obj:`True`)
            seed (int, optional): Seed of the weights, of dropout and of the order of samples.
                (default: :obj:`0`)
            model_options (dict, optional): Arguments of the model that differ from the recipe.
                (default: :obj:`None`)
            module_options (dict, optional): Arguments of
                :class:`~tg_mlc.training.MultiLabelModule` that differ from the recipe.
                (default: :obj:`None`)
            config (dict, optional): More entries for checkpoints. (default: :obj:`None`)
            **fit_options (optional): Arguments of :func:`~tg_mlc.training.fit` that differ from the
                recipe.
        """
        if self.data.preprocess and dataset.preprocessor is None:
            expected = "a data set that 'recipe.prepare' returns"
            raise ValueError(f"Expected {expected} (got {dataset}); call it first")
        options = {"node_messages": node_messages, **self.model, **(model_options or {})}
        settings = TrainSettings(
            module={**self.module, **(module_options or {})},
            objective=self.objective_class(**self.objective),
            fit={**self.fit, **fit_options},
            batch_size=self.batch_size,
        )
        result = train_model(
            lambda train: self.build(train, label_graph, **options),
            dataset,
            split,
            settings,
            folder,
            seed=seed,
            preprocessor=cast("Preprocessor | None", dataset.preprocessor),
            config={**(config or {}), "split": split.hash, "seed": seed, "model": options},
        )
        return result, result.data
