"""Training by the command line."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

from typing_extensions import Self

from tg_mlc._files import file_sha256, sha256
from tg_mlc._options import check_choice, check_number
from tg_mlc.cli._inputs import check_label_names, make_inputs
from tg_mlc.cli._options import TrainOptions
from tg_mlc.cli._output import show
from tg_mlc.data import MultiLabelDataset, Split, random_split, scaffold_split, stratified_split
from tg_mlc.saving import Predictor
from tg_mlc.saving.folder import CONTENT
from tg_mlc.stacking import AutoModel
from tg_mlc.stacking.tuned_scores import TITLES

MIN_ROWS = 10  #: of a file, so that one tests
SHARES = (0.9, 0.0, 0.1)  #: of rows for training, none for validation, for testing


class Run:
    """A training, which keeps in the folder ``training`` of its model what takes long, until all is done.

    Args:
        options (TrainOptions): Those of the command.

    Raises:
        ValueError: If options disagree, or a model is there.
    """

    def __init__(self, options: TrainOptions) -> None:
        self.options, self.inputs, self.out = options, make_inputs(options), Path(options.out)
        self.folder = self.out / "training"
        check_number("--seconds", options.seconds)
        check_choice("--split", options.split, self.inputs.input_kind.splits)

    def __enter__(self) -> Self:
        if (self.out / CONTENT).exists() and not self.options.force:
            raise ValueError(
                f"Expected no model in '{self.out}' (got one); choose another --out, or replace it: --force"
            )
        if self.options.force:
            shutil.rmtree(self.folder, ignore_errors=True)
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def key(self) -> str:
        """Differs between files, and between options that change what is trained."""
        told = {name: value for name, value in asdict(self.options).items() if name not in ("out", "force", "json")}
        return sha256(json.dumps({**told, "csv": file_sha256(Path(self.options.csv))}).encode())[:12]

    @cached_property
    def dataset(self) -> MultiLabelDataset:
        """All samples of the file."""
        dataset = self.inputs.dataset(Path(self.options.csv), self.folder)
        check_label_names(dataset.label_names, self.inputs.separator)
        if len(dataset) < MIN_ROWS:
            expected = f"at least {MIN_ROWS} rows to train and to test with"
            raise ValueError(f"Expected {expected} in '{self.options.csv}' (got {len(dataset)} that can be read)")
        return dataset

    @cached_property
    def split(self) -> Split:
        """Nine tenths for training, one for testing."""
        y, names, seed = self.dataset.y, self.dataset.label_names, self.options.seed
        if self.options.split == "scaffold":
            return scaffold_split([sample.smiles for sample in self.dataset], y, SHARES, seed=seed, label_names=names)
        if self.options.split == "stratified":
            return stratified_split(y, SHARES, seed, label_names=names)
        return random_split(len(y), SHARES, seed)

    @property
    def train(self) -> MultiLabelDataset:
        """The samples to train with."""
        train: MultiLabelDataset = self.dataset[self.split.train]
        return train

    def finish(self, model: AutoModel, **facts: Any) -> None:
        """Evaluates a model on the test samples, saves it with all that is known of it, and prints what is found."""
        report = model.evaluate(self.dataset[self.split.test])
        several = self.inputs.input_kind.reads_columns
        columns = (self.dataset.feature_names or []) if several else self.inputs.columns
        results = {
            "test": report.to_dict()["values"],
            "validation": model.report["validation"],
            "weights": _weights(model),
            "without_lamp": model.report["without_lamp"],
            **facts,
        }
        inputs = self.inputs._replace(columns=columns)._asdict()
        Predictor(model, {"inputs": inputs, "split": self.split.hash, "split_name": self.split.name, **results}).save(
            self.out
        )
        lines = [str(report), *(f"{name}: {_in_words(value)}" for name, value in facts.items()), _parts(model)]
        lines.append(f"The model is in '{self.out}'.")
        show({"model": str(self.out), **results}, "\n".join(lines), self.options.json)


def _in_words(fact: Any) -> str:
    return ", ".join(f"{name} {value}" for name, value in fact.items()) if isinstance(fact, dict) else str(fact)


def _weights(model: AutoModel) -> dict[str, float]:
    """How much each part of a model counts, by its title."""
    titles = [*(TITLES[kind] for kind in model.report["classifiers"]), "LaMP"]
    return dict(zip(titles, model.report["weights"], strict=False))


def _parts(model: AutoModel) -> str:
    """What a model is made of, and why LaMP is left out if it is."""
    parts = ", ".join(f"{title} {weight:.2f}" for title, weight in _weights(model).items())
    reason = model.report["without_lamp"]
    return f"Weights of its parts: {parts}{f'; LaMP is left out, as {reason}' if reason else ''}."
