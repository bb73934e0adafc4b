"""The stages Features (raw inputs become samples) and Classifiers (adds their scores)."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Subset
from torch_geometric.data import Dataset
from torch_geometric.data.data import BaseData
from typing_extensions import Self

from tg_mlc.data import MultiLabelDataset
from tg_mlc.inference.batches import makes_batches
from tg_mlc.inference.flow import Flow
from tg_mlc.inference.stage import NetworkClass, Stage, State, TensorStage, Values
from tg_mlc.inputs import Chain, InputKind, Preprocessor
from tg_mlc.inputs.kind import num_rows
from tg_mlc.inputs.preprocessor import from_state, to_state

#: Names of the inputs of a program that hold the features of base classifiers, by view.
VIEW = "features_{}"


def rows_of(raw: Any, rows: Sequence[int]) -> Any:
    """Returns some rows of a table or a list of raw inputs."""
    return raw.iloc[rows] if hasattr(raw, "iloc") else [raw[row] for row in rows]


def row_of(raw: Any, row: int) -> Any:
    """Returns a row of a table, as a dictionary, or an entry of a column or list of raw inputs."""
    entry = raw.iloc[row] if hasattr(raw, "iloc") else raw[row]
    return entry.to_dict() if hasattr(entry, "to_dict") else entry


def _with_equal_targets(samples: Sequence[BaseData]) -> Sequence[BaseData]:
    """Returns samples without targets if only some have targets, because PyG could not batch
    them.
    """
    have_targets = ["y" in sample for sample in samples]
    if all(have_targets) or not any(have_targets):
        return samples
    samples = [copy(sample) for sample in samples]
    for sample, has_target in zip(samples, have_targets, strict=True):
        if has_target:
            del sample.y
    return samples


class Features(Stage):
    """Turns raw inputs into samples.

    Args:
        *steps (Preprocessor): The steps from raw inputs to samples; no steps if the model only
            takes samples.
    """

    def __init__(self, *steps: Preprocessor) -> None:
        self.steps = steps

    @property
    def kind(self) -> InputKind | None:
        """The kind of input; :obj:`None` if the first step is not an :class:`InputKind`."""
        first = self.steps[0] if self.steps else None
        return first if isinstance(first, InputKind) else None

    def read(self, raw: Any) -> Any:
        """Returns the samples of raw inputs; samples are returned unchanged."""
        if makes_batches(raw):
            return raw
        if self.steps:
            samples = self.steps[0].transform(raw)
            for reason in self._unreadable_samples(samples).values():
                raise ValueError(reason)
            return samples
        if isinstance(raw, (list, tuple)) and raw and all(isinstance(row, BaseData) for row in raw):
            return _with_equal_targets(raw)
        if isinstance(raw, (Dataset, Subset)):
            return raw
        got = "one, not in a list" if isinstance(raw, BaseData) else type(raw).__name__
        raise ValueError(
            f"Expected samples as the model was trained on, because it was saved without a "
            f"preprocessor (got {got}); pass a list of Data or a data set, or 'preprocessor' to "
            f"MultiLabelModule before training"
        )

    def unreadable(self, raw: Any) -> dict[int, str]:
        """Returns the reasons why raw inputs are unreadable, by row."""
        if not self.steps:
            return {}
        reasons, size = self.steps[0].unreadable(raw), num_rows(raw) or 0
        rows = [row for row in range(size) if row not in reasons]
        if rows:
            unfit = self._unreadable_samples(self.steps[0].transform(rows_of(raw, rows)))
            reasons |= {rows[row]: reason for row, reason in unfit.items()}
        return dict(sorted(reasons.items()))

    def _unreadable_samples(self, samples: Any) -> dict[int, str]:
        """Returns the reasons why the second step cannot take samples, by row."""
        return self.steps[1].unreadable(samples) if len(self.steps) > 1 else {}

    def apply(self, flow: Flow) -> None:
        if not makes_batches(flow.samples):
            for step in self.steps[1:]:
                flow.samples = step.transform(flow.samples)

    def state_dict(self) -> dict[str, Any]:
        return {"steps": [to_state(step) for step in self.steps]}

    @classmethod
    def from_state(cls, state: State, label_names: list[str], network: NetworkClass) -> Self:
        return cls(*map(from_state, state["steps"]))

    def __str__(self) -> str:
        return ", ".join(type(step).__name__ for step in self.steps) or "samples as they are"


class Classifiers(Stage):
    """Adds the scores of base classifiers to samples, as their attribute :obj:`base_scores`.

    Args:
        features (StackingFeatures): The fitted classifiers, with the views that are their inputs.
    """

    def __init__(self, features: Any) -> None:
        self.features = features

    @property
    def steps(self) -> tuple[Preprocessor, ...]:
        """The steps between samples and networks."""
        return (self.features,)

    def apply(self, flow: Flow) -> None:
        flow.samples = self.features.transform(flow.samples)

    def matrices(self, samples: MultiLabelDataset) -> dict[str, Tensor]:
        """Returns the features :math:`(N, F)` that the classifiers take, by view."""
        matrices = {}
        for view in dict.fromkeys(clf.view for clf in self.features.classifiers.values()):
            matrix: Any = self.features.views[view].matrix(samples)
            dense = matrix.toarray() if hasattr(matrix, "toarray") else matrix
            matrices[view] = torch.from_numpy(np.asarray(dense, dtype=np.float32))
        return matrices

    @property
    def titles(self) -> list[str]:
        """The names of the classifiers in tables of results."""
        return [classifier.title for classifier in self.features.classifiers.values()]

    def module(self) -> TensorStage:
        return _ClassifierModules(self.features)

    def state_dict(self) -> dict[str, Any]:
        return to_state(self.features)

    @classmethod
    def from_state(cls, state: State, label_names: list[str], network: NetworkClass) -> Self:
        return cls(from_state(state))

    def __str__(self) -> str:
        return ", ".join(self.titles)


class _ClassifierModules(TensorStage):
    """Computes base scores from features, unless a program takes base scores as an input."""

    def __init__(self, features: Any) -> None:
        super().__init__()
        classifiers = features.classifiers.values()
        self.views = [VIEW.format(classifier.view) for classifier in classifiers]
        self.classifiers = nn.ModuleList(classifier.module() for classifier in classifiers)

    def forward(self, values: Values) -> Values:
        if "base_scores" in values:
            return values
        pairs = zip(self.classifiers, self.views, strict=True)
        scores = [classifier(values[view]) for classifier, view in pairs]
        others = {name: value for name, value in values.items() if name not in self.views}
        return {**others, "base_scores": torch.stack(scores, dim=-1)}


def stages_of(preprocessor: Preprocessor | None) -> list[Stage]:
    """Returns the stages of a preprocessor: Features, and Classifiers if it adds base scores."""
    if preprocessor is None:
        return [Features()]
    steps = list(preprocessor.steps) if isinstance(preprocessor, Chain) else [preprocessor]
    if not steps[-1].makes_base_scores:
        return [Features(*steps)]
    return [Features(*steps[:-1]), Classifiers(steps[-1])]
