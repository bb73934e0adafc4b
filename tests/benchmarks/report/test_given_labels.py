import json

import pytest

from benchmarks.accuracy.given_labels import (
    DEFAULT,
    LOGISTIC,
    PLAIN,
    ROWS,
    SHARES,
    TAKE_GIVEN,
    WITH_MASKS,
)
from benchmarks.accuracy.runs import FREQUENCY
from benchmarks.files import describe_environment
from benchmarks.report import given_labels, render
from benchmarks.report.given_labels import COLORS, draw, numbers, section


def result_of(seeds):
    """Returns a result whose scores rise with the fraction of given labels and with the seed."""
    points = [
        {
            "model": row,
            "share": share,
            "given": given,
            "seed": seed,
            "settings": {"node_messages": True},
            "roc_auc_macro": 0.5 + 0.01 * seed + 0.1 * given * share,
            "average_precision_macro": 0.3 + 0.2 * given * share,
        }
        for seed in seeds
        for row in ROWS
        for share in SHARES
        for given in ((False, True) if row in TAKE_GIVEN and share else (False,))
    ]
    data = {"name": "sider", "num_samples": 9, "num_labels": 4, "counted_labels": 3}
    return {
        "dataset": {**data, "sha256": "0123456789abcdef"},
        "split": "random",
        "seeds": seeds,
        "recipes": {"lamp-given": {"fit": {"max_epochs": 20}}},
        "runs": points,
        "environment": describe_environment(),
    }


def test_the_table_shows_scores_by_the_fraction_of_given_labels():
    lines = section(result_of([0, 1, 2]))
    cells = "0.510 ± 0.010 | 0.520 ± 0.010 | 0.540 ± 0.010 | 0.560 ± 0.010 |"
    assert f"| {WITH_MASKS} | {cells}" in "\n".join(lines)
    assert f"| {FREQUENCY} | 0.510 ± 0.010 | 0.510 ± 0.010 |" in "\n".join(lines)
    half_lines = [line for line in lines if "of the other half" in line]
    assert len(half_lines) == len({*TAKE_GIVEN} & ROWS.keys())
    assert "macro ROC-AUC from 0.510 ± 0.010 to 0.560 ± 0.010 (+0.050, " in half_lines[0]
    assert "macro average precision from 0.300 ± 0.000 to 0.400 ± 0.000 (+0.100, " in half_lines[0]
    assert "LaMP with node messages trained for 20 epochs" in lines[-1]
    assert "3 labels counted, data sha256 0123456789ab" in lines[-1]
    single_seed = "\n".join(section(result_of([0])))
    assert "from 0.500 to 0.550 (+0.050)" in single_seed


def changed(gains):
    """Returns a result. A row exceeds 0.7 by its gain, and by a little more with every seed."""
    result = result_of([0, 1, 2])
    for point in result["runs"]:
        gain = gains.get((point["model"], point["given"]), 0.0)
        point["roc_auc_macro"] = 0.7 + gain * (1 + 0.001 * point["seed"])
    return result


def test_the_conclusion_follows_from_the_results():
    row_gains = {(DEFAULT, True): 0.2, (LOGISTIC, True): 0.1, (WITH_MASKS, True): 0.3}
    text = "\n".join(section(changed(row_gains)))
    assert "of the default changes by +0.200, p < 0.01. It is then, beside its rivals:" in text
    assert f"{LOGISTIC}: above (+0.100, p < 0.01)" in text
    assert f"{WITH_MASKS}: below (-0.100, p < 0.01)" in text
    assert f"{PLAIN}: above (+0.200, p < 0.01)" in text
    equal_text = "\n".join(section(changed({})))
    assert f"{LOGISTIC}: level with (+0.000, p = 1.00, which may be chance)" in equal_text


def test_models_trained_for_fewer_epochs_are_named():
    short, full = result_of([0]), result_of([0])
    short["recipes"]["lamp-given"]["fit"]["max_epochs"] = 4
    page = given_labels.page({"bibtex": short, "sider": full})
    assert "than its recipe says: bibtex 4 of 14." in page
    assert "fewer epochs" not in given_labels.page({"sider": full})


def test_the_picture_has_a_line_for_every_row():
    shown = numbers(result_of([0, 1]))
    assert shown["given"][WITH_MASKS][5] == pytest.approx([0.55, 0.56])
    assert shown["alone"].keys() == {*TAKE_GIVEN} & ROWS.keys()
    axes = draw(shown).axes[0]
    assert axes.get_legend_handles_labels()[1] == list(ROWS)
    assert len(axes.lines) == len(ROWS) + len(shown["alone"])
    assert COLORS.keys() >= ROWS.keys()


def test_repeated_runs_have_a_separate_page():
    run = result_of([0])
    short, repeated = given_labels.divided({"nci": run, "nci-without-lamp": run, "sider": run})
    assert [*short] == ["nci-without-lamp", "sider"]
    assert [*repeated] == ["nci"]
    assert "](../given-labels-nci.svg)" in given_labels.page(repeated, "../")


def test_the_page_is_rendered_with_the_others(results, monkeypatch):
    path = render.DOCS / "results" / "given-labels.md"
    monkeypatch.setattr(render, "pages", list)
    monkeypatch.setattr(render, "ABLATIONS", ())
    monkeypatch.setattr(render, "SPEEDS", ())
    assert path not in render.texts()
    (results / "given_labels-sider.json").write_text(json.dumps(result_of([0, 1])))
    page = render.texts()[path]
    assert page.startswith("# Known labels")
    assert "![sider](given-labels-sider.svg)" in page
    assert page.endswith("\n")
