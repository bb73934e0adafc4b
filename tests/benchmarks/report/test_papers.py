from copy import deepcopy
from dataclasses import replace

import pytest

from benchmarks.accuracy.runs import Row
from benchmarks.report import papers
from benchmarks.report.papers import differences, draw_steps, steps, steps_table
from tests.benchmarks.report.cells import seeds_of, stored, table

FC, SVM = Row("lamp", False, "complete"), Row("linear SVM")
MPED, GAML = Row("mped", True, "complete"), Row("gaml", True)


def lines(name, cells, datasets=None):
    return papers.lines(name, table(cells), datasets or [])


def line_of(table_lines, name):
    return next((line for line in table_lines if line.startswith(f"| {name} |")), "")


def test_measured_and_published_figures_share_a_cell():
    cells = [stored(FC, seed, value) for seed, value in ((10, 0.40), (11, 0.42), (12, 0.41))]
    cells += [stored(SVM, 10, 0.3), *(stored(SVM, seed, 0.6, "emotions") for seed in (10, 11, 12))]
    shown = lines("lamp-1", cells)
    datasets = "reuters | bibtex | bookmarks | delicious | rcv1 | tfbs | nuswide | sider | emotions"
    assert shown[0] == f"| model | {datasets} |"
    columns = [line.strip("| ").split(" | ") for line in shown[2:] if "|" in line]
    rows = {columns_of_row[0]: columns_of_row for columns_of_row in columns}
    assert rows["LaMP emb fc"][2] == "**0.410** ± 0.010 (0.427)"
    assert rows["linear SVM"][2] == "0.300"
    assert rows["LaMP fmp pr"][2] == "(**0.447**)"
    assert rows["*Madjarov best-of-12*"][2] == "(0.434)"
    assert "| linear SVM |  | 0.300 |  |  |  |  |  |  | **0.600** ± 0.000 |" in shown
    assert "- d=128 instead of 512, 14 epochs: bibtex (LaMP emb fc)" in shown
    source = "official split, seeds 10, 11, 12; 7395 samples, data sha256 000000000000"
    assert f"- bibtex: {source}" in shown
    assert "- CPU; torch 2, PyG 2" in shown


def test_a_table_shows_all_metrics_of_a_data_set():
    shown = lines("mped-2", [stored(MPED, seed, 0.5) for seed in (10, 11, 12)], ["bibtex"])
    assert "**bibtex**" in shown
    assert not any("reuters" in line for line in shown)
    line = line_of(shown, "MPED fc")
    best = "**0.500** ± 0.000"
    assert line.startswith(f"| MPED fc | {best} (0.178) | {best} (**0.987**) |")
    assert line.endswith("| **0.500** ± 0.000 (**0.483**) |")


def cell_of(model, messages=False, dataset="bibtex", **settings):
    return stored(Row(model, messages, "complete"), 10, 0.5, dataset, **settings)


MPED_SIDER = cell_of("mped", True, "sider", channels=64, decoder_steps=2)
WIDE = cell_of("lamp", channels=512)


@pytest.mark.parametrize(
    ("paper", "cell", "attention", "difference"),
    [
        ("mped2019", MPED_SIDER, "", "T=2 instead of 1"),
        ("lamp2019", WIDE, "", ""),
        ("lamp2019", WIDE, "heads=4, dropout=0.2", ""),
        ("lamp2019", WIDE, "heads=4, dropout=0.1", "dropout 0.1 instead of 0.2"),
        ("lamp2019", WIDE, "heads=8, dropout=0.2", "8 heads instead of 4"),
        ("lamp2019", cell_of("lamp", dataset="delicious", channels=512, dropout=0.1), "", ""),
        (
            "mped2019",
            cell_of("mlp-br", channels=512, dropout=0.1),
            "",
            "dropout 0.1 instead of 0.2",
        ),
        ("mped2019", cell_of("linear-br", channels=None, dropout=0.1), "", ""),
    ],
)
def test_differences_from_a_paper_are_listed(paper, cell, attention, difference):
    cell = deepcopy(cell)
    if attention:
        cell["settings"]["parts"]["LabelToLabelConv"] = f"{attention}, attention_dropout=0.0"
    assert differences(paper, cell) == ", ".join(filter(None, (difference, "14 epochs")))


def test_networks_at_chance_level_are_named():
    rows = {FC: 0.51, Row("spen", False): 0.49, Row("lamp", False, "edgeless"): 0.55, SVM: 0.5}
    cells = [stored(row, seed, value) for row, value in rows.items() for seed in (10, 11)]
    shown = lines("lamp-1", cells)
    assert "- macro ROC-AUC within 0.02 of chance, 0.5: bibtex (LaMP emb fc, SPEN)" in shown


def test_rows_of_a_data_set_count_only_shared_seeds():
    five = seeds_of(FC, {10 + i: 0.1 * i for i in range(5)})
    three = seeds_of(SVM, {11 + i: 0.5 for i in range(3)})
    shown = lines("lamp-1", [*five, *three])
    assert "0.200 ± 0.100 (0.427)" in line_of(shown, "LaMP emb fc")
    assert any("seeds 11, 12, 13;" in line for line in shown)
    # Seeds of an incomplete row do not limit other rows, and the row is named.
    shown = lines("lamp-1", [*five, three[0]])
    assert "**0.200** ± 0.158 (0.427)" in line_of(shown, "LaMP emb fc")
    assert "- fewer seeds: bibtex (linear SVM: 1)" in shown


def test_all_seeds_count_if_the_test_samples_are_the_same():
    five = seeds_of(FC, {10 + i: 0.1 * i for i in range(5)}, drawn=False)
    shown = lines("lamp-1", [*five, *seeds_of(SVM, {11 + i: 0.5 for i in range(3)}, drawn=False)])
    assert "0.200 ± 0.158 (0.427)" in line_of(shown, "LaMP emb fc")
    assert any("seeds 10, 11, 12, 13, 14;" in line for line in shown)


def test_hidden_rows_do_not_affect_the_seeds_of_a_table():
    five = seeds_of(FC, {10 + i: 0.1 * i for i in range(5)})
    hidden = seeds_of(replace(FC, change="T=4"), dict.fromkeys((10, 11, 12), 0.5))
    hidden += seeds_of(MPED, dict.fromkeys((12, 13, 14), 0.5))
    shown = lines("lamp-1", [*five, *hidden])
    assert "**0.200** ± 0.158 (0.427)" in line_of(shown, "LaMP emb fc")


def test_rows_of_other_seeds_are_left_out_and_named():
    rows = {FC: 10, SVM: 20, Row("lamp", False, "edgeless"): 10, GAML: 11}
    cells = (seeds_of(row, dict.fromkeys(range(i, i + 3), 0.5)) for row, i in rows.items())
    shown = lines("lamp-1", [cell for row_cells in cells for cell in row_cells])
    assert "0.500" in line_of(shown, "LaMP emb fc")
    assert "0.500" not in line_of(shown, "linear SVM")
    assert "- left out because they share no seed with other rows: bibtex (linear SVM)" in shown
    # A row that shares two seeds is shown over both and does not limit other rows.
    assert "- fewer seeds: bibtex (GAML: 2)" in shown
    assert any("seeds 10, 11, 12;" in line for line in shown)


def test_a_row_of_few_seeds_is_never_bold():
    many, single = seeds_of(FC, dict.fromkeys((10, 11, 12), 0.4)), stored(SVM, 10, 0.9)
    shown = lines("lamp-1", [*many, single])
    assert "**0.400** ± 0.000" in line_of(shown, "LaMP emb fc")
    assert "| 0.900 |" in line_of(shown, "linear SVM")
    # A row of one seed is not bold either if it ties with the best row.
    assert "| 0.400 |" in line_of(lines("lamp-1", [*many, stored(SVM, 10, 0.4)]), "linear SVM")


def test_other_splits_than_in_the_papers_are_named():
    shown = lines("lamp-1", [stored(FC, 10, 0.5, "bookmarks")])
    assert "- bookmarks: other split than in the papers" in shown


def test_a_row_with_seeds_of_different_settings_is_refused():
    cells = [stored(FC, 10, 0.4), stored(FC, 11, 0.4, channels=64)]
    names = r"lamp-complete-s10' and 'cells/bibtex/lamp-complete-s11'"
    with pytest.raises(ValueError, match=rf"{names}\); make them with --again"):
        lines("lamp-1", cells)


def test_a_table_without_cells_has_only_published_figures():
    shown = lines("lamp-1", [], ["reuters", "bibtex"])
    assert "| LaMP emb fc | (0.896) | (0.427) |" in " ".join(shown)


def test_numbers_of_steps_are_compared():
    step = replace(MPED, change="T=1")
    cells = [stored(MPED, 10, 0.5, decoder_steps=3)]
    cells += [stored(step, 10, 0.4, decoder_steps=1), stored(step, 11, 0.42, decoder_steps=1)]
    means = steps(table([*cells, stored(MPED, 10, 0.8, "reuters", decoder_steps=3)]))
    assert list(means) == ["bibtex"]  # Reuters has only one number of steps.
    assert list(means["bibtex"]) == [1, 3]
    assert "| bibtex | 0.410 ± 0.014 | 0.500 |" in steps_table(means, "steps.svg")
    assert len(draw_steps(means).axes[0].lines) > 0
    # A row with another label dropout has as many steps as the row itself and is left out.
    dropped = stored(replace(MPED, change="label dropout 0.5"), 10, 0.1, decoder_steps=3)
    assert steps(table([*cells, dropped])) == means
    assert steps_table({}, "steps.svg") == ["Not run with several numbers of steps."]
