"""Checks of training samples that warn of leaked labels and of labels that cannot be learned."""

from __future__ import annotations

import re
import unicodedata
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
from tg_mlc.inputs.notations import looks_like
from tg_mlc.inputs.schema import by_spelling

#: Minimum number of rows with a label, and without it; fewer may be separable by chance.
MIN_CLASS = 10
PERFECT = 0.999  #: minimum ROC-AUC at which a single input counts as a leak of a label
ALWAYS_LOST = 5  #: number of rows that may always be skipped, even in small files
_DATE = re.compile(
    r"[0-9]{1,2}-[A-Z][a-z]{2}(?:-[0-9]{2,4})?|[A-Z][a-z]{2}-[0-9]{2}"
    r"|[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{2,4}(?: [0-9:]+)?"
)
_DECIMAL = re.compile(r"[0-9]+[.,][0-9]+")
_CODE = re.compile(r"[0-9]+(?:[-/.,][0-9]+)+")
_JOINERS = frozenset("\u200c\u200d")  # Letters of many scripts, and emoji, are joined by them.
#: Maximum of input cells times labels with unknown rows; larger data are not checked for leaks.
MAX_CELLS = 5 * 10**6


def check_samples(dataset: MultiLabelDataset) -> None:
    """Warns of labels that cannot be learned or have two spellings, and of inputs that leak a
    label.
    """
    y, names = dataset.y.numpy(), dataset.label_names
    known = ~np.isnan(y)
    positive = np.where(known, y, 0).sum(axis=0)
    counts = zip(names, positive, known.sum(axis=0), strict=True)
    constant = [f"'{name}'" for name, ones, num_known in counts if ones in (0, num_known)]
    if constant and len(y) > 1:
        message = "Labels with the same value in all rows, which cannot be learned"
        warn(f"{message}: {few(constant)}")
    if len(y) >= MIN_CLASS and known[:-1].any(axis=1).all() and not known[-1].any():
        hint = "If it sums up the others, delete it"
        warn(f"The last row has no label, and all others have some. {hint}")
    if similar := [group for group in by_spelling(names).values() if len(group) > 1]:
        warning = "Labels that differ only in case or spaces are treated as different"
        warn(f"{warning}: {similar[:5]}")
    warn_of_names(names, dataset.feature_names or () if dataset.kind == "vector" else ())
    x = inputs_of(dataset) if dataset.kind in ("vector", "bag") else None
    num_cells = 0 if x is None else x.nnz if sp.issparse(x) else x.size
    if x is not None and num_cells * max(1, int((~known).any(axis=0).sum())) <= MAX_CELLS:
        columns = dataset.feature_names or [f"column {i}" for i in range(x.shape[1])]
        _warn_of_leaks(x, y, columns, names)


def warn_of_names(labels: Sequence[str], columns: Sequence[str] = ()) -> None:
    """Warns of names with invisible characters, and of labels that a spreadsheet has changed."""
    names = [*labels, *columns]
    if hidden := [ascii(name) for name in names if _has_hidden(name)]:
        warn(f"Names with invisible characters differ from those without them: {few(hidden)}")
    dates = [name for name in labels if _is_date(name)]
    decimals = [name for name in labels if _DECIMAL.fullmatch(name)]
    # Codes such as 250.01 of ICD-9 or 01/01/03 of FunCat look so, too, but then most labels do.
    codes = {name for name in labels if _CODE.fullmatch(name)}
    codes = codes if 2 * len(codes) > len(labels) else set()
    changed = [group for group in (dates, decimals) if 2 * len(group) <= len(labels)]
    if shown := [f"'{name}'" for group in changed for name in group if name not in codes]:
        note = "Labels look like dates or decimals, into which a spreadsheet may have changed them"
        warn(f"{note}, such as '1,3' to 1.3: {few(shown)}. If so, mend the file")


def _is_date(name: str) -> bool:
    if _DATE.fullmatch(name) is None:  # This is much faster than reading all notations of dates.
        return False
    has_no_year = name[:1].isdigit() and name[-1:].isalpha()  # 2-Mar
    return looks_like(f"{name}-2000" if has_no_year else name) == "a date"


def _has_hidden(name: str) -> bool:
    others = {*name} - _JOINERS
    return any(unicodedata.category(character) == "Cf" for character in others)


def check_lost(
    refused: Mapping[int, str], num_rows: int, where: Callable[[int], str], max_lost: float
) -> None:
    """Warns of unreadable rows, with reasons for the first ones. Raises if their number exceeds
    both :obj:`ALWAYS_LOST` and the fraction :obj:`max_lost` of all rows.
    """
    if not refused:
        return
    first = "; ".join(f"{where(row)}: {reason}" for row, reason in islice(refused.items(), 3))
    lost = f"{len(refused)} of {num_rows} rows cannot be read and are left out, the first of them"
    lost = f"{lost} {first}"
    if len(refused) > max(max_lost * num_rows, ALWAYS_LOST):
        expected = f"at most {max_lost:.0%} of the rows to be left out"
        # The fraction is rounded up, so that it allows this number of rows.
        fraction = -(-1000 * len(refused) // num_rows) / 1000
        hint = f"mend them, or pass {argument('max_lost', fraction)}"
        raise ValueError(f"Expected {expected} (got more: {lost}); {hint}")
    warn(lost)


def _warn_of_leaks(x: Any, y: np.ndarray, inputs: Sequence[str], names: Sequence[str]) -> None:
    """Warns of inputs that separate rows with a label from rows without it: by the order of their
    values or, for words, by their presence.
    """
    from scipy.stats import rankdata  # The import takes a third of a second.

    known, is_bag = ~np.isnan(y), sp.issparse(x)
    if is_bag:
        present = sp.csr_array((x != 0).astype(np.float32).T)
        with_label = sp.csc_array(present @ sp.csc_array((y == 1).astype(np.float32)))
        totals = present.sum(axis=1)
    else:
        means = np.nanmean(x, axis=0, keepdims=True, where=~np.isnan(x))
        finite = np.nan_to_num(np.where(np.isnan(x), means, x))
        ranks = np.asarray(rankdata(finite, axis=0))
    for label, name in enumerate(names):
        mask = known[:, label]
        is_one = y[mask, label] == 1
        ones, zeros = int(is_one.sum()), int((~is_one).sum())
        if min(ones, zeros) < MIN_CLASS:
            continue
        if is_bag:
            counts, entries = np.zeros(x.shape[1]), slice(*with_label.indptr[label : label + 2])
            counts[with_label.indices[entries]] = with_label.data[entries]
            other_counts = (totals if mask.all() else present @ mask.astype(np.float32)) - counts
            auc = (1 + counts / ones - other_counts / zeros) / 2
        else:
            row_ranks = ranks if mask.all() else np.asarray(rankdata(finite[mask], axis=0))
            auc = (row_ranks[is_one].sum(axis=0) - ones * (ones + 1) / 2) / (ones * zeros)
        perfect = np.flatnonzero(np.maximum(auc, 1 - auc) >= PERFECT)
        if perfect.size:
            message = f"Input '{inputs[perfect[0]]}' alone predicts label '{name}' almost perfectly"
            warn(f"{message}. If it is made of the label, or known only after it, leave it out")
