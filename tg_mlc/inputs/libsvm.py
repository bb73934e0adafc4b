"""Data sets from files in the multi-label form of LibSVM, which the Extreme Classification repository also has."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

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
from tg_mlc.inputs.tables import LIBSVM_LINE, LIBSVM_SIZES

_MAX_INDEX = 2**24  # of an input, each of which has a name


def from_libsvm(
    path: str | Path,
    test: str | Path | None = None,
    kind: Literal["bag", "vector"] = "bag",
    *,
    zero_based: bool | None = None,
    transform: Callable[[Data], Data] | None = None,
) -> ArrayDataset:
    """Makes a data set in memory from files with a line ``label,label index:value index:value`` for each sample.

    .. code-block:: python

        dataset = from_libsvm("eurlex_train.txt", "eurlex_test.txt")

    Labels and inputs are named by their numbers. A first line of three numbers, of samples, inputs and labels, as in
    the Extreme Classification repository, tells how many there are; else those that occur are the labels.

    Args:
        path (str or Path): All samples, or the training samples; may be compressed (.gz, .bz2, .xz).
        test (str or Path, optional): The test samples, which become those of the official split.
            (default: :obj:`None`)
        kind (str, optional): The kind of the inputs: :obj:`"bag"` (words with weights) or :obj:`"vector"`.
            (default: :obj:`"bag"`)
        zero_based (bool, optional): Whether numbers begin at 0, and not at 1. (default: :obj:`None`, at 0 if the first
            line tells sizes, or an input has the number 0)
        transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If a line has another form, a number is out of range, or there are more or fewer samples than the
            first line says; the message names the line.
        ImportError: If scikit-learn is not installed (extra ``data``).
    """
    check_choice("kind", kind, ("bag", "vector"))
    load = require("sklearn.datasets", extra="data").load_svmlight_file
    parts, sizes = list[tuple[Any, Any]](), list[tuple[int, int] | None]()
    for each in [path] if test is None else [path, test]:
        lines = read_unpacked(each).decode(errors="replace").splitlines()
        declared = LIBSVM_SIZES.fullmatch(lines[0]) if lines else None
        while lines and not declared and not lines[-1].strip():
            lines.pop()
        _check_lines(lines, declared, f"'{each}'", zero_based)
        # A sample without labels and inputs is a blank line, which scikit-learn leaves out.
        empty = " 1:0" if zero_based is False else " 0:0"
        text = "\n".join(line if line.strip() else empty for line in lines[1 if declared else 0 :])
        try:
            parts.append(load(io.BytesIO(text.encode()), multilabel=True, zero_based=True))
        except ValueError as error:
            raise ValueError(f"Expected '{each}' to be in the form of LibSVM (got {error})") from None
        sizes.append((int(declared[2]), int(declared[3])) if declared else None)
        if declared and parts[-1][0].shape[0] != int(declared[1]):
            expected = f"{declared[1]} samples in '{each}', as its first line says"
            raise ValueError(f"Expected {expected} (got {parts[-1][0].shape[0]}; is the file cut off?)")
    if len(set(sizes)) > 1:
        raise ValueError(f"Expected both files to tell the same sizes in their first line (got {sizes})")
    width = max(x.shape[1] for x, _ in parts)
    x = sp.vstack([sp.csr_array((x.data, x.indices, x.indptr), shape=(x.shape[0], width)) for x, _ in parts], "csr")
    labels = [[int(label) for label in row] for _, rows in parts for row in rows]
    if zero_based is None:
        zero_based = sizes[0] is not None or bool((x.indices == 0).any())
    first = 0 if zero_based else 1
    num_inputs, num_labels = sizes[0] or (width - first, None)
    if num_labels is None:
        names = sorted({label for row in labels for label in row})
    else:
        names = list(range(first, num_labels + first))
    x = sp.csr_array((x.data, x.indices - first, x.indptr), shape=(x.shape[0], num_inputs))
    column = {name: i for i, name in enumerate(names)}
    ptr = np.append(0, np.cumsum(list(map(len, labels))))
    indices = np.array([column[label] for row in labels for label in row], dtype=np.int64)
    y = sp.csr_array((np.ones(len(indices), dtype=np.float32), indices, ptr), shape=(len(labels), len(names)))
    label_names, feature_names = list(map(str, names)), list(map(str, range(first, num_inputs + first)))
    inputs, _ = read_matrix(x, feature_names, None, sparse=kind == "bag")
    values, _ = read_labels(y, label_names)
    each_row, num_train = np.arange(len(labels)), parts[0][0].shape[0]
    official = (None, None) if test is None else (each_row[:num_train], each_row[num_train:])
    dataset = ArrayDataset(Records(inputs, values, label_names, feature_names, *official).to_samples(), transform)
    check_samples(dataset)
    return dataset


def _check_lines(lines: list[str], declared: re.Match[str] | None, path: str, zero_based: bool | None) -> None:
    """Refuses the first line that has another form, or a number out of range."""
    first = 0 if zero_based or (zero_based is None and declared) else 1
    most_input, most_label = (int(declared[i]) + first - 1 for i in (2, 3)) if declared else (_MAX_INDEX, 10**9)
    least = first if declared or zero_based is not None else 0
    for number, line in enumerate(lines, start=1):
        where = f"line {number} of {path}"
        if number == 1 and declared:
            continue
        match = LIBSVM_LINE.fullmatch(line.rstrip())
        if match is None or not (line.strip() or declared):
            expected = "labels and inputs as in 'label,label index:value index:value'"
            hint = "a sample without both is written as '0:0'" if match else "is it in the form of LibSVM?"
            if re.match(r"[-+]1\s", line):
                hint = "write the number of the label in place of +1, and nothing in place of -1"
            elif " qid:" in line:
                hint = "take out 'qid:', which groups the samples of a ranking"
            raise ValueError(f"Expected {expected} in {where} (got {line[:60]!r}); {hint}")
        indices = [int(pair.partition(":")[0]) for pair in match[2].split()]
        labels = [int(float(label)) for label in match[1].split(",")] if match[1] else []
        if any(after <= before for before, after in pairwise(indices)):
            raise ValueError(f"Expected increasing numbers of inputs in {where} (got {indices[:8]})")
        fewest = first if declared else 0
        for what, found, most, lowest in (
            ("inputs", indices, most_input, least),
            ("labels", labels, most_label, fewest),
        ):
            if found and not lowest <= min(found) <= max(found) <= most:
                hint = "; pass 'zero_based' if numbers begin elsewhere"
                wrong = max(found) if max(found) > most else min(found)
                raise ValueError(f"Expected {what} from {lowest} to {most} in {where} (got {wrong}){hint}")
