"""The README's promises, run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.snippets import ROOT, python_blocks
from tg_mlc.stacking import folds

README = "README.md"
TEXT = (ROOT / README).read_text()


@pytest.mark.parametrize("block", python_blocks(README))
def test_every_block_runs(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(folds, "MAX_EPOCHS", 3)  # no more training than it takes to run
    monkeypatch.setattr(folds, "NUM_FOLDS", (2,))
    namespace: dict[str, object] = {}
    exec(block, namespace)
    assert namespace.keys() - {"__builtins__"}


def test_the_classifier_predicts_what_its_comment_says(capsys: pytest.CaptureFixture[str]) -> None:
    [block] = (each for each in python_blocks(README) if "AutoClassifier" in each)
    [expected] = re.findall(r"# (\[\{.*\}\])$", block, re.MULTILINE)
    for seconds in (1, 60):
        exec(block.replace("seconds=60", f"seconds={seconds}"), {})
        assert capsys.readouterr().out.splitlines()[-1] == expected


def test_it_stays_short() -> None:
    assert len(TEXT.split()) <= 900


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)[)#]", TEXT):
        assert target.startswith("http") or (ROOT / target).exists(), target


def test_commands_exist() -> None:
    commands = re.findall(r"^make (\w+)", TEXT, re.MULTILINE)
    assert commands == ["sider", "test"]
    for command in commands:
        subprocess.run(["make", "--dry-run", command], cwd=ROOT, check=True, capture_output=True)
