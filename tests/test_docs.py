"""The code of the pages, run in a folder of its own."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from pydoc import locate
from typing import Any

import pytest
import torch
from torch_geometric.data import Batch
from torch_geometric.utils import from_smiles

from tests.papers.released import Config, random_state
from tests.quick import train_little
from tests.snippets import ROOT, cells, python_blocks

TUTORIALS = sorted(
    str(page.relative_to(ROOT)) for page in (ROOT / "docs" / "tutorials").glob("*.md")
)
PAGES = sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md"))
BLOCKS = {f"{page}-{i}": text for page in PAGES for i, text in enumerate(python_blocks(page))}


@pytest.fixture
def _readers_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short training, and the checkpoint that a page expects in the working folder."""
    monkeypatch.chdir(tmp_path)
    train_little(monkeypatch)
    torch.save(random_state(Config()), "model.chkpt")


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
@pytest.mark.usefixtures("_readers_own")
def test_every_block_runs(block: str) -> None:
    namespace: dict[str, object] = {}
    exec(block, namespace)
    assert namespace.keys() - {"__builtins__"}


def test_three_lines_make_a_label_message_passing_network() -> None:
    before, after = [block for block in python_blocks("docs/training.md") if "GINEConv" in block]
    bodies = [block[block.index("class Net") :].splitlines() for block in (before, after)]
    changes = [line for line in difflib.ndiff(*bodies) if line[0] in "+-"]
    assert [line[0] for line in changes].count("-") == 3
    assert [line[0] for line in changes].count("+") == 3

    torch.manual_seed(0)
    batch = Batch.from_data_list(list(map(from_smiles, ("CCO", "c1ccccc1O", "CC(=O)N"))))
    y = torch.tensor([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]])
    for block in (before, after):
        namespace: dict[str, Any] = {}
        exec(block, namespace)
        model = namespace["Net"](num_labels=4)
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


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS)
@pytest.mark.usefixtures("_readers_own")
@pytest.mark.filterwarnings("ignore:.*non-interactive:UserWarning")
def test_every_tutorial_runs_and_ends_in_a_picture(page: str) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    exec(cells(page), {})
    assert "plt." in cells(page).splitlines()[-1]
    assert plt.get_fignums()
    plt.close("all")


def test_the_reference_documents_every_public_module_once() -> None:
    pages = (page.read_text() for page in (ROOT / "docs" / "reference").glob("*.rst"))
    documented = [module for page in pages for module in re.findall(r"automodule:: (\S+)", page)]
    public = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in (ROOT / "tg_mlc").rglob("*.py")
        if "__all__" in path.read_text()
    }
    public -= {"tg_mlc", "tg_mlc.ops.attention", "tg_mlc.ops.runtime"}
    assert sorted(documented) == sorted(public)


def test_roles_name_what_exists() -> None:
    role = r"(?:\{(?:class|func|meth|attr)\}|:(?:class|func|meth):)`~?(tg_mlc[\w.]+)`"
    sources = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "tg_mlc").rglob("*.py")]
    named = {found for source in sources for found in re.findall(role, source.read_text())}
    assert len(named) > 100
    assert not [name for name in named if locate(name) is None]


def test_every_page_is_in_the_index() -> None:
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")}
    index = (ROOT / "docs" / "index.md").read_text()
    assert pages - {"index"} <= set(re.findall(r"^[\w/]+$", index, re.MULTILINE))


def test_the_pages_outside_results_stay_short() -> None:
    code = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
    pages = [page for page in (ROOT / "docs").rglob("*.md") if "results" not in str(page)]
    assert sum(len(code.sub("", page.read_text()).split()) for page in pages) <= 18_000
