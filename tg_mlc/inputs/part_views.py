"""Views of samples of several parts: those of each part, and those of all parts side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from typing_extensions import Self

from tg_mlc._names import find
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.parts import has_part, part_of
from tg_mlc.inputs.kind import View


class PartView(View):
    """A view of a part, and a column that is 1 where the part is missing; its features are 0 there.

    Args:
        part (str): The name of the part.
        view (str): The registered name of the view.
        is_unit (bool, optional): Whether to divide the features by the root of their mean square
            length in training samples, for views side by side. (default: :obj:`False`)
    """

    def __init__(self, part: str = "", view: str = "", is_unit: bool = False) -> None:
        self.part, self.view, self.is_unit = part, view, is_unit

    def fit(self, dataset: MultiLabelDataset) -> Self:
        samples = part_of(dataset, self.part)
        self.fitted: View = find("view", self.view)().fit(samples)
        matrix = self.fitted.matrix(samples)
        squares = matrix.power(2) if sp.issparse(matrix) else np.square(matrix)
        length = float(squares.sum() / matrix.shape[0]) ** 0.5
        self.num_features, self.scale = matrix.shape[1], 1.0
        if self.is_unit and length > 0:
            self.scale = 1 / length
        return self

    def matrix(self, dataset: MultiLabelDataset) -> Any:
        is_present = has_part(dataset, self.part).numpy()
        is_missing = ~is_present[:, None]
        own: Any = np.empty((0, self.num_features), np.float32)
        if is_present.any():
            own = self.fitted.matrix(part_of(dataset, self.part)) * np.float32(self.scale)
        if sp.issparse(own):
            counts = np.zeros(len(is_present), np.int64)
            counts[is_present] = np.diff(own.indptr)
            entries = own.data, own.indices, np.concatenate([[0], counts.cumsum()])
            rows = sp.csr_array(entries, shape=(len(is_present), self.num_features))
            return sp.hstack([rows, sp.csr_array(is_missing.astype(own.dtype))], format="csr")
        rows = np.zeros((len(is_present), self.num_features), own.dtype)
        rows[is_present] = own
        return np.concatenate([rows, is_missing.astype(own.dtype)], axis=1)

    def state_dict(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name != "fitted"}
        return {"view": "part", "options": state, "state": self.fitted.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        vars(self).update(state["options"])
        self.fitted = find("view", self.view)().load_state_dict(state["state"])
        return self


class SideBySide(View):
    """The views of all parts, side by side, each of mean square length 1.

    Args:
        views (dict): The registered name of the view of each part.
    """

    def __init__(self, views: Mapping[str, str] | None = None) -> None:
        pairs = (views or {}).items()
        self.views = [PartView(part, view, is_unit=True) for part, view in pairs]

    def fit(self, dataset: MultiLabelDataset) -> Self:
        for view in self.views:
            view.fit(dataset)
        return self

    def matrix(self, dataset: MultiLabelDataset) -> Any:
        matrices = [view.matrix(dataset) for view in self.views]
        if any(map(sp.issparse, matrices)):
            return sp.hstack(matrices, format="csr")
        return np.concatenate(matrices, axis=1)

    def state_dict(self) -> dict[str, Any]:
        return {"view": "side_by_side", "views": [view.state_dict() for view in self.views]}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        self.views = [PartView().load_state_dict(item) for item in state["views"]]
        return self
