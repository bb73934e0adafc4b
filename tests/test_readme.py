"""The README's promises, run."""

from __future__ import annotations

import difflib
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Batch
from torch_geometric.utils import from_smiles

from tests.snippets import ROOT, python_blocks

README = "README.md"


def run(block: str) -> dict[str, Any]:
    namespace: dict[str, Any] = run(python_blocks(README)[1]) if "Net(num_labels=" in block else {}
    exec(block, namespace)
    return namespace


@pytest.mark.parametrize("block", python_blocks(README))
def test_every_block_runs(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(block)


def test_three_lines_make_a_label_message_passing_network() -> None:
    before, after = python_blocks(README)[:2]
    bodies = [block[block.index("class Net") :].splitlines() for block in (before, after)]
    changes = [line for line in difflib.ndiff(*bodies) if line[0] in "+-"]
    assert [line[0] for line in changes].count("-") == 3
    assert [line[0] for line in changes].count("+") == 3

    torch.manual_seed(0)
    batch = Batch.from_data_list([from_smiles(smiles) for smiles in ("CCO", "c1ccccc1O", "CC(=O)N")])
    y = torch.tensor([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]])
    for block in (before, after):
        model = run(block)["Net"](num_labels=4)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
        losses = []
        for _ in range(60):
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(batch), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert model(batch).shape == (3, 4)
        assert losses[-1] < 0.2 * losses[0]


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / README).read_text()):
        assert target.startswith("http") or (ROOT / target).exists(), target


def test_commands_exist() -> None:
    commands = re.findall(r"^make (\w+)", (ROOT / README).read_text(), re.MULTILINE)
    assert commands == ["sider", "test"]
    for command in commands:
        subprocess.run(["make", "--dry-run", command], cwd=ROOT, check=True, capture_output=True)


def test_extras_exist() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text()
    for extra in ("molecules", "train", "plot", "numba", "sparse", "dev", "docs", "all"):
        assert re.search(rf"^{extra} = ", pyproject, re.MULTILINE)
        assert f"`{extra}`" in (ROOT / README).read_text()


def test_extras_hold_what_is_said() -> None:
    packages = {"the command line": "jsonargparse", "downloads": "pooch", "linear baselines": "scikit-learn"}
    said = dict(re.findall(r"`(\w+)` \(([^)]*)\)", (ROOT / README).read_text().replace("\n", " ")))
    table = (ROOT / "pyproject.toml").read_text().split("[project.optional-dependencies]")[1]
    for extra, requirements in re.findall(r"^(data|molecules|train) = \[(.*?)\]$", table, re.MULTILINE | re.DOTALL):
        for what, package in packages.items():
            assert (what in said[extra]) == (package in requirements), (extra, what)


def test_example_is_where_it_is_said_to_be() -> None:
    assert Path(ROOT / "examples" / "sider_graph.py").is_file()
