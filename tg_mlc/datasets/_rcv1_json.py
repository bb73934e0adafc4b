"""RCV1 as lines of JSON, the form of NeuralNLP-NeuralClassifier."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tg_mlc._files import read_lines
from tg_mlc.data.records import Records
from tg_mlc.datasets._texts import TextOptions, label_matrix

TRAINING_PARTS = ("train", "dev")
PARTS = (*TRAINING_PARTS, "test")


class JSONDocument(NamedTuple):
    """The labels and the words of one line."""

    labels: list[str]
    tokens: list[str]


def read_json_documents(path: Path, topics: Sequence[str]) -> Iterator[JSONDocument]:
    """Yields the documents of a file, one line at a time."""
    known = {topic: topic for topic in topics}  # one string for all documents
    for number, line in read_lines(path):
        where = f"line {number} of '{path}'"
        record = _parse(line, where)
        labels, tokens = (_strings(record, key, where) for key in ("doc_label", "doc_token"))
        unknown = [label for label in labels if label not in known]
        if unknown:
            raise ValueError(f"Expected {where} to have topics of RCV1 (got {unknown[:3]})")
        yield JSONDocument([known[label] for label in labels], tokens)


def read_json(paths: Mapping[str, Path], topics: Sequence[str], options: TextOptions) -> Records:
    """Makes a table of the files of the parts that are there.

    With both ``train`` and ``test``, these are the official split (``dev`` belongs to training) and the vocabulary is
    that of the training documents. Otherwise there is no official split, and all documents give the vocabulary.
    """
    paths = {part: paths[part] for part in PARTS if part in paths}
    is_split = {"train", "test"} <= paths.keys()
    counted = [path for part, path in paths.items() if part in TRAINING_PARTS or not is_split]
    labels: list[list[str]] = []
    num_train = 0

    def collect() -> Iterator[list[str]]:
        nonlocal num_train
        for part, path in paths.items():
            for document in read_json_documents(path, topics):
                labels.append(document.labels)
                num_train += part in TRAINING_PARTS
                yield document.tokens

    words = (document.tokens for path in counted for document in read_json_documents(path, topics))
    tokens, names = options.encode(words, collect())
    if not labels:
        raise ValueError(f"Expected documents in {', '.join(map(str, paths.values()))} (got none)")
    train, test = (np.arange(num_train), np.arange(num_train, len(labels))) if is_split else (None, None)
    return Records(tokens, label_matrix(labels, topics), list(topics), names, train, test)


def _parse(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Expected {where} to be JSON (got {line[:40]!r}: {error}); is the file truncated?") from error
    if not isinstance(record, dict):
        raise ValueError(f"Expected {where} to be a JSON object (got {line[:40]!r})")
    return record


def _strings(record: dict[str, Any], key: str, where: str) -> list[str]:
    values = record.get(key)
    if not isinstance(values, list) or not all(isinstance(value, str) and "\n" not in value for value in values):
        raise ValueError(f"Expected '{key}' in {where} to be a list of words (got {str(values)[:40]})")
    return values
