from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata

from benchmarks.accuracy.cells import Stored
from benchmarks.accuracy.rows import Row
from benchmarks.report.ranks import Ranks, compare, draw, iman_davenport, numbers, rectangles, table
from tests.benchmarks.report.test_papers import stored

#: Table 6 of Demsar 2006: AUC of C4.5 with and without two parameters that are tuned, on 14 data sets. Of the last but
#: one, two are printed as equal, but ranked second and third.
NAMES = ("C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf")
AUC = """
0.763 0.768 0.771 0.798
0.599 0.591 0.590 0.569
0.954 0.971 0.968 0.967
0.628 0.661 0.654 0.657
0.882 0.888 0.886 0.898
0.936 0.931 0.916 0.931
0.661 0.668 0.609 0.685
0.583 0.583 0.563 0.625
0.775 0.838 0.866 0.875
1.000 1.000 1.000 1.000
0.940 0.962 0.965 0.962
0.619 0.666 0.614 0.669
0.972 0.981 0.976 0.975
0.957 0.978 0.946 0.970
"""


def three(row: Row, value: float, dataset: str) -> list[Stored]:
    return [stored(row, seed, value, dataset) for seed in (10, 11, 12)]


@pytest.fixture
def demsar() -> Ranks:
    columns = np.array([line.split() for line in AUC.split("\n") if line], dtype=float).T
    return compare({name: column.tolist() for name, column in zip(NAMES, columns, strict=True)})


def test_the_example_of_demsar_2006(demsar: Ranks) -> None:
    assert demsar.num_datasets == 14
    assert [round(rank, 3) for rank in demsar.mean.values()] == [3.143, 2.0, 2.893, 1.964]
    # Section 3.2.2: 9.28 without the correction for ties, which divides by one minus their share.
    ranks = np.array(list(demsar.mean.values()))
    uncorrected = 12 * 14 / (4 * 5) * ((ranks**2).sum() - 4 * 25 / 4)
    assert uncorrected == pytest.approx(9.28, abs=0.005)
    rows = np.array([line.split() for line in AUC.split("\n") if line], dtype=float)
    sizes = [np.unique(rankdata(row), return_counts=True)[1] for row in rows]
    ties = sum(int((size**3 - size).sum()) for size in sizes) / (14 * 4 * 15)
    chi_square = uncorrected / (1 - ties)
    assert demsar.statistic == pytest.approx(13 * chi_square / (14 * 3 - chi_square))
    assert 0.01 < demsar.p < 0.05
    # Again without the correction for ties, F(3, 39) = 3.69, with a critical value of 2.85 at 5%.
    statistic, p = iman_davenport(9.28, 4, 14)
    assert statistic == pytest.approx(3.69, abs=0.005)
    assert p < 0.05
    critical = 14 * 3 * 2.85 / (13 + 2.85)  # the chi-square from which F is 2.85
    assert iman_davenport(critical, 4, 14)[1] == pytest.approx(0.05, abs=5e-4)
    # Section 3.2.2 again: the critical values 2.569 and 2.291.
    assert demsar.critical_difference(0.05) == pytest.approx(1.25, abs=0.005)
    assert demsar.critical_difference(0.10) == pytest.approx(1.12, abs=0.005)


def test_no_chance_is_left_where_all_data_sets_rank_alike() -> None:
    found = compare({"x": [0.3, 0.6, 0.9], "y": [0.2, 0.5, 0.8], "z": [0.1, 0.4, 0.7]})
    assert found.statistic == np.inf
    assert found.p == 0


def test_bars_join_what_does_not_differ(demsar: Ranks) -> None:
    assert demsar.cliques(0.05) == [["C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5"]]
    # At 10% the two worst differ from the best: 3.143 from both, 2.893 from none.
    assert demsar.cliques(0.10) == [["C4.5+m+cf", "C4.5+m", "C4.5+cf"], ["C4.5+cf", "C4.5"]]


def test_the_models_and_data_sets_of_which_most_cells_are_there() -> None:
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


def test_there_are_enough_data_sets_and_models_for_the_tests() -> None:
    wide = [(data, f"{i}") for data in "AB" for i in range(30)]
    assert rectangles(wide) == []
    assert rectangles([*wide, *(("C", f"{i}") for i in range(4))]) == [(["A", "B", "C"], ["0", "1", "2", "3"])]
    assert rectangles([*wide, *(("C", f"{i}") for i in range(2))]) == []
    long = [(f"{i}", model) for i in range(9) for model in "xy"]
    assert rectangles([*long, *((f"{i}", "z") for i in range(3))]) == [(["0", "1", "2"], ["x", "y", "z"])]


def test_what_is_no_model_of_its_own_or_undefined_is_left_out() -> None:
    rows = [Row("lamp", "emb", "fc"), Row("mped", "fmp", "fc"), Row("linear SVM")]
    places = ("bibtex", "emotions", "reuters", "sider")
    cells = [each for data in places for place, row in enumerate(rows) for each in three(row, 0.1 * place, data)]
    cells += [each for data in places for each in three(Row("mped", "fmp", "fc", change="T=1"), 0.5, data)]
    cells += [stored(Row("ML-kNN"), 10, 0.5, data) for data in places]  # of one seed
    for cell in cells:
        if cell.cell.dataset == "emotions":
            cell.content["run"]["metrics"]["f1_macro"] = None
    (found,) = numbers(cells)
    assert found["datasets"] == ["bibtex", "reuters", "sider"]
    assert list(found["metrics"]["f1_micro"]["ranks"]) == ["LaMP emb fc", "MPED fc", "linear SVM"]


def test_ranks_of_cells() -> None:
    rows = [Row("lamp", "emb", "fc"), Row("mped", "fmp", "fc"), Row("linear SVM")]
    scores = {"bibtex": (0.4, 0.3, 0.2), "sider": (0.5, 0.4, 0.1), "reuters": (0.8, 0.9, 0.7)}
    cells = [
        each
        for data, values in scores.items()
        for row, value in zip(rows, values, strict=True)
        for each in three(row, value, data)
    ]
    (found,) = numbers(cells)
    assert found["datasets"] == ["bibtex", "reuters", "sider"]
    ranks = found["metrics"]["f1_micro"]["ranks"]
    assert ranks == pytest.approx({"LaMP emb fc": 4 / 3, "MPED fc": 5 / 3, "linear SVM": 3})
    shown = table([found], "ranks.svg")
    assert shown[0] == "## 3 models on 3 data sets"
    assert shown[-1] == "![Critical differences](ranks.svg)"
    assert "| LaMP emb fc | **1.33** | **1.33** | **1.33** | **1.33** | **1.33** |" in shown
    # Mean ranks of 4/3, 5/3 and 3 have a chi-square of 14/3, of at most 6: F = 2 (14/3) / (6 - 14/3).
    assert any(line.startswith("- miF1: F = 7.00, p = 0.0494, critical difference ") for line in shown)
    assert any(line.startswith("- miF1: ") and line.endswith("exceeded by 0 of 3 pairs") for line in shown)
    assert "- k = 3 models by means over the seeds, ranked on N = 3 data sets: bibtex, reuters, sider" in shown
    assert any(line.startswith("- Caution: with N = 3 data sets") for line in shown)
    many = {**found, "datasets": list("abcdefghijk")}
    assert not any(line.startswith("- Caution") for line in table([many], "ranks.svg"))
    assert len(draw([found]).axes) == 5
    both = draw([found, many]).axes
    assert [axes.get_title() for axes in both[:2]] == ["ACC, 3 data sets", "ACC, 11 data sets"]
    assert numbers(cells[:18]) == []
    assert table([], "ranks.svg") == ["Too few data sets have cells of the same models."]
