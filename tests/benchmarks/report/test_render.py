from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.report import render


@pytest.mark.parametrize("page", render.pages(), ids=lambda page: page.name)
def test_tables_are_up_to_date(page: Path) -> None:
    assert render.render(page.read_text()) == page.read_text(), "run: python benchmarks/render.py"


def test_gains_over_baselines_stand_in_one_line() -> None:
    test = {"row": "fmp LaMP el", "mean_difference": 0.01, "sd": 0.02, "p": 0.4}
    compared = [(name, metric) for name in ("random forest", "linear path alone") for metric in ("ACC", "maAUC")]
    result = {"tests": [{**test, "against": name, "metric": metric} for name, metric in compared]}
    (line,) = render._against_baselines(result)
    assert line == (
        "fmp LaMP el, macro ROC-AUC (corrected paired t-tests): +0.0100 against random forest (sd 0.0200, p = 0.40), "
        "+0.0100 against linear path alone (sd 0.0200, p = 0.40)"
    )


def test_unknown_result_is_an_error() -> None:
    with pytest.raises(FileNotFoundError, match=r"run the benchmark that writes it"):
        render.render("<!-- results: missing -->\n<!-- end of results -->")


def test_table_shows_mean_spread_and_tests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(render, "RESULTS", tmp_path)
    metrics = {name: {"mean": 0.5, "sd": 0.25} for name in render.COLUMNS}
    used = {"thresholds": {"ACC": [0.3, 0.25], "HA": [0.5, 0.5]}}
    result = {
        "summary": {"fmp LaMP fc": {"metrics": metrics, "seconds": 3.2, "density": 1.0, "recovery": {}, **used}},
        "tests": [
            {
                "row": "fmp fc",
                "against": "el",
                "metric": "maAUC",
                "mean_difference": 0.01,
                "sd": 0.02,
                "p": 0.4,
            }
        ],
        "runs": [{"undefined": ["rare"]}],
        "dataset": {"num_samples": 9, "counted_labels": 2, "sha256": "0123456789abcdef"},
        "split": "random",
        "seeds": [10, 11],
        "environment": {"processor": "CPU", "versions": {"torch": "2", "torch-geometric": "3"}},
    }
    (tmp_path / "one.json").write_text(render.json.dumps(result))
    page = render.render("before\n<!-- results: one -->\noutdated\n<!-- end of results -->\nafter")
    assert "| fmp LaMP fc | 1.00 | 0.500 ± 0.250 |" in page
    assert "fmp fc against el, maAUC: +0.0100 (sd 0.0200, corrected paired t-test p = 0.40)" in page
    assert "Thresholds by seed (fmp LaMP fc): ACC 0.3/0.25, HA 0.5/0.5" in page
    assert "left out of its ROC-AUC: rare" in page
    assert "outdated" not in page
    assert page.startswith("before\n")
    assert page.endswith("after")
    assert render.render(page) == page


def test_a_brief_table_has_one_row_for_each_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(render, "RESULTS", tmp_path)
    metrics = {name: {"mean": 0.5, "sd": None} for name in render.COLUMNS}
    result = {
        "summary": {"emb LaMP fc": {"metrics": metrics, "by_frequency": metrics, "seconds": 3.2, "density": 1.0}},
        "papers": {"arXiv:1, Emb + LaMP_fc": {"ACC": 0.25}, f"{render.BEST} (other split)": {"ACC": 0.75}},
        "dataset": {"num_samples": 9, "counted_labels": 2, "sha256": "0123456789abcdef"},
        "split": "official",
        "seeds": [10],
        "environment": {"processor": "CPU", "versions": {"torch": "2", "torch-geometric": "3"}},
    }
    (tmp_path / "one.json").write_text(render.json.dumps(result))
    page = render.render("<!-- results: one brief -->\n<!-- end of results -->")
    assert "| emb LaMP fc | 1.00 | 0.500 |" in page
    assert "| best of the papers' message passing (other split) | | 0.750 |" in page
    assert "thresholds by frequency" not in page
    assert "0.250" not in page
    assert "9 samples, 2 labels counted" in page


def test_label_graphs_of_all_comparisons_stand_in_one_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(render, "RESULTS", tmp_path)
    row = {"metrics": {name: {"mean": 0.5, "sd": None} for name in render.COLUMNS}, "density": 0.25, "recovery": {}}
    svm = {**row, "density": None}
    found = {"learned attention, pr": {"ROC-AUC": 0.9, "average precision": 0.75, "share of pairs joined": 0.125}}
    summary = {"linear SVM, tuned": svm, "emb LaMP pr": row, "emb LaMP fc": {**row, "density": 1.0, "recovery": found}}
    (tmp_path / "prior_vs_learned-one-official.json").write_text(render.json.dumps({"summary": summary}))
    rows = render.label_graphs().splitlines()[2:]
    assert rows[0].startswith("| one-official | linear SVM, tuned |  | 0.500 |")
    assert rows[1] == "| one-official | emb LaMP pr | 0.25 |" + " 0.500 |" * 5 + " 0.75 of 0.12 |"
    assert rows[2] == "| one-official | emb LaMP fc | 1.00 |" + " 0.500 |" * 5 + "  |"


def test_settings_that_a_recipe_has_changed_since_are_named() -> None:
    recipe = render.RECIPES["yeast"]
    then = render.json.loads(render.json.dumps(render.recorded(recipe)))
    result = {"dataset": {"name": "yeast"}, "recipe": then}
    assert render._changed_settings(result) == []
    then["model"]["channels"] = 3
    del then["module"]["lr"]
    assert render._changed_settings(result) == [
        "Other settings than in today's recipe, or not recorded: model.channels, module.lr"
    ]
    assert render._changed_settings({"dataset": {"name": "of mine"}, "recipe": then}) == []
