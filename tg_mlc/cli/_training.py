"""Training by the command line, which goes on where it was interrupted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from tg_mlc._files import file_sha256, replace_when_done
from tg_mlc._folder import CONTENT
from tg_mlc.cli._inputs import Inputs
from tg_mlc.data import MultiLabelDataset, Split, random_split, scaffold_split, stratified_split
from tg_mlc.metrics import Evaluation
from tg_mlc.predict import Predictor, load
from tg_mlc.recipes import Recipe, default_recipe

SPLITS = ("random", "stratified", "scaffold")


class Run:
    """A training whose intermediate files are in the folder ``training`` of a model until it is done.

    Args:
        csv (str): The file.
        inputs (Inputs): Where inputs and labels are in it.
        out (str): The folder of the model.
        split (str): One of :obj:`SPLITS`.
        seed (int): Seed of split and training.
        force (bool): Whether to replace a model, and to start anew.

    Attributes:
        report (Evaluation): How good the model is on test samples, after :meth:`finish`.
    """

    report: Evaluation

    def __init__(self, csv: str, inputs: Inputs, out: str, split: str, seed: int, force: bool) -> None:
        if split not in SPLITS or (split == "scaffold" and inputs.kind != "smiles"):
            raise ValueError(f"Expected --split to be one of {SPLITS}, scaffold for SMILES only (got {split!r})")
        self.csv, self.inputs, self.out, self.seed = Path(csv), inputs, Path(out), seed
        self.method, self.force = split, force
        self.folder = self.out / "training"

    @contextmanager
    def started(self, options: Mapping[str, Any]) -> Iterator[None]:
        """Goes on with a run of the same settings, and leaves nothing but the model once all is done."""
        if (self.out / CONTENT).exists() and not self.force:
            raise ValueError(
                f"Expected no model in '{self.out}' (got one); choose another --out, or replace it: --force"
            )
        settings = {
            "csv": file_sha256(self.csv),
            "inputs": self.inputs._asdict(),
            "split": self.method,
            "seed": self.seed,
            **options,
        }
        note = self.folder / "settings.json"
        if self.force:
            shutil.rmtree(self.folder, ignore_errors=True)
        if note.exists() and json.loads(note.read_text()) != settings:
            raise ValueError(
                f"Expected the file and options of the training that was interrupted in '{self.folder}' (got others); "
                f"repeat these, or start anew: --force"
            )
        with replace_when_done(note) as unfinished:
            unfinished.write_text(json.dumps(settings))
        try:
            yield
        except ValueError:
            if not any(self.folder.rglob("*.ckpt")):  # nothing to go on with, and the options may be what is wrong
                shutil.rmtree(self.folder)
            raise
        shutil.rmtree(self.folder)

    def train(self, fit_options: Mapping[str, Any], name: str = "run", **changes: Any) -> Predictor:
        """Trains a model and returns the best epoch's.

        Args:
            fit_options (dict): Arguments of :func:`~tg_mlc.training.fit` that differ from the recipe.
            name (str, optional): The name of the folder of its checkpoints. (default: :obj:`"run"`)
            **changes (optional): Arguments of :meth:`~tg_mlc.recipes.Recipe.train` that differ.
        """
        folder = self.folder / name
        result, _ = self.recipe.train(
            self.prepared,
            self.split,
            self.recipe.label_graph("fc", self.prepared, self.split),
            folder,
            encoder="fmp" if self.inputs.kind in ("smiles", "dna") else "emb",
            seed=self.seed,
            resume=(folder / "last.ckpt").exists(),
            **{**changes, **fit_options},
        )
        assert result.model_folder is not None  # as recipes have builders
        return load(result.model_folder)

    def finish(self, predictor: Predictor) -> dict[str, Any]:
        """Evaluates a model on the test samples, and saves it with all that is known of it."""
        test = self.dataset[self.split.test]
        self.report = predictor.evaluate(test, test.y)
        values = {name: float(value) for name, value in self.report.values.items()}
        columns = self.inputs.columns or self.dataset.feature_names
        inputs = self.inputs._replace(columns=list(columns or []))._asdict()
        predictor.facts.update(inputs=inputs, test=values, split_name=self.split.name)
        predictor.save(self.out)
        return {"test": values, "validation": predictor.facts["validation"]}

    @cached_property
    def dataset(self) -> MultiLabelDataset:
        """All samples of the file."""
        return self.inputs.dataset(self.csv, self.folder)

    @cached_property
    def split(self) -> Split:
        """Eight tenths for training, one for validation, one for testing."""
        if self.method == "scaffold":
            smiles = [sample.smiles for sample in self.dataset]
            return scaffold_split(smiles, self.dataset.y, seed=self.seed, label_names=self.dataset.label_names)
        if self.method == "stratified":
            return stratified_split(self.dataset.y, seed=self.seed, label_names=self.dataset.label_names)
        return random_split(len(self.dataset), seed=self.seed)

    @cached_property
    def recipe(self) -> Recipe:
        """How to train on such data."""
        return default_recipe(self.dataset)

    @cached_property
    def prepared(self) -> MultiLabelDataset:
        """The samples as the model takes them."""
        return self.recipe.prepare(self.dataset, self.split, self.folder)
