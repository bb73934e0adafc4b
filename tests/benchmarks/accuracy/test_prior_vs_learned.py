from __future__ import annotations

import csv
import json
import os
import re
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from scipy.stats import ttest_1samp
from torch_geometric.loader import DataLoader

from benchmarks import environment
from benchmarks.accuracy import baselines
from benchmarks.accuracy.networks import PooledGNN
from benchmarks.accuracy.papers import DIFFERENT, FIGURES, figures
from benchmarks.accuracy.prior_vs_learned import _cells, _findings, _recovered, as_named, main, run_variant
from benchmarks.accuracy.recovery import co_occurrence_scores, mean_label_attention, recovery
from benchmarks.accuracy.rows import SILENT, encoder_and_graph, in_words, p_in_words, variant
from benchmarks.accuracy.runs import Run, Task, compare, corrected_p_value, summarise
from benchmarks.report.render import cell, table
from tg_mlc.data import Split
from tg_mlc.datasets._records import Records
from tg_mlc.datasets.base import ArrayDataset
from tg_mlc.graphs import LabelGraph, co_occurrence, edgeless, fully_connected, tree
from tg_mlc.recipes import RECIPES


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


def test_one_variant_learns_on_nci(root: Path) -> None:
    task = Task("nci", RECIPES["nci"].load_dataset(root))
    assert int(task.counted.sum()) == 35
    split = task.recipe.split(task.dataset, "random", 0)
    (run,) = run_variant(task, split, seed=0, graph="fc", encoder="emb", options={"max_epochs": 1})
    assert run.model == "emb LaMP fc"
    assert run.density == 1.0
    assert run.metrics["maAUC"] is not None
    assert run.metrics["maAUC"] > 0.6
    of_tree = {f"{score}, tree" for score in ("learned attention", "count", "conditional", "correlation")}
    assert set(run.recovery) == {"learned attention, pr", *of_tree}
    assert all(0 <= values["ROC-AUC"] <= 1 for values in run.recovery.values())


def test_rows_of_lamp_as_published_are_called_so(root: Path) -> None:
    task = Task("nci", RECIPES["nci"].load_dataset(root))
    changed, encoder = as_named(task, "published emb")
    assert encoder == "emb"
    assert changed.recipe == task.recipe.as_published() != task.recipe
    assert as_named(task, "fmp") == (task, "fmp")
    assert encoder_and_graph(variant("published emb", "fc")) == ("published emb", "fc")


def runs(values: dict[str, list[float]]) -> list[Run]:
    return [
        Run(model, seed, "hash", 1.0, {"maAUC": value, "maF1": value}, [], test=f"rows {seed}")
        for model, of_seed in values.items()
        for seed, value in enumerate(of_seed)
    ]


def test_what_a_seed_leaves_undefined_is_no_number() -> None:
    summary = summarise([Run("emb LaMP el", 0, "hash", 1.0, {"maAUC": None, "maF1": 0.5}, []) for _ in range(2)])
    assert summary["metrics"] == {"maAUC": {"mean": None, "sd": None}, "maF1": {"mean": 0.5, "sd": 0.0}}
    assert cell(summary["metrics"]["maAUC"]) == ""
    json.dumps(summary, allow_nan=False)


def test_only_recovery_of_all_seeds_is_summarised() -> None:
    rows = runs({"emb LaMP fc": [0.6, 0.7]})
    for row, graphs in zip(rows, (("wordnet", "pr"), ("pr",)), strict=True):
        row.recovery = {f"learned attention, {graph}": {"ROC-AUC": row.metrics["maAUC"]} for graph in graphs}
    expected = {"learned attention, pr": {"ROC-AUC": pytest.approx(0.65)}}
    assert summarise(rows)["recovery"] == summarise(rows[::-1])["recovery"] == expected


def test_one_seed_has_no_spread_in_what_is_printed() -> None:
    rows = runs({"emb LaMP el": [0.6, 0.7]})
    rows[1].metrics["maF1"] = None
    assert _cells(summarise(rows[:1])["metrics"]).split() == ["0.6000", "0.6000"]
    assert _cells(summarise(rows)["metrics"]).split() == ["0.6500±0.0707"]


def test_summary_and_paired_test() -> None:
    rows = runs({"emb LaMP el": [0.60, 0.70, 0.65], "emb LaMP fc": [0.62, 0.73, 0.67], "random forest": [0.5] * 3})
    summary = summarise([run for run in rows if run.model == "emb LaMP el"])
    assert summary["metrics"]["maAUC"]["mean"] == pytest.approx(0.65)
    assert summary["metrics"]["maAUC"]["sd"] == pytest.approx(0.05)
    tests = {test["metric"]: test for test in compare(rows, "emb", "fc")}
    assert set(tests) == {"maAUC", "maF1"}
    test = tests["maAUC"]
    assert test["test"] == "corrected paired t-test"
    assert test["mean_difference"] == pytest.approx(0.07 / 3)
    assert test["p"] == pytest.approx(corrected_p_value(np.array([0.02, 0.03, 0.02])))
    assert compare(rows, "fmp", "fc") == []


def test_rows_with_messages_are_tested_against_what_they_have_to_beat() -> None:
    rows = runs({"random forest": [0.6, 0.7, 0.6], SILENT: [0.6, 0.7, 0.65], "fmp LaMP el": [0.61, 0.73, 0.64]})
    tests = [test for test in _findings(rows, {})["tests"] if test["metric"] == "maAUC"]
    assert [(test["row"], test["against"]) for test in tests] == [
        ("fmp LaMP el", "random forest"),
        ("fmp LaMP el", SILENT),
    ]
    assert tests[1]["mean_difference"] == pytest.approx(0.01)


def test_p_value_is_corrected_for_overlapping_splits() -> None:
    difference = np.array([0.01, 0.03, 0.02, 0.00, 0.04])
    plain, corrected = ttest_1samp(difference, 0).pvalue, corrected_p_value(difference)
    assert corrected > plain
    assert corrected_p_value(difference, test_share=0.0) == pytest.approx(plain)
    assert corrected_p_value(np.zeros(5)) == 1.0


def test_the_same_difference_for_all_seeds_has_no_p_value() -> None:
    same = np.array([0.3, 0.2, 0.1]) + 0.1 - np.array([0.3, 0.2, 0.1])
    assert 0 < same.std() < 1e-12  # from rounding alone
    assert corrected_p_value(same) is None
    assert "undefined" in p_in_words(None)


def test_seeds_that_share_a_split_need_no_correction() -> None:
    rows = runs({"emb LaMP el": [0.60, 0.70, 0.65], "emb LaMP fc": [0.62, 0.73, 0.67]})
    for row in rows:
        row.test = "the same"
    test = compare(rows, "emb", "fc")[0]
    assert test["test"] == "paired t-test"
    assert test["p"] == pytest.approx(ttest_1samp([0.02, 0.03, 0.02], 0).pvalue)


def test_figures_of_the_papers() -> None:
    bibtex = figures("bibtex")
    assert bibtex["arXiv:1904.08049, FMP + LaMP_fc"]["ebF1"] == 0.445
    best = bibtex["best of the papers' message passing"]
    assert (best["ebF1"], best["miF1"], best["maF1"], best["ACC"]) == (0.447, 0.473, 0.376, 0.197)
    assert figures("delicious")["best of the papers' message passing"]["ACC"] < 0.02  # not those of the misprint
    assert figures("emotions") == {}
    assert figures("rcv1")["best of the papers' message passing (34 times the training samples)"]["ACC"] > 0.5


def test_every_data_set_of_the_papers_has_a_recipe_or_no_files() -> None:
    with FIGURES.open(newline="") as file:
        names = {row["dataset"] for row in csv.DictReader(file)}
    assert names - set(RECIPES) == {"tfbs"}
    assert set(DIFFERENT) < names
    assert figures("nuswide")


def test_a_graph_or_a_data_set_that_is_not_there(root: Path) -> None:
    with pytest.raises(SystemExit, match="--dataset to be one of sider, tox21"):
        main(dataset="nothing")
    with pytest.raises(SystemExit, match="--split of bibtex to be one of official"):
        main(dataset="bibtex", split="random")
    with pytest.raises(SystemExit, match="'--graphs of nci' to be some of el, fc, learned, pr, tree"):
        main(dataset="nci", graphs="el,wordnet")
    recipe = RECIPES["planted-50"]
    dataset = recipe.load_dataset(root)
    with pytest.raises(ValueError, match=r"'el', 'fc', 'pr', 'planted'"):
        recipe.label_graph("tree", dataset, recipe.split(dataset, "official", 0))


def test_recovery_of_a_known_graph() -> None:
    truth = tree([("b", "a"), ("c", "a")], ["a", "b", "c", "d"])
    joined = torch.zeros(4, 4)
    joined[truth.edge_index[0], truth.edge_index[1]] = 1
    perfect, reversed_ = recovery(joined, truth), recovery(-joined, truth)
    assert (perfect["ROC-AUC"], perfect["average precision"]) == (1.0, 1.0)
    assert reversed_["ROC-AUC"] == 0.0
    assert perfect["share of pairs joined"] == pytest.approx(2 / 6)


def test_a_graph_that_joins_all_pairs_cannot_be_recovered() -> None:
    found = recovery(torch.rand(4, 4), fully_connected(4))
    assert found == {"ROC-AUC": None, "average precision": None, "share of pairs joined": 1.0}
    run = Run("emb LaMP fc", 0, "hash", 1.0, {"maF1": 0.5}, [], recovery={"learned attention, pr": found})
    recovered = summarise([run, run])["recovery"]["learned attention, pr"]
    assert in_words(recovered) == "ROC-AUC undefined, average precision undefined, share of pairs joined 1.000"


def test_co_occurrence_scores() -> None:
    y = torch.tensor([[1, 1, 0], [1, 1, 0], [0, 1, 1.0]])
    assert co_occurrence_scores(y, "count").tolist() == [[2, 2, 0], [2, 3, 1], [0, 1, 1]]
    assert co_occurrence_scores(y, "conditional")[1].tolist() == [1, 1, 1]  # the second label, given each
    correlation = co_occurrence_scores(y, "correlation")
    assert correlation[0, 2].item() == pytest.approx(-1)
    assert correlation[1].abs().sum() == 0  # never absent, so undefined


@pytest.mark.parametrize("weight", ["count", "conditional", "correlation"])
@pytest.mark.parametrize("unknown", [0.0, 0.3])
def test_co_occurrence_scores_are_those_of_the_library(weight: Any, unknown: float) -> None:
    generator = torch.Generator().manual_seed(0)
    y = (torch.rand(60, 8, generator=generator) < 0.2).float()
    y[torch.rand(60, 8, generator=generator) < unknown] = torch.nan
    graph, scores = co_occurrence(y, weight=weight), co_occurrence_scores(y, weight)
    assert graph.num_edges < 64
    torch.testing.assert_close(scores[graph.edge_index[1], graph.edge_index[0]], graph.edge_weight)
    never = torch.ones(8, 8, dtype=torch.bool)
    never[graph.edge_index[1], graph.edge_index[0]] = False
    assert (scores[never] < 0).all() if weight == "correlation" else (scores[never] == 0).all()


def test_correlation_is_that_of_pairs_in_which_both_are_known() -> None:
    y = torch.tensor([[1, 0], [0, 1], [0, 0], [1, torch.nan], [torch.nan, 1]])
    torch.testing.assert_close(co_occurrence_scores(y, "correlation")[0, 1], torch.corrcoef(y[:3].t())[0, 1])


def test_statistics_are_compared_with_a_tree_where_labels_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    y = torch.tensor([[1, 1, 0], [1, 1, 1], [0, torch.nan, 1], [0, 0, 0]])
    truth = tree([("b", "a")], ["a", "b", "c"])
    recipe = SimpleNamespace(graphs={"tree": truth}, label_graph=lambda *args: truth)
    task = SimpleNamespace(dataset=SimpleNamespace(y=y), recipe=recipe, counted=torch.ones(3, dtype=torch.bool))
    result = SimpleNamespace(module=SimpleNamespace(model=None))
    monkeypatch.setattr("benchmarks.accuracy.prior_vs_learned.mean_label_attention", lambda *args: torch.zeros(3, 3))
    split = SimpleNamespace(train=torch.arange(4))
    found = _recovered(cast(Any, task), cast(Any, split), cast(Any, result), cast(Any, NoBatches()), ["tree"])
    assert {key: values["ROC-AUC"] for key, values in found.items()} == {
        "learned attention, tree": 0.5,
        "count, tree": 1.0,
        "conditional, tree": 1.0,
        "correlation, tree": 1.0,
    }


class NoBatches:
    def val_dataloader(self) -> list[Any]:
        return []


def test_left_out_labels_do_not_count_in_recovery() -> None:
    truth = tree([("b", "a"), ("d", "c")], ["a", "b", "c", "d"])
    scores = torch.zeros(4, 4)
    scores[0, 1] = scores[1, 0] = 1.0
    assert recovery(scores, truth)["ROC-AUC"] < 1
    assert recovery(scores, truth, torch.tensor([True, True, True, False]))["ROC-AUC"] == 1.0


class OneStep(torch.nn.Module):
    """Attends along the label graph with weights that are known."""

    def __init__(self, graph: LabelGraph) -> None:
        super().__init__()
        from tg_mlc.models import LaMP
        from tg_mlc.nn.encoders import VectorEncoder

        self.lamp = LaMP(VectorEncoder(3, 8), graph, "emb", num_steps=1)

    def forward(self, batch, **kwargs):
        return self.lamp(batch, **kwargs)


@pytest.mark.parametrize("graph", [edgeless(4), fully_connected(4)], ids=["edgeless", "complete"])
def test_mean_attention_is_a_distribution_along_the_graph(graph: LabelGraph) -> None:
    from torch_geometric.data import Data

    loader = DataLoader([Data(x=torch.randn(1, 3)) for _ in range(5)], batch_size=2)
    attention = mean_label_attention(OneStep(graph).eval(), loader)
    torch.testing.assert_close(attention.sum(dim=1), torch.ones(4))
    if graph.num_edges == 4:
        torch.testing.assert_close(attention, torch.eye(4))


def test_planted_graphs_end_to_end(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "RESULTS", tmp_path)
    graphs = "el,fc,learned,planted"
    main(dataset="planted-50", seeds=2, graphs=graphs, encoders="emb", root=root, max_epochs=1)
    result = json.loads((tmp_path / "prior_vs_learned-planted-50-official.json").read_text())
    rows = result["summary"]
    for metric in ("maAUC", "ACC", "maF1"):
        assert rows["best possible"]["metrics"][metric] == {"mean": 1.0, "sd": 0.0}
    assert 0.8 < rows["best without neighbours"]["metrics"]["maAUC"]["mean"] < 0.9
    assert {run["seed"] for run in result["runs"] if run["model"] == "label frequency"} == {10, 11}
    assert rows["emb LaMP learned"]["density"] == pytest.approx(7 / 24)
    assert "learned attention, planted" in rows["emb LaMP fc"]["recovery"]
    assert {test["test"] for test in result["tests"]} == {"paired t-test"}
    assert "samples drawn anew for every seed" in table(result)
    printed = capsys.readouterr().out
    assert "a threshold per label" in printed
    assert "thresholds by frequency" in printed
    assert "likeliest known label set" in printed
    assert "by frequency or label set" in printed
    assert "thresholds by seed: ACC 0." in printed


def test_decisions_come_from_validation_and_training_samples() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random((300, 2))
    # The best threshold is 0.3 for validation samples; for test samples, which all have both labels, it is 0.
    y = (scores > 0.3).astype(np.float32)
    y[:100], y[200:] = np.eye(2)[rng.integers(0, 2, 100)], 1.0
    samples = ArrayDataset(Records(np.zeros((300, 1), dtype=np.float32), y, ["a", "b"]).to_samples())
    split = Split(*torch.arange(300).split(100), "by hand")
    task = Task("emotions", samples, RECIPES["emotions"])
    run = task.run("row", split, 0, 0.0, scores[100:200], scores[200:])
    assert 0.25 <= run.thresholds["miF1"] <= 0.35
    expected = 2 * (recall := float((scores[200:] > 0.3).mean())) / (1 + recall)
    for decided in (run.metrics, run.per_label, run.by_frequency):
        assert decided["miF1"] == pytest.approx(expected, abs=0.05)
    # No training sample has both labels, nor have all validation samples.
    assert run.by_label_set["ACC"] == 0
    assert run.preferred == {name: run.by_frequency[name] for name in run.preferred}


def test_label_sets_decide_where_validation_samples_prefer_them() -> None:
    rng = np.random.default_rng(0)
    y = np.eye(4, dtype=np.float32)[rng.integers(0, 4, 300)]
    scores = np.clip(y * 0.2 + 0.5 * rng.random((300, 1)) + 0.1 * rng.random((300, 4)), 0.01, 0.99)
    samples = ArrayDataset(Records(np.zeros((300, 1), dtype=np.float32), y, list("abcd")).to_samples())
    split = Split(*torch.arange(300).split(100), "by hand")
    run = Task("emotions", samples, RECIPES["emotions"]).run("row", split, 0, 0.0, scores[100:200], scores[200:])
    # Only the highest score of a sample tells, not how high it is.
    assert run.by_label_set["ACC"] == 1
    assert run.by_frequency["ACC"] < 0.9
    assert run.preferred["ACC"] == 1


def test_the_learned_graph_is_that_of_a_trained_model(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task("planted-50", RECIPES["planted-50"].load_dataset(root))
    split = task.recipe.split(task.dataset, "official", 0)
    trained, asked = [], []

    def train(*args: Any) -> Any:
        trained.append(Task.train(task, *args))
        return trained[-1]

    def learn(model: Any, *args: Any, **kwargs: Any) -> LabelGraph:
        asked.append(model)
        return edgeless(task.dataset.label_names)

    monkeypatch.setattr(task, "train", train)
    monkeypatch.setattr("benchmarks.accuracy.prior_vs_learned.learned", learn)
    run_variant(task, split, 0, "learned", "emb", {"max_epochs": 1})
    assert len(trained) == 2
    assert [id(model) for model in asked] == [id(trained[0][0].module.model)]


def test_tables_end_to_end(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (Path(os.environ.get("TG_MLC_DATA", "")) / "emotions" / "raw").is_dir():
        pytest.skip("TG_MLC_DATA does not name a folder with emotions/raw")
    monkeypatch.setattr(environment, "RESULTS", tmp_path)
    main(dataset="emotions", seeds=1, graphs="el", encoders="emb", root=root, max_epochs=5)
    result = json.loads((tmp_path / "prior_vs_learned-emotions-official.json").read_text())
    rows = result["summary"]
    rivals = ["linear SVM, tuned", "kernel ridge regression, tuned", "logistic regression, tuned"]
    assert list(rows) == ["label frequency", *rivals, "emb LaMP el"]
    assert all(rows[rival]["metrics"]["maAUC"]["mean"] > 0.75 for rival in rivals)
    assert len({rows[rival]["metrics"]["maAUC"]["mean"] for rival in rivals}) == len(rivals)
    assert rows["emb LaMP el"]["metrics"]["maAUC"]["mean"] > 0.7
    # Six emotions make 27 sets, of which nearly all are known.
    svm = rows["linear SVM, tuned"]
    assert svm["by_label_set"]["ACC"]["mean"] > svm["metrics"]["ACC"]["mean"]
    assert svm["by_frequency"]["maF1"]["mean"] > 0.5
    assert set(rows["emb LaMP el"]["thresholds"]) == {"ACC", "HA", "ebF1", "miF1", "maF1"}


def test_models_as_published_alone_replace_no_other_table(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "RESULTS", tmp_path)
    main(dataset="planted-50", seeds=1, graphs="el", encoders="published emb", root=root, max_epochs=1)
    (written,) = tmp_path.iterdir()
    assert written.name == "prior_vs_learned-planted-50-official-published.json"
    result = json.loads(written.read_text())
    assert result["published"]["model"] == {**result["recipe"]["model"], **RECIPES["planted-50"].published["model"]}
    assert list(result["summary"])[-1] == "published emb LaMP el"
    assert "| published emb LaMP el |" in table(result)


class Few(list[SimpleNamespace]):
    """Five samples with one label."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(SimpleNamespace(x=torch.tensor([0, 1, 2, 3, 0, 1, 2, 3])) for _ in range(5))
        self.y = torch.zeros(5, 1)
        self.__dict__.update(attributes)


@pytest.mark.parametrize(
    ("name", "dataset", "suffix", "num_classifiers"),
    [
        ("binding-sites", Few(), " on words of DNA", 2),
        ("planted-50", Few(), " on all components", 2),
        ("sider", Few(smiles=["C", "CC", "CO", "N", "O"]), " on fingerprints", 2),
        ("bibtex", Few(classifiers={}), "", 1),
    ],
)
def test_linear_rows_minimise_the_loss_of_their_name(
    name: str, dataset: Few, suffix: str, num_classifiers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(x: Any, y: torch.Tensor, split: Split, loss: str = "hinge") -> None:
        raise RuntimeError(f"{loss} loss on {x.shape}")

    monkeypatch.setattr(baselines, "tuned_linear", fit)
    monkeypatch.setattr(baselines, "inputs_of", lambda dataset: np.zeros((5, 8)))
    split = Split(torch.arange(3), torch.tensor([3]), torch.tensor([4]), "official")
    losses = {f"linear SVM{suffix}, tuned": "hinge", f"logistic regression{suffix}, tuned": "logistic"}
    rows = dict(islice(baselines._rows(Task(name, cast(Any, dataset)), split, 0, {}), 1 + num_classifiers))
    assert list(rows) == ["label frequency", *list(losses)[-num_classifiers:]]
    for row in list(losses)[-num_classifiers:]:
        with pytest.raises(RuntimeError, match=rf"{losses[row]} loss on \(5, "):
            rows[row]()


@pytest.fixture
def emotions(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Trains one row, and returns its result file."""
    if not (Path(os.environ.get("TG_MLC_DATA", "")) / "emotions" / "raw").is_dir():
        pytest.skip("TG_MLC_DATA does not name a folder with emotions/raw")
    monkeypatch.setattr(environment, "RESULTS", tmp_path)
    main(dataset="emotions", seeds=2, graphs="fc", encoders="emb", root=root, max_epochs=1)
    return tmp_path / "prior_vs_learned-emotions-official.json"


def test_a_comparison_makes_only_the_rows_it_has_not(
    emotions: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = json.loads(emotions.read_text())["runs"]
    monkeypatch.setattr(baselines, "_frequency", lambda *args: pytest.fail("made again"))
    main(dataset="emotions", seeds=2, graphs="fc,el", encoders="emb", root=root, max_epochs=1, resume=True)
    result = json.loads(emotions.read_text())
    assert result["runs"][: len(before)] == before
    assert [(run["model"], run["seed"]) for run in result["runs"][len(before) :]] == [
        ("emb LaMP el", 10),
        ("emb LaMP el", 11),
    ]
    assert {(test["row"], test["against"]) for test in result["tests"]} == {("emb fc", "el")}
    main(dataset="emotions", seeds=1, graphs="fc", encoders="emb", root=root, max_epochs=1, resume=True)
    result = json.loads(emotions.read_text())
    assert {run["seed"] for run in result["runs"]} == set(result["seeds"]) == {10}


def test_a_comparison_that_was_broken_off_goes_on(emotions: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, broken_off = emotions.read_text(), emotions.with_suffix(".part")

    def run_but_pr(*args: Any) -> list[Run]:
        if "pr" in args:
            raise RuntimeError("broken off")
        return run_variant(*args)

    with monkeypatch.context() as patch:
        patch.setattr("benchmarks.accuracy.prior_vs_learned.run_variant", run_but_pr)
        with pytest.raises(RuntimeError, match="broken off"):
            main(dataset="emotions", seeds=2, graphs="el,pr", encoders="emb", root=root, max_epochs=1)
    assert emotions.read_text() == before
    kept = json.loads(broken_off.read_text())["runs"]
    assert {run["model"] for run in kept} > {"label frequency", "emb LaMP el"}
    main(dataset="emotions", seeds=2, graphs="el,pr", encoders="emb", root=root, max_epochs=1, resume=True)
    result = json.loads(emotions.read_text())
    assert result["runs"][: len(kept)] == kept
    assert [run["model"] for run in result["runs"][len(kept) :]] == ["emb LaMP pr"] * 2
    assert not broken_off.exists()


def test_a_classifier_that_is_new_is_added(emotions: Path, root: Path) -> None:
    result = json.loads(emotions.read_text())
    kept = [run for run in result["runs"] if run["model"] != "logistic regression, tuned"]
    assert len(kept) < len(result["runs"])
    emotions.write_text(json.dumps({**result, "runs": kept}))
    main(dataset="emotions", seeds=2, graphs="fc", encoders="emb", root=root, max_epochs=1, resume=True)
    runs = json.loads(emotions.read_text())["runs"]
    assert runs[: len(kept)] == kept
    assert [(run["model"], run["seed"]) for run in runs[len(kept) :]] == [("logistic regression, tuned", 10)]


def test_a_row_that_was_not_compared_with_a_graph_is_made_again(
    emotions: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baselines, "_frequency", lambda *args: pytest.fail("made again"))
    main(dataset="emotions", seeds=2, graphs="correlation", encoders="emb", root=root, max_epochs=1, resume=True)
    assert "learned attention, correlation" not in recovered(emotions)
    main(dataset="emotions", seeds=2, graphs="fc,correlation", encoders="emb", root=root, max_epochs=1, resume=True)
    assert recovered(emotions) == {"learned attention, pr", "learned attention, correlation"}


def recovered(file: Path) -> set[str]:
    return set(json.loads(file.read_text())["summary"]["emb LaMP fc"]["recovery"])


def test_rows_that_do_not_say_what_they_were_tested_on_are_not_kept(emotions: Path, root: Path) -> None:
    emotions.write_text(re.sub(r'"test": "[0-9a-f]{64}"', '"test": ""', emotions.read_text()))
    with pytest.raises(SystemExit, match="what every row was tested on"):
        main(dataset="emotions", seeds=2, graphs="el", encoders="emb", root=root, max_epochs=1, resume=True)


def test_encoders_that_models_do_not_have_are_named_before_training(root: Path, emotions: Path) -> None:
    with pytest.raises(SystemExit, match=r"--encoders that models of emotions have \(got vectors\)"):
        main(dataset="emotions", seeds=1, graphs="el", encoders="emb,vectors", root=root, save=False)


def test_rows_with_other_settings_are_not_kept(emotions: Path, root: Path) -> None:
    before = emotions.read_bytes()
    with pytest.raises(SystemExit, match="have the same recipe, as --resume keeps its rows"):
        main(dataset="emotions", seeds=2, graphs="el", encoders="emb", root=root, max_epochs=2, resume=True)
    assert emotions.read_bytes() == before


def test_the_rival_on_atoms_runs(root: Path) -> None:
    molecules = RECIPES["nci"].load_dataset(root)
    batch = next(iter(DataLoader(molecules[:4], batch_size=4)))
    assert PooledGNN(molecules.num_labels)(batch).shape == (4, 52)


@pytest.mark.slow
def test_end_to_end_writes_a_file_that_renders(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "RESULTS", tmp_path)
    monkeypatch.setattr("benchmarks.accuracy.prior_vs_learned.rivals", lambda *args: [])
    main(dataset="nci", seeds=2, graphs="el,fc", encoders="emb", root=root, max_epochs=1)
    result = json.loads((tmp_path / "prior_vs_learned-nci-random.json").read_text())
    assert result["seeds"] == [10, 11]
    assert len(result["runs"]) == 4
    assert result["environment"]["versions"]["torch"] == torch.__version__
    assert "emb fc against el, maAUC" in table(result)
    assert "paired t-test" in capsys.readouterr().out
