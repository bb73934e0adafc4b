"""Data sets from files in the multi-label form of LibSVM, which the Extreme Classification repository also has."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain, pairwise
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from torch_geometric.data import Data

from tg_mlc._files import read_unpacked
from tg_mlc._options import check_choice
from tg_mlc.data import ArrayDataset
from tg_mlc.data._label_values import read_labels
from tg_mlc.data.records import Records
from tg_mlc.inputs._features import read_matrix
from tg_mlc.inputs.checks import check_samples
from tg_mlc.inputs.schema import Schema
from tg_mlc.inputs.tables import LIBSVM_LINE, LIBSVM_SIZES

_OTHERS = {
    r"^[-+]1\s": "write the number of the label in place of +1, and nothing in place of -1",
    " qid:": "take out 'qid:', which groups the samples of a ranking",
}
MAX_COLUMNS = 10_000  #: of a schema, where all columns are alike
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

    Labels and inputs are named by their numbers. A first line of three numbers, of samples, inputs and labels, as in
    the Extreme Classification repository, tells how many there are; else those that occur are the labels.

    Args:
        path (str or Path): All samples, or the training samples; may be compressed (.gz, .bz2, .xz).
        test (str or Path, optional): The test samples, those of the official split. (default: :obj:`None`)
        kind (str, optional): The kind of inputs: :obj:`"bag"` (weighted words) or :obj:`"vector"`.
            (default: :obj:`"bag"`)
        zero_based (bool, optional): Whether numbers begin at 0, and not at 1. (default: :obj:`None`, at 0 if the first
            line tells sizes, or an input has the number 0)
        transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If a line has another form, a number is out of range, or there are more or fewer samples than the
            first line says; the message names the line.
    """
    check_choice("kind", kind, ("bag", "vector"))
    parts = [_read(each, zero_based) for each in ([path] if test is None else [path, test])]
    sizes = [part.sizes for part in parts]
    if not any(part.labels for part in parts):
        raise ValueError(f"Expected at least one sample and one label in '{path}' (got none)")
    if len(set(sizes)) > 1:
        raise ValueError(
            f"Expected both files to tell the same sizes in their first line (got {sizes})"
        )
    each_input = np.concatenate([part.inputs for part in parts])
    if zero_based is None:
        zero_based = sizes[0] is not None or bool((each_input == 0).any())
    first = 0 if zero_based else 1
    labels = [each for part in parts for each in part.labels]
    num_inputs, num_labels = sizes[0] or (int(each_input.max(initial=first - 1)) + 1 - first, None)
    known = (
        {label for row in labels for label in row}
        if num_labels is None
        else range(first, num_labels + first)
    )
    names, feature_names = (
        list(map(str, sorted(known))),
        list(map(str, range(first, num_inputs + first))),
    )
    ptr = np.append(0, np.cumsum(np.concatenate([part.counts for part in parts])))
    weights = np.concatenate([part.values for part in parts])
    x = sp.csr_array((weights, each_input - first, ptr), shape=(len(labels), num_inputs))
    inputs, _ = read_matrix(x, feature_names, None, sparse=kind == "bag")
    values, _ = read_labels([{str(label) for label in row} for row in labels], names)
    official = (
        (None, None) if test is None else np.split(np.arange(len(labels)), [len(parts[0].labels)])
    )
    dataset = ArrayDataset(
        Records(inputs, values, names, feature_names, *official).to_samples(), transform
    )
    dataset.schema = Schema.of_names(feature_names, ()) if num_inputs <= MAX_COLUMNS else None
    check_samples(dataset)
    return dataset


class _Part(NamedTuple):
    """The samples of a file."""

    sizes: tuple[int, int] | None  #: the numbers of inputs and labels that the first line tells
    labels: list[list[int]]
    counts: np.ndarray  #: how many inputs each sample has
    inputs: np.ndarray  #: the numbers of all of them
    values: np.ndarray


def _read(path: str | Path, zero_based: bool | None) -> _Part:
    """Reads a file, and refuses the first line that has another form, or a number out of range."""
    lines = read_unpacked(path).decode(errors="replace").splitlines()
    declared = LIBSVM_SIZES.fullmatch(lines[0]) if lines else None
    while lines and not declared and not lines[-1].strip():
        lines.pop()
    first = 0 if zero_based or (zero_based is None and declared) else 1
    most_input, most_label = (
        (int(declared[i]) + first - 1 for i in (2, 3)) if declared else (_MAX_INDEX, 10**9)
    )
    least = first if declared or zero_based is not None else 0
    labels, inputs, values = list[list[int]](), list[list[int]](), list[str]()
    for number, line in enumerate(lines, start=1):
        if number == 1 and declared:
            continue
        where = f"line {number} of '{path}'"
        match = LIBSVM_LINE.fullmatch(line.rstrip())
        if match is None or not (line.strip() or declared):
            hint = (
                "is it in the form of LibSVM?"
                if match is None
                else "a sample without both is written as '0:0'"
            )
            hint = next((told for form, told in _OTHERS.items() if re.search(form, line)), hint)
            expected = "labels and inputs as in 'label,label index:value index:value'"
            raise ValueError(f"Expected {expected} in {where} (got {line[:60]!r}); {hint}")
        pairs = [pair.partition(":") for pair in match[2].split()]
        labels.append([int(float(label)) for label in match[1].split(",")] if match[1] else [])
        inputs.append([int(index) for index, _, _ in pairs])
        values += [value for _, _, value in pairs]
        if any(after <= before for before, after in pairwise(inputs[-1])):
            raise ValueError(
                f"Expected increasing numbers of inputs in {where} (got {inputs[-1][:8]})"
            )
        label_limits = labels[-1], first if declared else 0, most_label
        for what, found, lowest, most in (
            ("inputs", inputs[-1], least, most_input),
            ("labels", *label_limits),
        ):
            if found and not lowest <= min(found) <= max(found) <= most:
                wrong = max(found) if max(found) > most else min(found)
                hint = "pass 'zero_based' if numbers begin elsewhere"
                raise ValueError(
                    f"Expected {what} from {lowest} to {most} in {where} (got {wrong}); {hint}"
                )
    if declared and len(labels) != int(declared[1]):
        expected = f"{declared[1]} samples in '{path}', as its first line says"
        raise ValueError(f"Expected {expected} (got {len(labels)}; is the file cut off?)")
    return _Part(
        (int(declared[2]), int(declared[3])) if declared else None,
        labels,
        np.array(list(map(len, inputs)), dtype=np.int64),
        np.fromiter(chain.from_iterable(inputs), np.int64),
        np.array(values, dtype=np.float64),
    )
