"""Tests the README and the pages: their code, run in a new folder, and their statements."""

import difflib
import json
import re
import subprocess
from pydoc import locate

import pytest
import torch
from torch_geometric.data import Batch
from torch_geometric.utils import from_smiles

import tg_mlc
from tests.papers.released import Config, random_state
from tests.quick import read_few_molecules, train_little
from tests.snippets import ROOT, cells, python_blocks
from tg_mlc.data import molecule_from_smiles

TUTORIALS = sorted(f"docs/tutorials/{page.name}" for page in ROOT.glob("docs/tutorials/*.md"))
PAGES = ["README.md", *sorted(f"docs/{page.name}" for page in ROOT.glob("docs/*.md"))]
BLOCKS = {f"{page}-{i}": text for page in PAGES for i, text in enumerate(python_blocks(page))}
README = (ROOT / "README.md").read_text()
NUMBERS = {9: "nine", 10: "ten", 11: "eleven", 12: "twelve", 13: "thirteen"}
#: Instructions of a Dockerfile.
KNOWN = "ARG FROM RUN COPY ENV USER WORKDIR EXPOSE HEALTHCHECK ENTRYPOINT CMD"


@pytest.fixture
def _readers_own(tmp_path, monkeypatch):
    """Shortens training, and writes the checkpoint that a page expects."""
    monkeypatch.chdir(tmp_path)
    train_little(monkeypatch)
    torch.save(random_state(Config()), "model.chkpt")


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
@pytest.mark.usefixtures("_readers_own")
def test_every_block_runs(block, monkeypatch):
    train_little(monkeypatch, max_epochs=1)
    read_few_molecules(monkeypatch)
    namespace = {}
    exec(block, namespace)
    assert namespace.keys() - {"__builtins__"}


def test_three_lines_make_a_label_message_passing_network():
    plain, extended = [block for block in python_blocks("docs/training.md") if "GINEConv" in block]
    bodies = [block[block.index("class Net") :].splitlines() for block in (plain, extended)]
    changes = [line for line in difflib.ndiff(*bodies) if line[0] in "+-"]
    assert [line[0] for line in changes].count("-") == 3
    assert [line[0] for line in changes].count("+") == 3

    for block in (plain, extended):
        check_that_it_learns(block, from_smiles)


def test_the_network_of_the_readme_learns_molecules_of_this_package():
    [block] = (code for code in python_blocks("README.md") if "GINEConv" in code)
    check_that_it_learns(block, molecule_from_smiles)


def check_that_it_learns(block, read):
    """Trains the network of a block on three molecules for 60 steps."""
    torch.manual_seed(0)
    batch = Batch.from_data_list(list(map(read, ("CCO", "c1ccccc1O", "CC(=O)N"))))
    y = torch.tensor([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]])
    namespace = {}
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
def test_every_tutorial_runs_and_ends_in_a_picture(page):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    exec(cells(page), {})
    assert "plt." in cells(page).splitlines()[-1]
    assert plt.get_fignums()
    plt.close("all")


def test_the_reference_documents_every_public_module_once():
    pages = (page.read_text() for page in ROOT.glob("docs/reference/*.rst"))
    documented = [module for page in pages for module in re.findall(r"automodule:: (\S+)", page)]
    public = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in (ROOT / "tg_mlc").rglob("*.py")
        if "__all__" in path.read_text()
    }
    public -= {"tg_mlc", "tg_mlc.ops.attention", "tg_mlc.ops.runtime"}
    assert sorted(documented) == sorted(public)


def test_no_file_has_marks_of_a_merge():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]
    assert ROOT / "CHANGELOG.md" in pages
    marks = re.compile(r"^(<{7}|={7}|>{7})( |$)", re.MULTILINE)
    assert not [page for page in pages if marks.search(page.read_text())]


def test_roles_name_existing_objects():
    role = r"(?:\{(?:class|func|meth|attr)\}|:(?:class|func|meth):)`~?(tg_mlc[\w.]+)`"
    sources = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("tg_mlc/**/*.py")]
    names = {target for source in sources for target in re.findall(role, source.read_text())}
    assert len(names) > 100
    assert not [name for name in names if locate(name) is None]


def test_every_page_is_in_the_index():
    pages = {page.stem for page in ROOT.glob("docs/*.md")}
    index = (ROOT / "docs/index.md").read_text()
    assert pages - {"index"} <= set(re.findall(r"^[\w/]+$", index, re.MULTILINE))


def test_the_readme_and_the_pages_outside_results_stay_short():
    code = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
    pages = [page for page in ROOT.glob("docs/**/*.md") if "results" not in str(page)]
    assert sum(len(code.sub("", page.read_text()).split()) for page in pages) <= 18_000
    assert len(README.split()) <= 900


@pytest.mark.parametrize("seconds", [1, pytest.param(60, marks=pytest.mark.slow)])
def test_the_classifier_of_the_readme_predicts_what_its_comment_says(seconds, capsys):
    [block] = (code for code in python_blocks("README.md") if "AutoClassifier" in code)
    [expected] = re.findall(r"# (\[\{.*\}\])$", block, re.MULTILINE)
    exec(block.replace("seconds=60", f"seconds={seconds}"), {})
    assert capsys.readouterr().out.splitlines()[-1] == expected


def test_links_and_commands_of_the_readme_exist():
    for target in re.findall(r"\]\(([^)#]+)[)#]", README):
        assert target.startswith("http") or (ROOT / target).exists(), target
    commands = re.findall(r"^make (\w+)", README, re.MULTILINE)
    assert commands == ["sider", "test"]
    for command in commands:
        subprocess.run(["make", "--dry-run", command], cwd=ROOT, check=True, capture_output=True)


def test_the_bibtex_to_copy_agrees_with_the_citation_file():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    [block] = re.findall(r"```bibtex\n(.*?)```", (ROOT / "docs/index.md").read_text(), re.DOTALL)
    entries = [
        dict(re.findall(r"^  (\w+) += \{(.*)\},$", entry.replace(r"\_", "_"), re.MULTILINE))
        for entry in re.findall(r"^@\w+\{.*?^\}", block, re.DOTALL | re.MULTILINE)
    ]
    [paper] = citation["references"]
    names = (f"{author['family-names']}, {author['given-names']}" for author in paper["authors"])
    assert entries == [
        {
            "title": citation["title"],
            "author": f"{{{citation['authors'][0]['name']}}}",
            "year": str(citation["date-released"])[:4],
            "version": str(citation["version"]),
        },
        {
            "title": paper["title"],
            "author": " and ".join(names),
            "journal": paper["identifiers"][0]["value"],
            "year": str(paper["year"]),
        },
    ]
    assert citation["version"] == tg_mlc.__version__


def test_the_table_of_extras_is_that_of_pyproject():
    tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = (ROOT / "docs/installation.md").read_text().splitlines()
    cells = [line.split("|")[1:4] for line in lines if line.startswith("| `")]
    rows = {name: (use.strip(), text.strip()) for cell, use, text in cells for name in words(cell)}
    assert rows.keys() == extras.keys()

    above, within = list(rows)[: list(rows).index("all")], extras["all"][0].partition("[")[2]
    assert set(above) == set(words(within))
    assert rows["all"] == (f"the {NUMBERS[len(above)]} above", "")
    for extra in (*above, "sparse"):
        assert set(rows[extra][1].split(", ")) == {words(line)[0] for line in extras[extra]}
    packages = {"the command line": "jsonargparse", "downloads": "pooch"}
    packages["linear baselines"] = "scikit-learn"
    for extra in ("data", "molecules", "train"):
        for use, package in packages.items():
            assert use not in rows[extra][0] or package in rows[extra][1], (extra, use)


def words(text):
    return re.findall(r"[\w-]+", text)


def test_the_dockerfile_has_known_instructions_and_existing_paths():
    """Checks the syntax alone, because no image can be built here."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    steps = [tuple(line.split(maxsplit=1)) for line in lines if line.strip()]
    assert steps[0][0] == "FROM"
    assert {name for name, _ in steps} <= set(KNOWN.split())
    for name, arguments in steps:
        if name in ("ENTRYPOINT", "CMD"):
            assert all(isinstance(word, str) for word in json.loads(arguments))
        if name == "HEALTHCHECK":
            json.loads(arguments[arguments.index("CMD ") + 4 :])
        if name == "COPY" and "--from" not in arguments:
            assert all((ROOT / path).exists() for path in arguments.split()[:-1])
    extras = re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    [installed] = [line for _, line in steps if "pip install" in line and "[" in line]
    assert {*re.search(r"\[(.*?)\]", installed)[1].split(",")} <= {*extras}
    last = max(index for index, (name, _) in enumerate(steps) if name == "FROM")
    users = [arguments for name, arguments in steps[last:] if name == "USER"]
    assert users
    assert "root" not in users  # The server has few rights.
