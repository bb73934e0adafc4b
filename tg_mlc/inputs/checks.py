"""Checks of training samples: warnings of what makes a score too good, or impossible."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from tg_mlc._names import few
from tg_mlc._options import argument
from tg_mlc._warnings import warn
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.bags import inputs_of
from tg_mlc.inputs.schema import by_spelling

#: Rows with a label, and rows without it; an input may separate fewer rows by chance.
MIN_CLASS = 10
PERFECT = 0.999  #: the area under the ROC curve from which a single input tells a label
ALWAYS_LOST = 5  #: rows of a file that may be skipped, however small it is
#: Cells of the inputs, times labels with unknown rows, up to which inputs are checked one by one.
MAX_CELLS = 5 * 10**6


def check_samples(dataset: MultiLabelDataset) -> None:
    """Warns of labels that cannot be learned or are written in two ways, and of inputs that give a
    label away.
    """
    y, names = dataset.y.numpy(), dataset.label_names
    known = ~np.isnan(y)
    positive = np.where(known, y, 0).sum(axis=0)
    counts = zip(names, positive, known.sum(axis=0), strict=True)
    constant = [f"'{name}'" for name, ones, total in counts if ones in (0, total)]
    if constant and len(y) > 1:
        rows = "Labels with one value in all rows, which nothing can be learned of"
        warn(f"{rows}: {few(constant)}")
    if len(y) >= MIN_CLASS and known[:-1].any(axis=1).all() and not known[-1].any():
        cure = "If it sums up the others, delete it"
        warn(f"The last row has no label, and all others have some. {cure}")
    if alike := [group for group in by_spelling(names).values() if len(group) > 1]:
        differ = "Labels whose names differ in case or spaces alone, taken as different"
        warn(f"{differ}: {alike[:5]}")
    x = inputs_of(dataset) if dataset.kind in ("vector", "bag") else None
    size = 0 if x is None else x.nnz if sp.issparse(x) else x.size
    if x is not None and size * max(1, int((~known).any(axis=0).sum())) <= MAX_CELLS:
        columns = dataset.feature_names or [f"column {i}" for i in range(x.shape[1])]
        _warn_of_leaks(x, y, columns, names)


def check_lost(
    refused: Mapping[int, str], num_rows: int, where: Callable[[int], str], max_lost: float
) -> None:
    """Warns of rows that cannot be read, with the reasons of the first. Raises if they are more
    than the fraction :obj:`max_lost` of all rows, and than :obj:`ALWAYS_LOST`.
    """
    if not refused:
        return
    first = "; ".join(f"{where(row)}: {reason}" for row, reason in islice(refused.items(), 3))
    lost = f"{len(refused)} of {num_rows} rows cannot be read and are left out, the first of them"
    lost = f"{lost} {first}"
    if len(refused) > max(max_lost * num_rows, ALWAYS_LOST):
        expected = f"at most {max_lost:.0%} of the rows to be left out"
        # Two digits would not always allow as many rows.
        enough = -(-1000 * len(refused) // num_rows) / 1000
        hint = f"mend them, or pass {argument('max_lost', enough)}"
        raise ValueError(f"Expected {expected} (got more: {lost}); {hint}")
    warn(lost)


def _warn_of_leaks(x: Any, y: np.ndarray, inputs: Sequence[str], names: Sequence[str]) -> None:
    """Warns of inputs whose order, or words whose presence, alone separates the rows with a label
    from those without.
    """
    from scipy.stats import rankdata  # The import takes a third of a second.

    known, is_bag = ~np.isnan(y), sp.issparse(x)
    if is_bag:
        present = sp.csr_array((x != 0).astype(np.float32).T)
        with_label = sp.csc_array(present @ sp.csc_array((y == 1).astype(np.float32)))
        total = present.sum(axis=1)
    else:
        means = np.nanmean(x, axis=0, keepdims=True, where=~np.isnan(x))
        finite = np.nan_to_num(np.where(np.isnan(x), means, x))
        ranks = np.asarray(rankdata(finite, axis=0))
    for label, name in enumerate(names):
        rows = known[:, label]
        is_one = y[rows, label] == 1
        ones, zeros = int(is_one.sum()), int((~is_one).sum())
        if min(ones, zeros) < MIN_CLASS:
            continue
        if is_bag:
            counts, entries = np.zeros(x.shape[1]), slice(*with_label.indptr[label : label + 2])
            counts[with_label.indices[entries]] = with_label.data[entries]
            others = (total if rows.all() else present @ rows.astype(np.float32)) - counts
            area = (1 + counts / ones - others / zeros) / 2
        else:
            within = ranks if rows.all() else np.asarray(rankdata(finite[rows], axis=0))
            area = (within[is_one].sum(axis=0) - ones * (ones + 1) / 2) / (ones * zeros)
        perfect = np.flatnonzero(np.maximum(area, 1 - area) >= PERFECT)
        if perfect.size:
            told = f"Input '{inputs[perfect[0]]}' alone tells label '{name}' almost perfectly"
            warn(f"{told}. If it is made of the label, or known only after it, leave it out")
