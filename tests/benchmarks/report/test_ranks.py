from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.accuracy.runs import Row
from benchmarks.report.ranks import draw, numbers, rectangles, section
from tests.benchmarks.report.cells import stored, table

LAMP, MPED, SVM = Row("lamp", False, "complete"), Row("mped", True, "complete"), Row("linear SVM")


def three(row, value, dataset):
    return [stored(row, seed, value, dataset) for seed in (10, 11, 12)]


def test_the_models_and_data_sets_of_which_most_cells_are_there():
    present = [(data, model) for data in "ABC" for model in ("x", "y", "z")]
    present += [("D", "x"), ("A", "w")]
    square = ["A", "B", "C"], ["x", "y", "z"]
    assert rectangles(present) == [square]
    assert rectangles([]) == []
    wide = [(data, f"{i}") for data in "ABC" for i in range(9)]
    assert rectangles([*wide, ("D", "0"), ("D", "1"), ("D", "2")]) == [
        (["A", "B", "C"], [f"{i}" for i in range(9)]),
        (["A", "B", "C", "D"], ["0", "1", "2"]),
    ]


def test_there_are_enough_data_sets_and_models_for_the_tests():
    wide = [(data, f"{i}") for data in "AB" for i in range(30)]
    assert rectangles(wide) == []
    square = ["A", "B", "C"], ["0", "1", "2", "3"]
    assert rectangles([*wide, *(("C", f"{i}") for i in range(4))]) == [square]
    assert rectangles([*wide, *(("C", f"{i}") for i in range(2))]) == []
    long = [(f"{i}", model) for i in range(9) for model in "xy"]
    square = ["0", "1", "2"], ["x", "y", "z"]
    assert rectangles([*long, *((f"{i}", "z") for i in range(3))]) == [square]


def test_what_is_no_model_of_its_own_or_undefined_is_left_out():
    one_step = replace(MPED, change="T=1")
    cells = []
    for data in ("bibtex", "emotions", "reuters", "sider"):
        for value, row in ((0.0, LAMP), (0.1, MPED), (0.2, SVM), (0.5, one_step)):
            cells += three(row, value, data)
        cells.append(stored(Row("ML-kNN"), 10, 0.5, data))  # It has one seed.
    for cell in cells:
        if cell["dataset"]["name"] == "emotions":
            cell["run"]["metrics"]["f1_macro"] = None
    (found,) = numbers(table(cells))
    assert found["datasets"] == ["bibtex", "reuters", "sider"]
    assert list(found["metrics"]["f1_micro"]["ranks"]) == ["LaMP emb fc", "MPED fc", "linear SVM"]


def test_ranks_of_cells():
    scores = {"bibtex": (0.4, 0.3, 0.2), "sider": (0.5, 0.4, 0.1), "reuters": (0.8, 0.9, 0.7)}
    cells = []
    for data, values in scores.items():
        for row, value in zip((LAMP, MPED, SVM), values, strict=True):
            cells += three(row, value, data)
    (found,) = numbers(table(cells))
    assert found["datasets"] == ["bibtex", "reuters", "sider"]
    ranks = found["metrics"]["f1_micro"]["ranks"]
    assert ranks == pytest.approx({"LaMP emb fc": 4 / 3, "MPED fc": 5 / 3, "linear SVM": 3})
    shown = section([found], "ranks.svg")
    assert shown[0] == "## 3 models on 3 data sets"
    assert shown[-1] == "![Critical differences](ranks.svg)"
    assert "| LaMP emb fc | **1.33** | **1.33** | **1.33** | **1.33** | **1.33** |" in shown
    # Mean ranks of 4/3, 5/3 and 3 have a chi-square of 14/3, of at most 6: F = 2 (14/3) / (4/3).
    (line,) = (line for line in shown if line.startswith("- miF1"))
    assert line.startswith("- miF1: F = 7.00, p = 0.0494, critical difference ")
    assert line.endswith("exceeded by 0 of 3 pairs")
    means = "k = 3 models by means over the seeds, ranked on N = 3 data sets"
    assert f"- {means}: bibtex, reuters, sider" in shown
    assert any(line.startswith("- Caution: with N = 3 data sets") for line in shown)
    many = {**found, "datasets": list("abcdefghijk")}
    assert not any(line.startswith("- Caution") for line in section([many], "ranks.svg"))
    assert len(draw([found]).axes) == 5
    both = draw([found, many]).axes
    assert [axes.get_title() for axes in both[:2]] == ["ACC, 3 data sets", "ACC, 11 data sets"]
    assert numbers(table(cells[:18])) == []
    assert section([], "ranks.svg") == ["Too few data sets have cells of the same models."]
