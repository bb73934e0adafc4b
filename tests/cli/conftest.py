"""Small tables, a function that runs commands, and small trained models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tg_mlc
from tests.quick import train_little
from tg_mlc import cli
from tg_mlc.data import from_arrays


def run(command: str, *words: object, **options: object) -> int:
    """Runs a command, split at spaces, with further words and with options by name."""
    option_words = [word for name, value in options.items() for word in (f"--{name}", value)]
    return cli.main([*command.split(), *map(str, (*words, *option_words))])


def write_drugs(path: Path) -> Path:
    ends = ("O", "N", "C(=O)O", "Cl")
    rows = ["smiles,liver,skin"]
    for i in range(80):
        skin = "" if i % 7 == 0 else i % 2
        rows.append(f"{'C' * (1 + i % 9)}{ends[i % 4]},{int(i % 4 in (0, 2))},{skin}")
    path.write_text("\n".join(rows) + "\n")
    return path


def write_rows(path: Path) -> Path:
    rows = [f"{i % 10 or ''},{i % 7},{int(i % 10 > 5)},{int(i % 7 > 3)}" for i in range(80)]
    path.write_text("\n".join(["height,width,tall,broad", *rows]) + "\n")
    return path


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with ``rows.csv`` and a model trained on the file."""
    folder = tmp_path_factory.mktemp("rows")
    file = write_rows(folder / "rows.csv")
    assert run("train --labels tall,broad --seconds 0", csv=file, out=folder / "model") == 0
    return folder


@pytest.fixture(scope="session")
def plain_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a model of five numbers with LaMP, trained in Python."""
    X = np.random.default_rng(0).normal(size=(60, 5))
    dataset = from_arrays(X, (X[:, :3] > 0).astype(float), ["calm", "sad", "loud"], kind="vector")
    with pytest.MonkeyPatch.context() as patched:
        train_little(patched, max_epochs=1)
        model = tg_mlc.auto(dataset, seconds=60)
    assert model.networks
    return model.save(tmp_path_factory.mktemp("plain") / "model")
