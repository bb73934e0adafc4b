"""Runs every short example as a reader would, with less training."""

from importlib import import_module

import numpy as np
import pandas as pd
import pytest

from tests.quick import train_little
from tests.snippets import ROOT
from tg_mlc.sklearn import LaMPClassifier

EXAMPLES = {
    "own_csv": ({}, "liver"),
    "text_tags": ({"seconds": 1}, "f1_micro"),
    "own_gnn": ({"num_molecules": 60, "epochs": 1}, "halogen"),
    "label_graph": ({"num_samples": 100, "epochs": 1}, "known     macro average precision 0."),
    "given_labels": ({"seconds": 1}, "60% of the labels given"),
    "mixed_rows": ({"size": 200, "seconds": 0}, "text and features    macro average precision 0."),
    "node_labels": ({"steps": 5}, "average_precision_macro"),
    "next_basket": ({"epochs": 1}, "LANET              0."),
}


def test_no_example_is_left_out():
    names = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert names == {*EXAMPLES, "sider_graph", "score_with_ray"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_and_is_short(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    train_little(monkeypatch, max_epochs=1)
    options, expected = EXAMPLES[name]
    if name in ("own_csv", "own_gnn"):
        pytest.importorskip("rdkit")
    import_module(f"examples.{name}").main(**options)
    assert expected in capsys.readouterr().out
    assert len((ROOT / "examples" / f"{name}.py").read_text().splitlines()) < 60


def test_ray_scores_in_order_and_keeps_bad_rows(tmp_path):
    parquet, _ = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("ray")
    pytest.importorskip("rdkit")
    smiles = [f"{'C' * (1 + row % 9)}{'ON'[row % 2]}" for row in range(60)]
    index = np.arange(60)
    y = pd.DataFrame({"alcohol": index % 2 == 0, "short": index % 9 < 4})
    options = {"num_steps": 1, "model_options": {"channels": 16}, "max_epochs": 1}
    classifier = LaMPClassifier(base_scores=None, **options, random_state=0)
    classifier.fit(smiles, y).save(tmp_path / "model")
    rows = [f"{row},{'no molecule' if row % 100 == 7 else smiles[row % 60]}" for row in range(3000)]
    (tmp_path / "drugs.csv").write_text("\n".join(["place,smiles", *rows]))
    example = import_module("examples.score_with_ray")
    example.main(str(tmp_path / "model"), str(tmp_path / "drugs.csv"), str(tmp_path / "scores"))
    scored = parquet.read_table(tmp_path / "scores").to_pandas()
    assert scored["place"].tolist() == list(range(3000))
    assert [row for row, error in enumerate(scored["error"]) if error] == list(range(7, 3000, 100))
    assert scored["alcohol"].isna().tolist() == [error != "" for error in scored["error"]]
    assert len((ROOT / "examples" / "score_with_ray.py").read_text().splitlines()) < 60
