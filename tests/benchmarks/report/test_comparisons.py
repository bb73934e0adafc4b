import json
from dataclasses import replace

from benchmarks.accuracy.papers import BEST
from benchmarks.accuracy.runs import Row, Run, recorded
from benchmarks.report import comparisons
from benchmarks.report.comparisons import (
    MOST_ROWS,
    PLANTED,
    RANKED,
    Comparison,
    changed_settings,
    compared,
    full,
    short,
)
from benchmarks.report.writing import Picture
from tg_mlc.papers.recipes import RECIPES

METRICS = ("subset_accuracy", "hamming_accuracy", "f1_samples", "f1_micro", "f1_macro")
METRICS += ("roc_auc_macro",)
SVM = Row("linear SVM, tuned")
EDGELESS, COMPLETE = (Row("LaMP", False, graph, "best") for graph in ("edgeless", "complete"))
PUBLISHED = replace(COMPLETE, settings="published")
DECISIONS = ("per_label", "by_frequency", "by_label_set", "preferred")


def write(folder, name, values, seeds=2, **changes):
    """Writes a result file. All metrics of a row are equal, and rise by 0.1 with every seed."""
    runs = []
    for row, value in values.items():
        fields = {key: dict.fromkeys(METRICS, value) for key in DECISIONS}
        fields |= {"thresholds": {"subset_accuracy": 0.25}, **changes.get(row.title, {})}
        fields["density"] = None if row.graph is None else 0.25
        for seed in range(seeds):
            metrics = dict.fromkeys(METRICS, value + 0.1 * seed)
            runs.append(Run(row, seed, "hash", 3.2, metrics, ["rare"], **fields).to_dict())
    recipe = json.loads(json.dumps(recorded(RECIPES["bibtex"])))
    content = {
        "dataset": {"name": "bibtex", "num_samples": 9, "counted_labels": 2, "sha256": "0123456"},
        "split": "official",
        "seeds": list(range(seeds)),
        "recipes": {"best": recipe, "published": recipe},
        "environment": {"processor": "CPU", "versions": {"torch": "2", "torch-geometric": "3"}},
        "runs": runs,
    }
    (folder / f"prior_vs_learned-{name}.json").write_text(json.dumps(content))


def test_best_and_published_settings_share_a_table_with_the_best_in_bold(results):
    write(results, "bibtex-official", {SVM: 0.4, EDGELESS: 0.5, COMPLETE: 0.7})
    write(results, "bibtex-official-published", {SVM: 0.1, PUBLISHED: 0.6}, seeds=1)
    assert compared() == ["bibtex-official"]
    lines = short(Comparison.load("bibtex-official"))
    spread = " ± 0.071 |"
    assert lines[2:6] == [
        "| linear SVM, tuned |  |  |" + f" 0.450{spread}" * 6 + " 3 |",
        "| LaMP | no | edgeless (0.25) |" + f" 0.550{spread}" * 6 + " 3 |",
        f"| LaMP | no | complete (0.25) | **0.750**{spread} 0.750{spread}"
        + f" **0.750**{spread}" * 4
        + " 3 |",
        "| LaMP, as published | no | complete (0.25) |" + " 0.600 |" * 6 + " 3 |",
    ]
    assert lines[6].startswith(f"| {BEST} |  |  | 0.197 | **0.988** |")
    official = "the official split, the same for all seeds"
    assert lines[8].startswith(f"- {official}, seeds 0 to 1; mean ± standard deviation")
    assert lines[9].startswith(f"- as published: {official}, seed 0; 9 samples, 2 labels")


def test_values_shared_by_most_rows_are_not_bold(results):
    write(results, "bibtex-official", {SVM: 0.9, EDGELESS: 0.9, COMPLETE: 0.9})
    assert "**0.950**" not in "\n".join(short(Comparison.load("bibtex-official")))


def test_metrics_undefined_for_a_seed_are_empty(results):
    write(results, "bibtex-official", {SVM: 0.4})
    comparison = Comparison.load("bibtex-official")
    comparison.runs.loc[1, "metrics.roc_auc_macro"] = None
    assert short(comparison)[2].endswith("| **0.450** ± 0.071 |  | 3 |")


def test_short_tables_omit_unusual_graphs_first(results):
    unusual = [replace(COMPLETE, graph=f"g{i}") for i in range(MOST_ROWS)]
    write(results, "bibtex-official", dict.fromkeys([*unusual, SVM, EDGELESS, COMPLETE], 0.5))
    lines = short(Comparison.load("bibtex-official"))
    lines = [line for line in lines if line.startswith(("| LaMP", "| linear"))]
    assert len(lines) == MOST_ROWS
    graphs = ["g8 (0.25)", "", "edgeless (0.25)", "complete (0.25)"]
    assert [line.split(" | ")[2] for line in lines[-4:]] == graphs


def test_a_full_page_contains_all_measurements(results):
    recovered = {"learned attention, prior": {"ROC-AUC": None, "average precision": 0.5}}
    rows = {SVM: 0.4, EDGELESS: 0.5, COMPLETE: 0.7}
    write(results, "bibtex-official", rows, **{"LaMP complete": {"recovery": recovered}})
    text = "\n".join(full(Comparison.load("bibtex-official")))
    assert "| *a threshold per label* |  |  | 0.400 ± 0.000 |" in text
    assert "| arXiv:1904.08049, Emb + LaMP_el |  |  |" in text
    # The difference is the same for both seeds up to rounding.
    test = "macro ROC-AUC | +0.2000 | 0.0000 | paired t-test | undefined"
    assert f"| LaMP complete | LaMP edgeless | {test}" in text
    ranked = "'prior' ranked by learned attention (LaMP complete)"
    assert f"- Pairs of {ranked}: ROC-AUC undefined, average precision 0.500" in text
    assert "- linear SVM, tuned: subset accuracy 0.25/0.25" in text
    assert "left out of its ROC-AUC: rare" in text
    assert "Other best settings" not in text


def test_settings_that_differ_from_the_current_recipe_are_named(results):
    write(results, "bibtex-official", {SVM: 0.5, COMPLETE: 0.5})
    (result,) = Comparison.load("bibtex-official").results
    assert list(changed_settings(result)) == []
    result["recipes"]["best"]["model"]["channels"] = 3
    del result["recipes"]["best"]["module"]["lr"]
    names = "model.channels, module.lr"
    expected = [f"Other best settings than in today's recipe, or not recorded: {names}"]
    assert list(changed_settings(result)) == expected
    result["dataset"]["name"] = "of mine"
    assert list(changed_settings(result)) == []


def test_a_picture_is_current_if_its_numbers_are_unchanged(results, tmp_path):
    write(results, "bibtex-official", {Row("label frequency"): 0.1, SVM: 0.4, COMPLETE: 0.7})
    numbers = comparisons.numbers(Comparison.load("bibtex-official"))
    assert list(numbers["rows"]) == ["linear SVM, tuned", "LaMP complete"]
    labels = comparisons.draw(numbers).axes[0].get_yticklabels()
    assert [label.get_text() for label in labels] == list(numbers["rows"])
    picture = Picture(tmp_path / "one.svg", numbers, comparisons.draw)
    assert not picture.is_current()
    picture.write()
    assert picture.is_current()
    assert "LaMP complete" in picture.path.read_text()
    numbers["rows"]["LaMP complete"]["subset_accuracy"]["mean"] = 0.8
    assert not picture.is_current()


def test_planted_graphs_have_every_row_at_every_fraction(results):
    values = {score: {"average precision": 0.9, "share of pairs joined": 0.13} for score in RANKED}
    for percent in (25, 75):
        runs = []
        for index, row in enumerate(PLANTED):
            metrics = {"subset_accuracy": 0.5 + 0.01 * index, "roc_auc_macro": percent / 100}
            runs += [Run(row, seed, "hash", 1.0, metrics, [], recovery=values) for seed in (0, 1)]
        path = results / f"prior_vs_learned-planted-{percent}-official.json"
        path.write_text(json.dumps({"dataset": {}, "runs": [run.to_dict() for run in runs]}))
    numbers = comparisons.planted_numbers()
    left, right = comparisons.draw_planted(numbers).axes
    assert left.get_legend_handles_labels()[1] == [row.title for row in PLANTED]
    assert [list(line.get_xdata()) for line in right.lines] == [[0.25, 0.75]] * 3
    head, _, *lines = comparisons.planted_table(numbers)
    columns = (f"{m}, {p}%" for m in ("subset accuracy", "macro ROC-AUC") for p in (25, 75))
    assert head == f"| model | {' | '.join(columns)} |"
    assert len(lines) == len(PLANTED)
    best = "0.250** ± 0.000 | **0.750** ± 0.000 |"
    assert lines[-1] == f"| label frequency | **0.590** ± 0.000 | **0.590** ± 0.000 | **{best}"
    assert "**" not in lines[0]  # The best possible row is never bold.
