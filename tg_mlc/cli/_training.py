"""Training from the command line."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import Event, Thread
from typing import Any

from tqdm import tqdm

from tg_mlc._options import check_choice, check_number
from tg_mlc.cli._inputs import Inputs, check_label_names, file_options, make_inputs
from tg_mlc.cli._options import InputColumns, TableOptions, TrainOptions
from tg_mlc.cli._output import results_by_label, show
from tg_mlc.data import MultiLabelDataset, Split, random_split, scaffold_split, stratified_split
from tg_mlc.inference import Model
from tg_mlc.inference.folder import CONTENT, check_folder
from tg_mlc.inference.networks import Combination
from tg_mlc.inputs.kinds import warn_of_claimed
from tg_mlc.inputs.tables import read_table

MIN_ROWS = 10  #: minimum number of rows of a file, so that one is for testing
SHARES = (0.9, 0.0, 0.1)  #: fractions of rows for training, validation and testing


class Run:
    """A training on a file, including the evaluation and the folder of the model.

    Args:
        options (TrainOptions): The options of training.
        columns (InputColumns): The columns of inputs.
        table (TableOptions): The file, its labels, and how it is read.
        force (bool, optional): If set to :obj:`True`, replaces a model. (default: :obj:`False`)
        json (bool, optional): If set to :obj:`True`, prints JSON. (default: :obj:`False`)
    """

    def __init__(
        self,
        options: TrainOptions,
        columns: InputColumns,
        table: TableOptions,
        *,
        force: bool = False,
        json: bool = False,
    ) -> None:
        self.options, self.path = options, table.path
        self.inputs, self.table = make_inputs(columns, table)
        self.out, self.force, self.json = check_folder(options.out), force, json
        check_number("--seconds", options.seconds)
        check_choice("--split", options.split, self.inputs.splits)

    def _refuse_model(self, hint: str) -> None:
        if (self.out / CONTENT).exists() and not self.force:
            raise ValueError(f"Expected no model in '{self.out}' (got one); {hint}")

    @cached_property
    def dataset(self) -> MultiLabelDataset:
        """All samples of the file."""
        return read_dataset(self.inputs, self.table)

    @cached_property
    def split(self) -> Split:
        """The split into nine tenths for training and one tenth for testing."""
        y, names, seed = self.dataset.y, self.dataset.label_names, self.options.seed
        if self.options.split == "scaffold":
            smiles = self.inputs.input_kind.smiles_of(self.dataset)
            return scaffold_split(smiles, y, SHARES, seed=seed, label_names=names)
        if self.options.split == "stratified":
            return stratified_split(y, SHARES, seed, label_names=names)
        return random_split(len(y), SHARES, seed)

    @property
    def train(self) -> MultiLabelDataset:
        """The training samples. Raises ValueError if --out has a model that may not be replaced."""
        self._refuse_model("choose another --out, or replace it: --force")
        train: MultiLabelDataset = self.dataset[self.split.train]
        # Make the folder now, so that an error comes before the training, not after it.
        self.out.mkdir(parents=True, exist_ok=True)
        return train

    def finish(self, model: Model, **facts: Any) -> None:
        """Evaluates a model on test samples, saves it with further facts, and prints results."""
        evaluation = model.evaluate(self.dataset[self.split.test])
        inputs = self.inputs
        if inputs.input_kind.reads_columns:
            assert model.kind is not None
            inputs = inputs._replace(columns=model.kind.training_columns())
        combination, reason = model.stage(Combination), model.report["without_lamp"]
        assert combination is not None
        means = combination.weight.mean(axis=0).tolist()
        weights = dict(zip(combination.names, means, strict=True))
        results = {
            "test": evaluation.to_dict()["values"],
            "by_label": evaluation.records(),
            "validation": model.report["validation"],
            "weights": weights,
            "without_lamp": reason,
            **facts,
        }
        hint = "another program saved it meanwhile: move it away, and run this command again"
        self._refuse_model(hint)
        split = {"split": self.split.hash, "split_name": self.split.name}
        model.facts |= {"inputs": inputs._asdict(), **split, **results}
        model.save(self.out)
        lines = [str(evaluation), results_by_label(evaluation)]
        for name, fact in facts.items():
            pairs = fact.items() if isinstance(fact, dict) else ()
            lines.append(f"{name}: {', '.join(f'{key} {value}' for key, value in pairs) or fact}")
        parts = ", ".join(f"{title} {weight:.2f}" for title, weight in weights.items())
        omission = f"; LaMP is left out, because {reason}" if reason else ""
        lines += [f"Weights of its parts: {parts}{omission}.", f"The model is in '{self.out}'."]
        show({"model": str(self.out), **results}, "\n".join(lines), self.json)


def read_dataset(inputs: Inputs, table: TableOptions) -> MultiLabelDataset:
    """Returns all samples of a file. Raises ValueError if they are too few to train with."""
    path, kind = Path(table.path), inputs.input_kind
    options = replace(file_options(table), parts=inputs.parts or {})
    dataset = kind.from_csv(path, inputs.columns, inputs.labels, options)
    for line in [] if dataset.schema is None else dataset.schema.summary():
        print(line, file=sys.stderr)  # noqa: T201
    if dataset.schema is not None and kind.reads_columns and not inputs.columns:
        cells = read_table(path, options.delimiter, options.encoding).cells()
        warn_of_claimed(dataset.schema, cells, {*options.hints.ignore, *options.hints.ids})
    check_label_names(dataset.label_names, inputs.separator)
    if len(dataset) < MIN_ROWS:
        expected = f"at least {MIN_ROWS} rows to train and to test with in '{path}'"
        raise ValueError(f"Expected {expected} (got {len(dataset)} that can be read)")
    if dataset.y.isnan().all():
        raise ValueError(f"Expected a label that is known in '{path}' (got none)")
    return dataset


@contextmanager
def time_left(seconds: float) -> Iterator[None]:
    """Shows the remaining time of a training on a terminal, above its progress bars."""
    is_done, end = Event(), time.monotonic() + seconds
    with tqdm(bar_format="{desc}", disable=None, leave=False) as status_line:

        def tick() -> None:
            while not is_done.is_set():
                left = tqdm.format_interval(max(0.0, end - time.monotonic()))
                status_line.set_description_str(f"Training takes at most about {left} more")
                is_done.wait(1.0)

        thread = Thread(target=tick, daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_done.set()
            thread.join()
