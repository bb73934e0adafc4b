"""A small table of molecules, and a model that the command line trained on it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tg_mlc
from tests.quick import train_little
from tg_mlc import cli
from tg_mlc.data import from_arrays


def write_drugs(path: Path) -> Path:
    ends = ("O", "N", "C(=O)O", "Cl")
    rows = ["smiles,liver,skin"]
    rows += [
        f"{'C' * (1 + i % 9)}{ends[i % 4]},{int(i % 4 in (0, 2))},{'' if i % 7 == 0 else i % 2}"
        for i in range(80)
    ]
    path.write_text("\n".join(rows) + "\n")
    return path


def write_rows(path: Path) -> Path:
    rows = ["height,width,tall,broad"]
    rows += [f"{i % 10 or ''},{i % 7},{int(i % 10 > 5)},{int(i % 7 > 3)}" for i in range(80)]
    path.write_text("\n".join(rows) + "\n")
    return path


TRAIN_ROWS = ["train", "--labels", "tall,broad", "--seconds", "1"]


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with ``rows.csv`` and a model of it."""
    folder = tmp_path_factory.mktemp("rows")
    write_rows(folder / "rows.csv")
    assert (
        cli.main([*TRAIN_ROWS, "--csv", str(folder / "rows.csv"), "--out", str(folder / "model")])
        == 0
    )
    return folder


@pytest.fixture(scope="session")
def plain_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model of five numbers that the command line did not train, with LaMP among its parts."""
    X = np.random.default_rng(0).normal(size=(60, 5))
    dataset = from_arrays(X, (X[:, :3] > 0).astype(float), ["calm", "sad", "loud"], kind="vector")
    with pytest.MonkeyPatch.context() as patched:
        train_little(patched, max_epochs=1)
        model = tg_mlc.auto(dataset, seconds=60)
    assert model.networks
    return model.save(tmp_path_factory.mktemp("plain") / "model")
