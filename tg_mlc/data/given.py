"""Given labels, which models take as inputs: read from a caller, or drawn for training."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data.data import BaseData

from tg_mlc._frames import as_frame
from tg_mlc._names import check_names, shorten
from tg_mlc._numbers import as_array, as_list
from tg_mlc.data._label_values import read_labels
from tg_mlc.data.bags import without_attribute
from tg_mlc.data.dataset import MultiLabelDataset

#: The largest fraction of known labels that :func:`draw_given` gives in training.
MAX_GIVEN = 0.75


def given_labels(label_names: Sequence[str], given: Any, batch_size: int = 1) -> Tensor:
    r"""Makes the attribute :obj:`given` of a batch from known labels.

    .. code-block:: python

        batch.given = given_labels(module.label_names, {"nausea": 1, "rash": 0}, batch.num_graphs)
        scores = module.predict_step(batch)

    Args:
        label_names (Sequence[str]): The names of all labels.
        given (Any): Labels 0, 1, or NaN or None for unknown: a mapping from names for all samples;
            a list of mappings, one for each sample; a data frame, whose columns are some of the
            labels; or a matrix :math:`(B, L)` of all labels.
        batch_size (int, optional): The number of samples, if :obj:`given` is one mapping.
            (default: :obj:`1`)

    Shapes:
        - **output:** :math:`(B, L)`: 0, 1, or NaN for unknown

    Raises:
        ValueError: If a name is unknown, or a value is neither 0, 1 nor NaN.
    """
    is_named = isinstance(given, Mapping) and not hasattr(given, "shape")
    given = given if is_named or isinstance(given, list) else as_list(as_frame(given))
    if hasattr(given, "columns"):
        columns = [str(name) for name in given.columns]
        check_names(columns, len(columns), "columns of given")
        given = [dict(zip(columns, row, strict=True)) for row in as_array(given)]
    rows = [given] if isinstance(given, Mapping) else given
    if isinstance(rows, list) and all(isinstance(row, Mapping) for row in rows):
        if unknown := [name for row in rows for name in row if name not in label_names]:
            expected = f"'given' to name labels of the model, such as {list(label_names[:5])}"
            raise ValueError(f"Expected {expected} (got {list(dict.fromkeys(unknown))[:5]})")
        if lists := [name for row in rows for name, value in row.items() if np.ndim(value) > 0]:
            expected = "'given' to have one value for each name, the same for all samples"
            hint = "pass a list of mappings, one for each sample, or a data frame"
            raise ValueError(f"Expected {expected} (got several for {lists[0]!r}); {hint}")
        rows = [[row.get(name) for name in label_names] for row in rows]
    values = as_array(rows)
    if values.ndim != 2 or values.shape[1] != len(label_names):
        is_array = values.ndim > 0 and values.dtype != object
        got = f"shape {list(values.shape)}" if is_array else shorten(reprlib.repr(given))
        full = f"a matrix with a column for each of {len(label_names)} labels"
        expected = f"a mapping from names, a list of one for each sample, a data frame, or {full}"
        raise ValueError(f"Expected 'given' to be {expected} (got {got})")
    matrix = torch.from_numpy(read_labels(values, label_names)[0])
    return matrix.repeat(batch_size, 1) if isinstance(given, Mapping) else matrix


def draw_given(
    y: Tensor,
    max_fraction: float,
    generator: torch.Generator | None = None,
    *,
    present_only: bool = False,
) -> tuple[Tensor, Tensor]:
    r"""Draws given labels at random, as in label mask training from the `"General Multi-label Image
    Classification with Transformers" <https://arxiv.org/abs/2011.14027>`_ paper.

    Each sample draws a probability uniformly from 0 to :obj:`max_fraction`. Each of its known
    labels is given with this probability.

    Args:
        y (Tensor): Targets: 0, 1, or NaN for unknown.
        max_fraction (float): The largest probability.
        generator (torch.Generator, optional): The source of random numbers.
            (default: :obj:`None`, PyTorch's own)
        present_only (bool, optional): If set to :obj:`True`, only labels that apply are given.
            (default: :obj:`False`)

    Shapes:
        - **input:** :math:`(B, L)`
        - **output:** :math:`(B, L)` twice: the given labels, and the targets that remain; all other
          entries are NaN
    """
    device = y.device if generator is None else generator.device
    fraction = max_fraction * torch.rand(len(y), 1, generator=generator, device=device)
    is_given = (torch.rand(y.shape, generator=generator, device=device) < fraction).to(y.device)
    is_given &= (y == 1) if present_only else ~y.isnan()
    return y.masked_fill(~is_given, torch.nan), y.masked_fill(is_given, torch.nan)


def has_given(samples: Any) -> bool:
    """Tells whether a data set or a list of samples has the attribute :obj:`given`."""
    if isinstance(samples, MultiLabelDataset):
        return len(samples) > 0 and "given" in samples[0]
    if not isinstance(samples, (list, tuple)):
        return False
    are_samples = all(isinstance(sample, BaseData) for sample in samples)
    return are_samples and any("given" in sample for sample in samples)


def split_given(samples: Any) -> tuple[Any, Tensor]:
    """Returns samples without their attribute :obj:`given`, and its values :math:`(N, L)`.

    Raises:
        ValueError: If only some samples of a list have known labels.
    """
    if isinstance(samples, MultiLabelDataset):
        return without_attribute(samples, "given"), samples.rows("given")
    if missing := [row for row, sample in enumerate(samples) if "given" not in sample]:
        expected = "'given' of every sample, or of none"
        raise ValueError(f"Expected {expected} (got none in row {missing[0]})")
    copies = [copy(sample) for sample in samples]
    for sample in copies:
        del sample.given
    return copies, torch.cat([sample.given.view(1, -1) for sample in samples])
