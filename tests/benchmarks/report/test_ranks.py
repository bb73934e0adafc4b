from dataclasses import replace

import pytest

from benchmarks.accuracy.runs import Row
from benchmarks.report.ranks import draw, numbers, rectangles, section
from tests.benchmarks.report.cells import stored, table

LAMP, MPED, SVM = Row("lamp", False, "complete"), Row("mped", True, "complete"), Row("linear SVM")


def three_seeds(row, value, dataset):
    return [stored(row, seed, value, dataset) for seed in (10, 11, 12)]


def test_rectangles_contain_most_cells_of_models_and_data_sets():
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


def test_rectangles_have_at_least_three_data_sets_and_models():
    wide = [(data, f"{i}") for data in "AB" for i in range(30)]
    assert rectangles(wide) == []
    square = ["A", "B", "C"], ["0", "1", "2", "3"]
    assert rectangles([*wide, *(("C", f"{i}") for i in range(4))]) == [square]
    assert rectangles([*wide, *(("C", f"{i}") for i in range(2))]) == []
    long = [(f"{i}", model) for i in range(9) for model in "xy"]
    square = ["0", "1", "2"], ["x", "y", "z"]
    assert rectangles([*long, *((f"{i}", "z") for i in range(3))]) == [square]


def test_changed_models_and_undefined_metrics_are_left_out():
    one_step = replace(MPED, change="T=1")
    cells = []
    for data in ("bibtex", "emotions", "reuters", "sider"):
        for value, row in ((0.0, LAMP), (0.1, MPED), (0.2, SVM), (0.5, one_step)):
            cells += three_seeds(row, value, data)
        cells.append(stored(Row("ML-kNN"), 10, 0.5, data))  # ML-kNN has one seed.
    for cell in cells:
        if cell["dataset"]["name"] == "emotions":
            cell["run"]["metrics"]["f1_macro"] = None
    (ranking,) = numbers(table(cells))
    assert ranking["datasets"] == ["bibtex", "reuters", "sider"]
    assert list(ranking["metrics"]["f1_micro"]["ranks"]) == ["LaMP emb fc", "MPED fc", "linear SVM"]


def test_the_section_shows_mean_ranks_and_tests():
    scores = {"bibtex": (0.4, 0.3, 0.2), "sider": (0.5, 0.4, 0.1), "reuters": (0.8, 0.9, 0.7)}
    cells = []
    for data, values in scores.items():
        for row, value in zip((LAMP, MPED, SVM), values, strict=True):
            cells += three_seeds(row, value, data)
    (ranking,) = numbers(table(cells))
    assert ranking["datasets"] == ["bibtex", "reuters", "sider"]
    ranks = ranking["metrics"]["f1_micro"]["ranks"]
    assert ranks == pytest.approx({"LaMP emb fc": 4 / 3, "MPED fc": 5 / 3, "linear SVM": 3})
    lines = section([ranking], "ranks.svg")
    assert lines[0] == "## 3 models on 3 data sets"
    assert lines[-1] == "![Critical differences](ranks.svg)"
    assert "| LaMP emb fc | **1.33** | **1.33** | **1.33** | **1.33** | **1.33** |" in lines
    # The ranks 4/3, 5/3 and 3 have a chi-square of 14/3, at most 6: F = 2 (14/3) / (4/3).
    (line,) = (line for line in lines if line.startswith("- miF1"))
    assert line.startswith("- miF1: F = 7.00, p = 0.0494, critical difference ")
    assert line.endswith("exceeded by 0 of 3 pairs")
    means = "k = 3 models by means over the seeds, ranked on N = 3 data sets"
    assert f"- {means}: bibtex, reuters, sider" in lines
    assert any(line.startswith("- Caution: with N = 3 data sets") for line in lines)
    many = {**ranking, "datasets": list("abcdefghijk")}
    assert not any(line.startswith("- Caution") for line in section([many], "ranks.svg"))
    assert len(draw([ranking]).axes) == 5
    both = draw([ranking, many]).axes
    assert [axes.get_title() for axes in both[:2]] == ["ACC, 3 data sets", "ACC, 11 data sets"]
    assert numbers(table(cells[:18])) == []
    assert section([], "ranks.svg") == ["Too few data sets have cells of the same models."]
