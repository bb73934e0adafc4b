"""Vectors: rows of numbers. Columns may have different scales."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from typing_extensions import Self, Unpack

from tg_mlc._input_options import INPUT_OPTIONS
from tg_mlc._numbers import as_list
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.bags import with_attribute
from tg_mlc.inputs._features import TableKind, as_documents, may_be_rows, read_matrix
from tg_mlc.inputs.cells import clean
from tg_mlc.inputs.kind import EncoderOptions, Form, ReadOptions, Rows, View
from tg_mlc.inputs.notations import PLAIN
from tg_mlc.inputs.preprocessor import Preprocessor
from tg_mlc.inputs.scalers import QuantileScaler, Scale, StandardScaler, make_scaler
from tg_mlc.inputs.schema import Column, is_dense_frame


class Scaled(View):
    """Vectors whose columns are standardised, replaced by normal quantiles of their ranks, or
    centred and divided by one common scale. A missing entry counts as the mean of its column.
    """

    scaler: StandardScaler | QuantileScaler
    fill: Tensor

    def __init__(self, scaling: Literal["standard", "quantile", "centred"]) -> None:
        self.scaling = scaling

    def fit(self, dataset: MultiLabelDataset) -> Self:
        x = self._rows(dataset)
        self.fill = x.nanmean(dim=0).nan_to_num()
        self.scaler = make_scaler(self.scaling, x.size(1)).fit(self._filled(x))
        if self.scaling == "centred" and isinstance(self.scaler, StandardScaler):
            spread = self._filled(x).std(dim=0, correction=0).square().mean().sqrt()
            self.scaler.spread.fill_(float(spread) or 1.0)
        return self

    def matrix(self, dataset: MultiLabelDataset) -> np.ndarray:
        x: Tensor = self.scaler(self._filled(self._rows(dataset)))
        scaled: np.ndarray = (x / math.sqrt(x.size(1)) if self.scaling == "quantile" else x).numpy()
        return scaled

    def state_dict(self) -> dict[str, Any]:
        return {"fill": self.fill, "scaler": self.scaler.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        self.fill = torch.as_tensor(state["fill"])
        self.scaler = make_scaler(self.scaling, len(self.fill))
        self.scaler.load_state_dict(state["scaler"])
        return self

    def _rows(self, dataset: MultiLabelDataset) -> Tensor:
        return dataset.rows("x")

    def _filled(self, x: Tensor) -> Tensor:
        return torch.where(x.isnan(), self.fill, x)


def _example_cells(column: Column, number: int) -> list[Any]:
    """Returns made-up cells of a column; an empty list if none are known."""
    if column.role == "category":
        values = [*column.values, ""]
        return [values[row % len(values)] for row in range(number)]
    if column.numbers != PLAIN:
        is_readable = column.numbers.parse(clean(column.example)) is not None
        return [column.example] * number if is_readable else []
    seed = [*column.name.encode()]
    numbers: list[Any] = np.random.default_rng(seed).normal(size=number).round(3).tolist()
    return numbers


class Vectors(TableKind):
    """Makes samples of rows of numbers that have the columns of the training data."""

    forms = {"vectors": Form("vector", is_matrix=True)}
    option, parts = "rows", "columns"
    command_option = INPUT_OPTIONS["features"]
    views = {scaling: partial(Scaled, scaling) for scaling in ("standard", "quantile", "centred")}
    reads_columns = True
    are_columns = True

    @classmethod
    def recognise(cls, X: Any) -> tuple[str, str] | None:
        return "vector", "they make a dense matrix of numbers"

    @classmethod
    def read(
        cls, X: Any, kind: str | None, **options: Unpack[ReadOptions]
    ) -> tuple[Rows, list[str] | None]:
        documents = as_documents(X)
        if documents is not None and not may_be_rows(documents):
            raise ValueError("Expected a matrix of numbers for kind='vector' (got lists of words)")
        return read_matrix(X, options.get("feature_names"), options.get("num_inputs"), sparse=False)

    def _of_list(self, raw: list[Any]) -> MultiLabelDataset:
        return self._of_matrix(*self._read_rows(raw))

    def unreadable(self, raw: Any) -> dict[int, str]:
        raw = as_list(raw)
        if is_dense_frame(raw):
            return self._read_frame(raw)[1]
        return self._read_rows(list(raw))[1] if isinstance(raw, (list, tuple)) else {}

    @classmethod
    def steps(cls, *, scaled: bool = False) -> list[Preprocessor]:
        return [cls(), Scale("standard")] if scaled else [cls()]

    @classmethod
    def encoder(
        cls, train: MultiLabelDataset, channels: int, **options: Unpack[EncoderOptions]
    ) -> nn.Module:
        from tg_mlc.nn.encoders import VectorEncoder

        size, dropout = options.get("num_components", 8), options.get("input_dropout", 0.2)
        return VectorEncoder(train.num_inputs or 0, channels, size, dropout=dropout)

    @classmethod
    def on_scale(
        cls,
        dataset: MultiLabelDataset,
        choose: Callable[[Sequence[str]], str],
        matrix: Callable[[str], Any],
    ) -> MultiLabelDataset:
        return with_attribute(dataset, "x", torch.from_numpy(matrix(choose([*cls.views]))))

    def examples(self, number: int) -> Any:
        """Returns rows by column, with cells as in the training table, or a matrix."""
        schema = self._training_schema()
        cells = {} if schema is None else {c.name: _example_cells(c, number) for c in schema.inputs}
        if cells and all(cells.values()):
            return [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
        return np.random.default_rng(0).normal(size=(number, self.num_inputs)).round(3)

    def components(self, sample: Data) -> list[str]:
        return self.feature_names or [f"column {number}" for number in range(self.num_inputs)]

    def hide(self, sample: Data, kept: np.ndarray, steps: Sequence[Preprocessor] = ()) -> Data:
        """Returns a sample whose hidden columns are NaN if a later step takes NaN, else their means
        in training data, or 0 if no step knows these means.
        """
        values = (step.unknown for step in steps)
        unknown = torch.as_tensor(next((value for value in values if value is not None), 0.0))
        hidden = copy(sample)
        hidden.x = torch.where(torch.from_numpy(kept), sample.x, unknown.to(sample.x))
        return hidden
