from benchmarks.accuracy.lanet_models import FIGURE_3
from benchmarks.report import lanet
from benchmarks.report.lanet import ALONE, FREQUENCY, MEMORY, PUBLISHED, TIFU

VERSIONS = {"torch": "1", "torch-geometric": "2", "scikit-learn": "3"}
ENVIRONMENT = {"processor": "abacus", "threads": 1, "versions": VERSIONS}


def row(title, *values, **more):
    """Returns one run per value. Metrics lack the last column, as in early cells."""
    run = {"model": title, "split": "abc", "environment": ENVIRONMENT, **more}
    metrics = [dict.fromkeys(lanet.COLUMNS[:-1], value) for value in values]
    return [{**run, "seed": seed, "metrics": scores} for seed, scores in enumerate(metrics)]


def result(*rows, differences=None, data="demand"):
    counts = dict.fromkeys(("entities", "events", "labels", "train", "val", "test"), 1000)
    settings = {"data": data, "min_events": 7, "limits": {}}
    return {
        "environment": ENVIRONMENT,
        "settings": settings,
        "counts": counts,
        "runs": [run for runs_of_row in rows for run in runs_of_row],
        "differences": differences or {},
    }


def test_tables_of_the_paper_begin_with_lanet_and_show_published_figures():
    rows = [row(PUBLISHED, 0.8, 0.9), row("table 3: LANET, no ID", 0.7)]
    rows.append(row("table 4: Time-attention", 0.84))
    lines = lanet.grouped(result(*rows))
    titles = [f"### {group.title}" for group in lanet.GROUPS[:3]]
    assert [line for line in lines if line.startswith("###")] == titles
    text = "\n".join(lines)
    assert "| Label-attention | 2 | **0.8500** ± 0.0707 (paper 0.881) | " in text
    assert "| Time-attention | 1 | 0.8400 (paper 0.837) | " in text
    # Table 5 shows "LANET, no ID" of table 3 again, as "No ID".
    assert "| No ID | 1 | 0.7000 (paper 0.88) | " in text
    assert "(paper" not in "\n".join(lanet.grouped(result(*rows, data="complete_journey")))


def test_missing_columns_are_empty():
    (*_, line) = lanet.everything(result(row(TIFU, 0.5, fitted_by="Trees")))
    assert line.startswith("| TIFU-KNN (Trees) | 1 | **0.5000** |")
    assert line.endswith("| **0.5000** | - |")


def test_figure_3_has_a_line_for_each_panel_with_points():
    cells = [cell.title for cell in FIGURE_3]
    assert lanet.figure_3_numbers(result(row(PUBLISHED, 0.5))) == {}
    rows = row(PUBLISHED, 0.5, 0.7), *(row(title, 0.4) for title in cells)
    numbers = lanet.figure_3_numbers(result(*rows))
    assert list(numbers["window_size"]) == ["1", "2", "3", "5", "8"]
    assert list(numbers["dimension"]) == ["16", "32", "64", "128", "256"]
    left, right = lanet.draw_figure_3(numbers).axes
    assert [label.get_text() for label in left.get_xticklabels()] == list(numbers["window_size"])
    assert right.lines[0].get_ydata()[3] == 0.6


def test_attention_axes_show_label_names():
    axes = lanet.draw_attention(lanet.np.eye(2), ["tea", "jam"]).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["tea", "jam"]


def test_page_compares_lanet_with_other_rows():
    rows = [row(FREQUENCY, 0.5), row(TIFU, 0.6), row(ALONE, 0.68), row(MEMORY, 0.7)]
    lower, equal = [-0.1, -0.2, -0.05], [-0.02, -0.04, 0.01]
    differences = {
        FREQUENCY: {title: {"roc_auc_micro": [0.1, 0.05, 0.2]} for title in (TIFU, ALONE, MEMORY)},
        ALONE: {MEMORY: {"roc_auc_micro": [0.02, -0.01, 0.04]}},
        MEMORY: {
            FREQUENCY: {"roc_auc_micro": lower},
            TIFU: {"roc_auc_micro": lower},
            ALONE: {"roc_auc_micro": equal, "f1_macro": None},
        },
    }
    page = lanet.page({"complete_journey": result(*rows, differences=differences)})
    assert "**simulated**" in page
    assert "2,597 of the test targets" in page
    better = "All 3 other rows are significantly better than label frequency in micro ROC-AUC."
    assert better in page
    unclear = "not significantly different from short: memory alone (+0.0200 (-0.0100 to +0.0400))"
    comparison = "beside all other rows (3), in micro ROC-AUC"
    assert f"{comparison}: significantly better than 2; {unclear}." in page
    assert "memory alone 0.6800, 90% of LANET's gain." in page
    assert "split abc" in page
    assert "abacus" in page


def test_page_lists_rows_better_than_label_frequency():
    differences = {
        FREQUENCY: {
            TIFU: {"roc_auc_micro": [0.01, -0.01, 0.03], "NDCG@10": [0.01, 0.005, 0.02]},
            ALONE: {},
        }
    }
    rows = [row(FREQUENCY, 0.5), row(TIFU, 0.51)]
    page = lanet.page({"groceries": result(*rows, differences=differences, data="groceries")})
    assert "a negative control" in page
    assert "**No row is significantly better than label frequency in micro ROC-AUC.**" in page
    assert "All 1 other rows are significantly better than label frequency in NDCG at 10." in page
    differences[FREQUENCY][ALONE] = {"roc_auc_micro": [0.02, 0.01, 0.03]}
    page = lanet.page({"groceries": result(*rows, differences=differences, data="groceries")})
    some = "Significantly better than label frequency in micro ROC-AUC: short: memory alone"
    assert f"- {some}; no other row is." in page


def test_page_without_results_is_the_introduction():
    assert lanet.page({}) == lanet.INTRO + "\n"
