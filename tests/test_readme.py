"""The README's promises, run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.quick import train_little
from tests.snippets import ROOT, python_blocks

README = "README.md"
TEXT = (ROOT / README).read_text()


@pytest.mark.parametrize("block", python_blocks(README))
def test_every_block_runs(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    train_little(monkeypatch)
    namespace: dict[str, object] = {}
    exec(block, namespace)
    assert namespace.keys() - {"__builtins__"}


@pytest.mark.parametrize("seconds", [1, pytest.param(60, marks=pytest.mark.slow)])
def test_the_classifier_predicts_what_its_comment_says(
    seconds: int, capsys: pytest.CaptureFixture[str]
) -> None:
    [block] = (each for each in python_blocks(README) if "AutoClassifier" in each)
    [expected] = re.findall(r"# (\[\{.*\}\])$", block, re.MULTILINE)
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
