"""Training of a model from samples, a split and settings: the way that recipes, the default and the estimator share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from lightning.pytorch import seed_everything
from torch import nn

from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.inputs import Preprocessor
from tg_mlc.training.data import MultiLabelDataModule
from tg_mlc.training.fitting import FitResult, fit
from tg_mlc.training.module import MultiLabelModule
from tg_mlc.training.objectives import BinaryObjective, Objective


@dataclass(frozen=True)
class TrainSettings:
    """The settings of :func:`train_model`.

    Args:
        module (dict, optional): Arguments of :class:`MultiLabelModule`, such as :obj:`lr`. (default: :obj:`{}`)
        objective (Objective, optional): Loss and scores. (default: :class:`BinaryObjective`)
        fit (dict, optional): Arguments of :func:`fit`, such as :obj:`max_epochs`. (default: :obj:`{}`)
        batch_size (int, optional): Number of samples in a step. (default: :obj:`32`)
    """

    module: Mapping[str, Any] = field(default_factory=dict)
    objective: Objective = field(default_factory=BinaryObjective)
    fit: Mapping[str, Any] = field(default_factory=dict)
    batch_size: int = 32


def train_model(
    build: Callable[[MultiLabelDataset], nn.Module],
    dataset: MultiLabelDataset,
    split: Split,
    settings: TrainSettings,
    folder: str | os.PathLike[str],
    *,
    seed: int = 0,
    preprocessor: Preprocessor | None = None,
    config: dict[str, Any] | None = None,
) -> FitResult:
    """Builds a model and trains it.

    .. code-block:: python

        settings = TrainSettings({"lr": 1e-3}, BinaryObjective(intermediate_weight=0.1), {"max_epochs": 10})
        result = train_model(lambda train: table_lamp(train, label_graph), dataset, split, settings, "runs/mine")

    Args:
        build (Callable): Makes the model of training samples.
        dataset (MultiLabelDataset): All samples, as the model takes them.
        split (Split): Which of them to train, validate and test with.
        settings (TrainSettings): How to train.
        folder (str or PathLike): Where to put checkpoints and logs.
        seed (int, optional): Seed of weights, dropout and the order of samples; it is that of all random numbers of the
            process from then on. (default: :obj:`0`)
        preprocessor, config (optional): As in :class:`MultiLabelModule`. (default: :obj:`None`)
    """
    seed_everything(seed, verbose=False)
    model, names = build(cast(MultiLabelDataset, dataset[split.train])), dataset.label_names
    module = MultiLabelModule(
        model, names, settings.objective, preprocessor=preprocessor, config=config, **settings.module
    )
    data = MultiLabelDataModule(dataset, split, batch_size=settings.batch_size, seed=seed)
    return fit(module, data, folder, **settings.fit)
