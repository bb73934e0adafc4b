from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.speed.arff_readers import main

HEADER = "@relation r\n@attribute a {0,1}\n@attribute b numeric\n@data\n"
SPARSE, DENSE = HEADER + "{0 1}\n{1 2.5}\n", HEADER + "1,0\n0,2.5\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "table.arff"


def read_by_liac(monkeypatch: pytest.MonkeyPatch, data: Any) -> None:
    liac = SimpleNamespace(COO="coordinates", DENSE="rows", loads=lambda *args, **options: {"data": data})
    monkeypatch.setitem(sys.modules, "arff", liac)
    monkeypatch.setattr("benchmarks.speed.arff_readers.version", lambda name: "1.0")


@pytest.mark.parametrize(
    ("text", "data", "scipy"),
    [
        (SPARSE, ([1, 2.5], [0, 1], [0, 1]), "cannot read it, ValueError"),
        (DENSE, [[1, 0], [0, 2.5]], "can read it"),
    ],
)
def test_readers_that_agree_are_timed(
    text: str, data: Any, scipy: str, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(text)
    read_by_liac(monkeypatch, data)
    assert main(file, repeats=1) == 0
    printed = capsys.readouterr().out
    assert "times as long as ours" in printed
    assert f"SciPy: {scipy}" in printed


@pytest.mark.parametrize(
    ("text", "data"), [(SPARSE, ([1, 2.6], [0, 1], [0, 1])), (DENSE, [[1, 0], [0, None]]), (DENSE, [[1, 0]])]
)
def test_readers_that_disagree_get_no_times(
    text: str, data: Any, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(text)
    read_by_liac(monkeypatch, data)
    assert main(file, repeats=1) == 1
    assert capsys.readouterr().out.splitlines()[1:] == ["The readers disagree, so no times are given"]


def test_without_liac_arff(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "arff", None)
    with pytest.raises(SystemExit, match="run 'pip install liac-arff'"):
        main(file)
