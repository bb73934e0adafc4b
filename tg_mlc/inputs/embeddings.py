"""Embeddings: several vectors for each sample, such as vectors of tokens, patches or residues."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import scatter
from typing_extensions import Unpack

from tg_mlc._names import check_names
from tg_mlc._numbers import as_array, as_list
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.records import Tokens
from tg_mlc.inputs._features import TableKind
from tg_mlc.inputs.kind import EncoderOptions, Form, InputKind, ReadOptions
from tg_mlc.inputs.rows import only_cell
from tg_mlc.inputs.scalers import StandardScaler
from tg_mlc.inputs.vectors import Scaled


class Pooled(Scaled):
    """The mean and the maximum of the vectors of every sample, standardised or only centred."""

    def _rows(self, dataset: MultiLabelDataset) -> Tensor:
        x, sample = _vectors_of(dataset)
        size = len(dataset)
        parts = [scatter(x, sample, dim_size=size, reduce=mode) for mode in ("mean", "max")]
        return torch.cat(parts, dim=1)


class Embeddings(TableKind):
    """Matrices :math:`(n_i, F)` with the same number of columns; rows become components.

    Raises:
        ValueError: On use, if a sample has no vector, vectors of another size, or entries that are
            not finite.
    """

    forms = {"embeddings": Form("embeddings")}
    option = "embeddings"
    noun, parts = "a matrix of vectors", "vectors"
    views = {"pooled": partial(Pooled, "standard"), "pooled_centred": partial(Pooled, "centred")}

    @classmethod
    def recognise(cls, X: Any) -> tuple[str, str] | None:
        reason = "they are a matrix of vectors for each sample"
        return ("embeddings", reason) if _num_dims(as_list(X)) == 3 else None

    @classmethod
    def listed(cls, X: Any, form: str) -> list[Any]:
        return list(as_list(X))

    @classmethod
    def check(cls, raw: Any, size: int | None = None) -> None:
        _read(raw, size)

    @classmethod
    def read(
        cls, X: Any, kind: str | None, **options: Unpack[ReadOptions]
    ) -> tuple[Tokens, list[str] | None]:
        """Reads matrices with the same number of columns, or an array :math:`(N, n, F)`."""
        rows, size = list[np.ndarray](), options.get("num_inputs")
        for row, raw in enumerate(as_list(X)):
            try:
                rows.append(_read(raw, size))
                size = size or rows[0].shape[1]
            except ValueError as error:
                raise ValueError(f"{error} in row {row}") from None
        names = options.get("feature_names")
        if names is not None:
            check_names(list(names), rows[0].shape[1], "feature_names")
        ptr = np.cumsum([0, *map(len, rows)]).astype(np.int64)
        return Tokens(np.concatenate(rows), ptr), None if names is None else list(names)

    def unreadable(self, raw: Any) -> dict[int, str]:
        refused = {}
        for row, entry in enumerate(as_list(self._column(raw))):
            try:
                self.check(only_cell(entry, self.noun), self.num_inputs)
            except ValueError as error:
                refused[row] = str(error)
        return refused

    def _column(self, raw: Any) -> Any:
        return InputKind._column(self, raw)

    @classmethod
    def encoder(
        cls, train: MultiLabelDataset, channels: int, **options: Unpack[EncoderOptions]
    ) -> nn.Module:
        from tg_mlc.nn.encoders import NodeEncoder

        size = train.num_inputs or 0
        scaling = StandardScaler(size).fit(_vectors_of(train)[0])
        dropout = options.get("input_dropout", 0.2)
        return NodeEncoder(size, channels, scaling=scaling, dropout=dropout)

    def examples(self, number: int) -> Any:
        rng, width = np.random.default_rng(0), self.num_inputs
        return [rng.normal(size=(1 + i % 7, width)).round(3).tolist() for i in range(number)]

    def components(self, sample: Data) -> list[str]:
        return [f"vector {index}" for index in range(sample.x.size(0))]


def _read(raw: Any, size: int | None) -> np.ndarray:
    expected = f"a matrix [num_vectors, {size or 'size'}] of finite numbers with a vector or more"
    try:
        values = as_array(raw)
    except ValueError:
        raise ValueError(f"Expected {expected} (got lists of several lengths)") from None
    is_matrix = values.dtype.kind in "biuf" and values.ndim == 2 and 0 not in values.shape
    if not is_matrix or size not in (None, values.shape[1]):
        raise ValueError(f"Expected {expected} (got {values.dtype} of shape {list(values.shape)})")
    with np.errstate(over="ignore"):
        values = values.astype(np.float32)
    if not np.isfinite(values).all():
        raise ValueError(f"Expected {expected} (got {values[~np.isfinite(values)][0]})")
    return values


def _num_dims(X: Any) -> int:
    """Returns the number of dimensions of nested lists and arrays, judged by first entries."""
    if isinstance(X, Sequence) and not isinstance(X, (str, bytes)):
        return 1 + _num_dims(X[0]) if X else 1
    return int(getattr(X, "ndim", 0))


def _vectors_of(dataset: MultiLabelDataset) -> tuple[Tensor, Tensor]:
    """Returns all vectors, and for every vector the index of its sample."""
    vectors = [data.x for data in dataset]
    sizes = torch.tensor(list(map(len, vectors)))
    return torch.cat(vectors), torch.arange(len(vectors)).repeat_interleave(sizes)
