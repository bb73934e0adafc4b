"""Data sets from files in the multi-label format of LibSVM and the XMC repository."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from torch_geometric.data import Data

from tg_mlc._files import read_unpacked
from tg_mlc._optional import require
from tg_mlc._options import check_choice
from tg_mlc.data import ArrayDataset
from tg_mlc.data._label_values import read_labels
from tg_mlc.data.records import Records
from tg_mlc.inputs._features import read_matrix
from tg_mlc.inputs.checks import check_samples
from tg_mlc.inputs.schema import Schema
from tg_mlc.inputs.text_files import LIBSVM_LINE, LIBSVM_SIZES

_HINTS = {
    r"^[-+]1\s": "write the number of the label in place of +1, and nothing in place of -1",
    " qid:": "take out 'qid:', which groups the samples of a ranking",
    r"^\s*$": "a sample without both is written as '0:0'",
    "": "is it in the format of LibSVM?",
}
MAX_COLUMNS = 10_000  #: Maximum number of columns for which a schema is made.
_MAX_INDEX = 2**24  # Limit of indices, because each input has a name.


def from_libsvm(
    path: str | Path,
    test: str | Path | None = None,
    kind: Literal["bag", "vector"] = "bag",
    *,
    zero_based: bool | None = None,
    transform: Callable[[Data], Data] | None = None,
) -> ArrayDataset:
    """Makes a data set in memory from files with a line ``label,label index:value index:value`` for
    each sample.

    Labels and inputs are named by their numbers. The first line may have the numbers of samples,
    inputs and labels, as in the Extreme Classification Repository. Otherwise, the labels that occur
    are all labels.

    Args:
        path (str or Path): All samples, or the training samples; may be compressed (.gz, .bz2,
            .xz).
        test (str or Path, optional): The test samples of the official split.
        kind (str, optional): The kind of inputs: :obj:`"bag"` (weighted words) or :obj:`"vector"`.
            (default: :obj:`"bag"`)
        zero_based (bool, optional): Whether numbers begin at 0 instead of 1. (default: at 0 if the
            first line has sizes, or an input has the number 0)
        transform (callable, optional): Applied to a sample at every access.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If a line has another format, a number is out of range, or there are more or
            fewer samples than the first line says; the message names the line.
    """
    check_choice("kind", kind, ("bag", "vector"))
    parts = [_read(file, zero_based) for file in ([path] if test is None else [path, test])]
    sizes = [part.sizes for part in parts]
    labels = [row for part in parts for row in part.labels]
    if not labels:
        raise ValueError(f"Expected at least one sample and one label in '{path}' (got none)")
    if len(set(sizes)) > 1:
        expected = "both files to have the same sizes in their first line"
        raise ValueError(f"Expected {expected} (got {sizes})")
    if zero_based is None:
        zero_based = sizes[0] is not None or any((part.x.indices == 0).any() for part in parts)
    first = 0 if zero_based else 1
    if sizes[0] is None:
        end, label_set = max(part.x.shape[1] for part in parts), set(chain.from_iterable(labels))
    else:
        end, label_set = sizes[0][0] + first, set(range(first, sizes[0][1] + first))
    names, feature_names = list(map(str, sorted(label_set))), list(map(str, range(first, end)))
    for part in parts:
        part.x.resize(part.x.shape[0], max(end, first))
    x = sp.csr_array(sp.vstack([part.x for part in parts], format="csr"))[:, first:]
    inputs, _ = read_matrix(x, feature_names, None, sparse=kind == "bag")
    y, _ = read_labels([set(map(str, row)) for row in labels], names)
    rows = np.arange(len(labels))
    split_rows = (None, None) if test is None else np.split(rows, [len(parts[0].labels)])
    records = Records(inputs, y, names, feature_names, *split_rows)
    dataset = ArrayDataset(records.to_samples(), transform)
    is_small = len(feature_names) <= MAX_COLUMNS
    dataset.schema = Schema.of_names(feature_names, ()) if is_small else None
    check_samples(dataset)
    return dataset


class _Part(NamedTuple):
    """The samples of a file."""

    sizes: tuple[int, int] | None  #: The numbers of inputs and labels in the first line.
    labels: list[list[int]]
    x: Any  #: inputs, a CSR array with input numbers as columns


def _read(path: str | Path, zero_based: bool | None) -> _Part:
    """Reads a file with scikit-learn, after checks of all that scikit-learn misreads: sizes, blank
    lines, ``qid:``, labels that are not indices, and numbers out of range.
    """
    lines = read_unpacked(path).decode(errors="replace").splitlines()
    size_match = LIBSVM_SIZES.fullmatch(lines[0]) if lines else None
    while lines and not size_match and not lines[-1].strip():
        lines.pop()
    first = 0 if zero_based or (zero_based is None and size_match) else 1
    max_input, max_label = _MAX_INDEX, 10**9
    if size_match:
        max_input, max_label = (int(size_match[i]) + first - 1 for i in (2, 3))
    min_input = first if size_match or zero_based is not None else 0
    limits = {"inputs": (min_input, max_input), "labels": (first if size_match else 0, max_label)}
    rows, first_line = (lines[1:], 2) if size_match else (lines, 1)
    for number, line in enumerate(rows, first_line):
        match = LIBSVM_LINE.fullmatch(line.rstrip())
        where = f"line {number} of '{path}'"
        if match is None or not (line.strip() or size_match):
            hint = next(hint for pattern, hint in _HINTS.items() if re.search(pattern, line))
            expected = f"'label,label index:value index:value' in {where}"
            raise ValueError(f"Expected {expected} (got {line[:60]!r}); {hint}")
        indices = [int(pair.partition(":")[0]) for pair in match[2].split()]
        if any(after <= before for before, after in pairwise(indices)):
            expected = f"increasing numbers of inputs in {where}"
            raise ValueError(f"Expected {expected} (got {indices[:8]})")
        labels = [int(float(label)) for label in (match[1] or "").split(",") if label]
        for noun, values in (("inputs", indices), ("labels", labels)):
            lowest, highest = limits[noun]
            invalid = next((value for value in values if not lowest <= value <= highest), None)
            if invalid is not None:
                is_near = invalid in (lowest - 1, highest + 1)
                near_hint = "pass 'zero_based' if numbers begin elsewhere"
                hint = near_hint if is_near else "renumber them"
                expected = f"{noun} from {lowest} to {highest}"
                raise ValueError(f"Expected {expected} (got {invalid} in {where}); {hint}")
    if size_match and len(rows) != int(size_match[1]):
        expected = f"{size_match[1]} samples in '{path}', as its first line says"
        raise ValueError(f"Expected {expected} (got {len(rows)}; is the file cut off?)")
    sizes = (int(size_match[2]), int(size_match[3])) if size_match else None
    if not rows:
        return _Part(sizes, [], sp.csr_array((0, 0)))
    # Blank lines, which scikit-learn skips, are samples after a line of sizes.
    content = "\n".join(line if line.strip() else f"{first}:0" for line in rows).encode()
    load = require("sklearn.datasets", extra="data").load_svmlight_file
    x, y = load(BytesIO(content), multilabel=True, zero_based=True)
    return _Part(sizes, [list(map(int, row)) for row in y], sp.csr_array(x))
