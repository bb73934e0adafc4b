import csv
import inspect
import json
import re
import runpy
import sys

import pytest
import torch

from examples.sider_graph import SILENT, TITLES, main
from tests.snippets import ROOT
from tg_mlc.baselines import ForestBaseline
from tg_mlc.datasets import DatasetUnavailableError
from tg_mlc.inference import read_checkpoint
from tg_mlc.inputs.tables import read_molecules
from tg_mlc.papers import base_scores
from tg_mlc.papers.recipes import RECIPES, Recipe


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def sider_file(real_file):
    return real_file("sider/raw/sider.csv")


@pytest.mark.slow
@pytest.mark.usefixtures("sider_file")
def test_sider_end_to_end(root, tmp_path, monkeypatch, capsys):
    def read_some(*args):
        smiles, y, names = read_molecules(*args)
        # Molecules are explained atom by atom, so small molecules take less time.
        small = sorted(range(len(smiles)), key=lambda row: len(smiles[row]))[:400]
        return [smiles[row] for row in small], y[small], names

    monkeypatch.setattr("tg_mlc.datasets.moleculenet.read_molecules", read_some)
    monkeypatch.setitem(base_scores._GINI, "n_estimators", 100)
    forest = "examples.sider_graph.ForestBaseline"
    monkeypatch.setattr(forest, lambda _, **options: ForestBaseline(100, **options))
    options = {"graphs": "edgeless,prior", "seed": 2, "max_epochs": 2}
    main(root=root, output=tmp_path, accelerator="cpu", contrast=False, **options)
    table = capsys.readouterr().out
    baselines = ("label frequency", "random forest", "linear SVM", "logistic regression", SILENT)
    for row in (*baselines, "LaMP edgeless", "LaMP prior", "paper, FMP + LaMP_el"):
        assert re.search(rf"^{re.escape(row)} .*0\.\d{{3}}", table, re.MULTILINE), row
    assert all(title in table for title in TITLES)

    results = json.loads((tmp_path / "sider" / "results.json").read_text())
    values = {row: result["values"]["roc_auc_macro"] for row, result in results["rows"].items()}
    assert min(values["LaMP edgeless"], values["LaMP prior"]) > values["random forest"] - 0.01
    assert values["label frequency"] == 0.5
    gain = values["LaMP prior"] - values[SILENT]
    assert f"which is {gain:+.3f} against {SILENT}, " in table
    assert min(values["linear SVM"], values["logistic regression"]) > 0.6
    with (tmp_path / "sider" / "prior" / "predictions.csv").open() as file:
        rows = list(csv.reader(file))
    assert len(rows) == 1 + 40
    assert rows[0][:2] == ["smiles", "Hepatobiliary disorders"]
    assert all(0 <= float(cell) <= 1 for row in rows[1:] for cell in row[1:])
    assert (tmp_path / "sider" / "prior" / "label_graph.png").stat().st_size > 10_000
    report = (tmp_path / "sider" / "report.html").read_text()
    assert report.count('class="drawing"') == 5
    assert "1.2" in report
    checkpoint = read_checkpoint(tmp_path / "sider" / "prior" / "best.ckpt")
    assert checkpoint.label_graph is not None
    assert checkpoint.label_graph.density < 0.3
    torch.load(tmp_path / "sider" / "edgeless" / "last.ckpt", weights_only=True)


def test_a_second_table_shows_what_messages_are_for(monkeypatch):
    calls = []
    monkeypatch.setattr("examples.sider_graph.compare", lambda *args: calls.append(args))
    monkeypatch.setattr(Recipe, "load_dataset", lambda recipe, root: None)
    main(graphs="edgeless,complete")
    main(dataset="nci", max_epochs=3)
    assert [(args[0], args[2]) for args in calls] == [
        ("sider", ["edgeless", "complete"]),
        ("nci", ["complete"]),
        ("nci", ["edgeless", "complete", "prior"]),
    ]
    assert [args[-1].get("max_epochs") for args in calls] == [None, 12, 3]


def test_falls_back_to_nci_and_says_so(monkeypatch, capsys):
    def load(recipe, root):
        if recipe is RECIPES["sider"]:
            raise DatasetUnavailableError("tried everything")
        return "data set nci"

    calls = []
    monkeypatch.setattr(Recipe, "load_dataset", load)
    monkeypatch.setattr("examples.sider_graph.compare", lambda *args: calls.append(args[:2]))
    main()
    assert calls == [("nci", "data set nci")]
    first_line = capsys.readouterr().out.splitlines()[0]
    assert "SIDER cannot be had" in first_line
    assert "NCI" in first_line


def test_an_unknown_label_graph_is_refused():
    message = r"some of edgeless,complete,prior, joined by commas \(got edgeless,tree\)"
    with pytest.raises(SystemExit, match=f"--graphs to be {message}"):
        main(graphs="edgeless,tree")


def run_script(monkeypatch, *options):
    """Runs the script, and returns its exit status."""
    monkeypatch.setattr(sys, "argv", ["sider_graph.py", *options])
    with pytest.raises(SystemExit) as stop:
        runpy.run_path(str(ROOT / "examples" / "sider_graph.py"), run_name="__main__")
    return stop.value.code


def test_help_explains_every_flag(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "120")
    assert run_script(monkeypatch, "--help") == 0
    text = capsys.readouterr().out
    flags = set(re.findall(r"^  (--\w+)", text, re.MULTILINE)) - {"--config", "--print_config"}
    assert flags >= {f"--{name}" for name in inspect.signature(main).parameters}
    for flag in flags:
        description = re.search(rf"^  {flag}\b.*?(?=^  -|\Z)", text, re.DOTALL | re.MULTILINE)
        assert description is not None
        assert "default" in description[0], flag
        assert len(description[0].split()) > 8, flag


def test_an_interruption_before_training_is_a_message(monkeypatch, capsys):
    def interrupt(recipe, root):
        raise KeyboardInterrupt

    monkeypatch.setattr(Recipe, "load_dataset", interrupt)
    assert run_script(monkeypatch) == 130
    assert capsys.readouterr().err == "Interrupted\n"
