"""BaseScores as a preprocessor: scores of classifiers that are fitted before a model, and saved with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from typing_extensions import Self

from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.data.bags import with_attribute
from tg_mlc.inputs import Preprocessor
from tg_mlc.stacking.raters import RATERS, StackedClassifier
from tg_mlc.stacking.resumable import ResumableParts, key_of

if TYPE_CHECKING:
    import os


class ClassifierScores(Preprocessor):
    """Scores of classifiers as the attribute :obj:`base_scores` of samples, :math:`(1, L, C)`.

    :meth:`fit_transform` gives training samples the scores of classifiers that were fitted without them.

    Args:
        kinds (Sequence[str], optional): The classifiers. For words and vectors: :obj:`"svm"`, :obj:`"ridge"` (kernel
            ridge regression), :obj:`"exact"` (the same, tuned for whole label sets); for molecules: :obj:`"forest"`,
            :obj:`"molecule_ridge"`. (default: :obj:`("svm", "ridge")`)
        folder (str or PathLike, optional): Where to keep fits, to read them where the same samples are fitted to again.
            (default: :obj:`None`, nowhere)

    Attributes:
        raters (dict): The classifiers by kind, after :meth:`fit`.

    Raises:
        ValueError: If a classifier is not known.
    """

    def __init__(self, kinds: Sequence[str] = ("svm", "ridge"), folder: str | os.PathLike[str] | None = None) -> None:
        if unknown := [kind for kind in kinds if kind not in RATERS]:
            raise ValueError(f"Expected 'kinds' among {list(RATERS)} (got {unknown})")
        self.raters: dict[str, StackedClassifier] = {kind: RATERS[kind]() for kind in kinds}
        self.folder = None if folder is None else Path(folder)

    @property
    def classifiers(self) -> dict[str, Any]:
        """The classifiers by their names in tables of results."""
        return {rater.name: rater.classifier for rater in self.raters.values()}

    def fit(self, dataset: MultiLabelDataset, split: Split) -> Self:
        """Fits all classifiers to training samples."""
        self.fit_transform(dataset, split)
        return self

    def fit_transform(self, dataset: MultiLabelDataset, split: Split) -> MultiLabelDataset:
        """All samples with their scores, those for training by classifiers fitted without them."""
        scores = [self._fit(kind, dataset, split) for kind in self.raters]
        return with_attribute(dataset, "base_scores", torch.stack(scores, dim=-1))

    def transform(self, raw: MultiLabelDataset) -> MultiLabelDataset:
        """New samples with their scores."""
        scores = [torch.from_numpy(rater.scores(raw)).float() for rater in self.raters.values()]
        return with_attribute(raw, "base_scores", torch.stack(scores, dim=-1))

    def state_dict(self) -> dict[str, Any]:
        """The states of the classifiers by kind."""
        return {kind: rater.state_dict() for kind, rater in self.raters.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Makes the classifiers anew."""
        self.raters = {kind: RATERS[kind]() for kind in state}
        for kind, rater in self.raters.items():
            rater.load_state_dict(state[kind])
        return self

    def _fit(self, kind: str, dataset: MultiLabelDataset, split: Split) -> Tensor:
        rater = self.raters[kind]

        def fit() -> dict[str, Any]:
            held_out = rater.fit(dataset, split)
            state = rater.state_dict()
            rater.load_state_dict(state)  # as precise as what is saved
            scores = rater.scores(dataset).astype(np.float32)
            scores[split.train.numpy()] = held_out
            return {"state": state, "scores": scores}

        key = key_of((rater.settings, split.hash), rater.samples(dataset))
        found = ResumableParts(self.folder).part(f"{kind}-{key}", fit)
        rater.load_state_dict(found["state"])
        return torch.as_tensor(found["scores"])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self.raters)})"
