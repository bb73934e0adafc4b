"""A small table of molecules, and a model that the command line trained on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tg_mlc import cli


def write_drugs(path: Path) -> Path:
    ends = ("O", "N", "C(=O)O", "Cl")
    rows = ["smiles,liver,skin"]
    rows += [
        f"{'C' * (1 + i % 9)}{ends[i % 4]},{int(i % 4 in (0, 2))},{'' if i % 7 == 0 else i % 2}" for i in range(80)
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
    assert cli.main([*TRAIN_ROWS, "--csv", str(folder / "rows.csv"), "--out", str(folder / "model")]) == 0
    return folder
