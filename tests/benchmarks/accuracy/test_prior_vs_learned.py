from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from types import SimpleNamespace

import pytest
import torch

from benchmarks.accuracy import baselines
from benchmarks.accuracy.prior_vs_learned import (
    CHANGES,
    Change,
    _recovered,
    _try_out,
    changes_of,
    main,
    own_graphs,
    run_variant,
    with_graphs,
)
from benchmarks.accuracy.runs import Row, Task, frame
from benchmarks.report.comparisons import Comparison, recovered, short, spreads
from benchmarks.report.statistics import paired_tests
from tg_mlc.data import random_split
from tg_mlc.datasets import Planted
from tg_mlc.graphs import LabelGraph, edgeless, fully_connected, tree
from tg_mlc.models import LaMP
from tg_mlc.nn.encoders import BagEncoder
from tg_mlc.papers.base_scores import PUBLISHED
from tg_mlc.papers.recipes import RECIPES
from tg_mlc.papers.recipes.tables import TABLES
from tg_mlc.training import BinaryObjective, MultiLabelModule


def test_one_variant_learns_on_nci(root, tmp_path):
    recipe = RECIPES["nci"]
    dataset = recipe.load_dataset(root)
    split = recipe.split(dataset, "random", 0)
    task = Task("nci", recipe.prepare(dataset, split))
    assert int(task.counted.sum()) == 35
    (run,) = run_variant(task, split, 0, row("complete"), {"max_epochs": 1})
    assert Row.of(run) == row("complete")
    assert run["density"] == 1.0
    assert run["metrics"]["roc_auc_macro"] > 0.6
    scores = ("learned attention", "count", "conditional", "correlation")
    of_tree = {f"{score}, tree" for score in scores}
    assert set(run["recovery"]) == {"learned attention, prior", *of_tree}
    assert all(0 <= values["ROC-AUC"] <= 1 for values in run["recovery"].values())


def row(graph, settings="best"):
    return Row("LaMP", False, graph, settings)


def test_published_settings_are_those_of_the_recipe_as_published():
    task = Task("bibtex", None)
    assert task.with_settings("published").recipe == task.recipe.as_published() != task.recipe
    assert task.with_settings("best") == task.with_settings(None) == task


def read(path):
    return dict(iter(frame(json.loads(path.read_text())["runs"]).groupby("row", sort=False)))


def test_a_graph_that_is_not_there(root):
    recipe = RECIPES["planted-50"]
    dataset = recipe.load_dataset(root)
    with pytest.raises(ValueError, match=r"'edgeless', 'complete', 'prior', 'planted'"):
        recipe.label_graph("tree", dataset, recipe.split(dataset, "official", 0))


def test_statistics_are_compared_with_a_tree_where_labels_are_unknown(monkeypatch):
    y = torch.tensor([[1, 1, 0], [1, 1, 1], [0, torch.nan, 1], [0, 0, 0]])
    truth = tree([("b", "a")], ["a", "b", "c"])
    recipe = SimpleNamespace(graphs={"tree": truth}, label_graph=lambda *args: truth)
    dataset, counted = SimpleNamespace(y=y), torch.ones(3, dtype=torch.bool)
    task = SimpleNamespace(dataset=dataset, recipe=recipe, counted=counted)
    result = SimpleNamespace(module=SimpleNamespace(model=None))
    attention = "benchmarks.accuracy.prior_vs_learned.mean_label_attention"
    monkeypatch.setattr(attention, lambda *args: torch.zeros(3, 3))
    split = SimpleNamespace(train=torch.arange(4))
    loaders = SimpleNamespace(val_dataloader=list)
    found = _recovered(task, split, result, loaders, ["tree"])
    expected = {"learned attention": 0.5, "count": 1.0, "conditional": 1.0, "correlation": 1.0}
    roc_auc = {key: values["ROC-AUC"] for key, values in found.items()}
    assert roc_auc == {f"{score}, tree": value for score, value in expected.items()}


def test_planted_graphs_end_to_end(root, own_runs, results, few_samples, capsys):
    tracked = results / "prior_vs_learned-planted-50-official.json"
    tracked.write_text(before := json.dumps({"runs": []}))
    compare("edgeless,complete,learned,planted", root, seeds=2)
    assert tracked.read_text() == before
    written = own_runs / tracked.name
    result, rows = json.loads(written.read_text()), read(written)
    for metric in ("roc_auc_macro", "subset_accuracy", "f1_macro"):
        assert spreads(rows[Row("best possible")])[metric] == {"mean": 1.0, "sd": 0.0}
    assert 0.8 < rows[Row("best without neighbours")]["metrics.roc_auc_macro"].mean() < 0.9
    assert {run["seed"] for run in result["runs"] if run["model"] == "label frequency"} == {10, 11}
    assert rows[row("learned")]["density"].mean() == pytest.approx(7 / 24)
    assert "learned attention, planted" in recovered(rows[row("complete")])
    printed = capsys.readouterr().out
    for way in ("a threshold per label", "thresholds by frequency", "likeliest known label set"):
        assert way in printed
    assert "by frequency or label set" in printed
    assert "| LaMP complete | LaMP edgeless | macro ROC-AUC |" in printed
    assert "- LaMP complete: subset accuracy 0." in printed
    written.rename(tracked)
    lines = short(Comparison.load("planted-50-official"))
    assert any("samples drawn anew for every seed" in line for line in lines)


def compare(graphs, root, dataset="planted-50", **options):
    """Trains for an epoch along label graphs."""
    options = {"seeds": 1, "node_messages": "false", "max_epochs": 1, **options}
    main(dataset=dataset, graphs=graphs, root=root, **options)


@pytest.fixture
def few_samples(monkeypatch):
    """Plants labels on as many samples as it takes."""
    monkeypatch.setattr("tg_mlc.papers.recipes.graphs.Planted", partial(Planted, num_samples=400))


@pytest.fixture
def few_baselines(monkeypatch):
    """Leaves out the classifiers, which take long to tune."""
    rows = "benchmarks.accuracy.prior_vs_learned.baselines"
    monkeypatch.setattr(rows, lambda *args: ["label frequency"])


@pytest.mark.usefixtures("few_baselines", "few_samples")
def test_label_graphs_from_files(root, own_runs, tmp_path):
    names = RECIPES["planted-50"].load_dataset(root).label_names
    path = tmp_path / "mine.safetensors"
    tree([(names[1], names[0])], names).save(path)
    graphs = f"edgeless,{path}"
    compare(graphs, root)
    written = own_runs / "prior_vs_learned-planted-50-official.json"
    density = read(written)[row("mine")]["density"].item()
    assert density == LabelGraph.load(path).density
    tree([(names[2], names[0]), (names[3], names[0])], names).save(path)
    compare(graphs, root)
    assert read(written)[row("mine")]["density"].item() == LabelGraph.load(path).density > density


def test_files_that_are_no_label_graph_of_the_data_set(root, tmp_path):
    with pytest.raises(SystemExit, match=r"got no 'nowhere\.safetensors'"):
        own_graphs("edgeless,nowhere.safetensors", ["edgeless"])
    path = tmp_path / "prior.safetensors"
    edgeless(["a", "b"]).save(path)
    with pytest.raises(SystemExit, match="a name of its own"):
        own_graphs(f"edgeless,{path}", ["edgeless", "prior"])
    recipe = RECIPES["planted-50"]
    dataset = recipe.load_dataset(root)
    other, split = with_graphs(recipe, {"two": path}), recipe.split(dataset, "official", 0)
    message = rf"the {dataset.num_labels} labels of the data set \(got 2\)"
    for labels, refused in (
        (list(dataset.label_names)[::-1], "the labels of the data set, in its order"),
        (2, message),
    ):
        edgeless(labels).save(path)
        with pytest.raises(SystemExit, match=refused):
            other.label_graph("two", dataset, split)


class Parts:
    """Samples that have only parts and labels."""

    label_names = ("a", "b")

    def __getitem__(self, part):
        return part


def test_models_are_tried_out_on_training_samples_without_slow_options():
    built = []
    recipe = SimpleNamespace(
        model={"latent": True, "min_df": 8},
        label_graph=lambda *args: None,
        build=lambda part, graph, **options: built.append((part, options)),
    )
    task = SimpleNamespace(dataset=Parts(), recipe=recipe, with_settings=lambda _: task)
    split = SimpleNamespace(train="train", val="val")
    _try_out(task, split, [row("edgeless")])
    assert built == [("train", {"node_messages": False, "latent": False, "min_df": 8})]


@pytest.mark.usefixtures("few_samples")
def test_the_learned_graph_is_that_of_a_trained_model(root, monkeypatch):
    task = Task("planted-50", RECIPES["planted-50"].load_dataset(root))
    split = task.recipe.split(task.dataset, "official", 0)
    trained, asked = [], []

    def train(*args):
        trained.append(Task.train(task, *args))
        return trained[-1]

    def learn(model, *args, **kwargs):
        asked.append(model)
        return edgeless(task.dataset.label_names)

    monkeypatch.setattr(task, "train", train)
    monkeypatch.setattr("benchmarks.accuracy.label_graphs.learned", learn)
    monkeypatch.setattr(task, "with_settings", lambda settings: task)
    run_variant(task, split, 0, row("learned"), {"max_epochs": 1})
    assert len(trained) == 2
    assert [id(model) for model in asked] == [id(trained[0][0].module.model)]


@pytest.mark.usefixtures("needs_emotions")
def test_tables_end_to_end(root, own_runs):
    compare("edgeless", root, "emotions", max_epochs=5)
    rows = read(own_runs / "prior_vs_learned-emotions-official.json")
    kinds = ("linear SVM", "kernel ridge regression", "logistic regression")
    classifiers = [f"{kind}, tuned" for kind in kinds]
    assert list(rows) == [*map(Row, ["label frequency", *classifiers]), row("edgeless")]
    values = [rows[Row(name)]["metrics.roc_auc_macro"].item() for name in classifiers]
    assert min(values) > 0.75
    assert len(set(values)) == len(classifiers)
    assert rows[row("edgeless")]["metrics.roc_auc_macro"].item() > 0.7
    # Six emotions make 27 sets, of which nearly all are known.
    svm = rows[Row("linear SVM, tuned")]
    assert svm["by_label_set.subset_accuracy"].item() > svm["metrics.subset_accuracy"].item()
    assert svm["by_frequency.f1_macro"].item() > 0.5
    metrics = ("subset_accuracy", "hamming_accuracy", "f1_samples", "f1_micro", "f1_macro")
    assert all(0 <= rows[row("edgeless")][f"thresholds.{metric}"].item() <= 1 for metric in metrics)


@pytest.mark.usefixtures("few_baselines", "few_samples")
def test_models_as_published_have_a_file_of_their_own_and_the_same_table(root, own_runs, results):
    for settings in ("best", "published"):
        compare("edgeless", root, settings=settings)
    names = sorted(path.name for path in own_runs.iterdir())
    stem = "prior_vs_learned-planted-50-official"
    assert names == [f"{stem}-published.json", f"{stem}.json"]
    result = json.loads((own_runs / names[0]).read_text())
    best, published = (result["recipes"][kind]["model"] for kind in ("best", "published"))
    assert published == {**best, **RECIPES["planted-50"].published["model"]}
    for name in names:
        (own_runs / name).rename(results / name)
    lines = short(Comparison.load("planted-50-official"))
    for start in ("LaMP | no | edgeless", "LaMP, as published | no | edgeless", "label frequency"):
        assert sum(line.startswith(f"| {start} ") for line in lines) == 1


@pytest.mark.slow
def test_molecules_end_to_end(root, own_runs, monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.accuracy.prior_vs_learned.baselines", lambda *args: [])
    recipe = RECIPES["nci"]
    whole = recipe.load_dataset(root)
    few = whole[random_split(len(whole), seed=0).test]
    monkeypatch.setattr(type(recipe), "load_dataset", lambda *args: few)
    compare("edgeless,complete", root, "nci", seeds=2)
    result = json.loads((own_runs / "prior_vs_learned-nci-random.json").read_text())
    assert result["seeds"] == [10, 11]
    assert len(result["runs"]) == 4
    assert result["environment"]["versions"]["torch"] == version("torch")
    assert "| LaMP complete | LaMP edgeless | macro ROC-AUC |" in capsys.readouterr().out


class Emotions:
    """Trains rows on Emotions for one epoch, and reads the file of results."""

    first = ""  #: The file of one graph, with which all tests begin.

    def __init__(self, root, own_runs):
        self.root, self.path = root, own_runs / "prior_vs_learned-emotions-official.json"
        if not Emotions.first:
            self("complete")
            Emotions.first = self.path.read_text()
        own_runs.mkdir(exist_ok=True)
        self.path.write_text(Emotions.first)

    def __call__(self, graphs, **options):
        compare(graphs, self.root, "emotions", **{"seeds": 2, **options})
        return self.runs

    @property
    def runs(self):
        return json.loads(self.path.read_text())["runs"]


@pytest.fixture
def emotions(root, own_runs, needs_emotions):
    return Emotions(root, own_runs)


def test_a_comparison_makes_only_missing_rows(emotions, monkeypatch):
    before = emotions.runs
    monkeypatch.setattr(baselines, "_frequency", lambda *args: pytest.fail("made again"))
    runs = emotions("complete,edgeless")
    assert runs[: len(before)] == before
    added = [(run["graph"], run["seed"]) for run in runs[len(before) :]]
    assert added == [("edgeless", 10), ("edgeless", 11)]
    # A graph that attention along all pairs was not compared with makes these rows again.
    assert "learned attention, correlation" not in recovered_in(emotions.path)
    emotions("correlation")
    assert "learned attention, correlation" not in recovered_in(emotions.path)
    emotions("complete,correlation")
    expected = {"learned attention, prior", "learned attention, correlation"}
    assert recovered_in(emotions.path) == expected
    assert {run["seed"] for run in emotions("complete", seeds=1)} == {10}


def recovered_in(file):
    return set(recovered(read(file)[row("complete")]))


def test_a_comparison_that_stopped_early_goes_on(emotions, monkeypatch):
    before, partial = emotions.runs, emotions.path.with_suffix(".part")

    def run_but_priors(*args):
        if args[3].graph == "prior":
            raise RuntimeError("stopped early")
        return run_variant(*args)

    with monkeypatch.context() as patch:
        patch.setattr("benchmarks.accuracy.prior_vs_learned.run_variant", run_but_priors)
        with pytest.raises(RuntimeError, match="stopped early"):
            emotions("edgeless,prior")
    assert emotions.runs == before
    kept = json.loads(partial.read_text())["runs"]
    made = {(run["model"], run["graph"]) for run in kept}
    assert made > {("label frequency", None), ("LaMP", "edgeless")}
    runs = emotions("edgeless,prior")
    assert runs[: len(kept)] == kept
    assert [run["graph"] for run in runs[len(kept) :]] == ["prior"] * 2
    assert not partial.exists()


def test_a_classifier_that_is_new_is_added(emotions):
    result = json.loads(emotions.path.read_text())
    kept = [run for run in result["runs"] if run["model"] != "logistic regression, tuned"]
    assert len(kept) < len(result["runs"])
    emotions.path.write_text(json.dumps({**result, "runs": kept}))
    runs = emotions("complete")
    assert runs[: len(kept)] == kept
    added = [(run["model"], run["seed"]) for run in runs[len(kept) :]]
    assert added == [("logistic regression, tuned", 10)]


def test_encoders_that_models_do_not_have_are_named_before_training(emotions):
    message = r"--atoms and --node_messages that models of emotions take"
    with pytest.raises(SystemExit, match=message):
        emotions("edgeless", atoms=False)


def test_a_change_changes_what_it_names():
    recipe = TABLES["bibtex"]
    changed = Change(parts={"model": {"num_steps": 1}, "fit": {"ema_decay": None}}).of(recipe)
    assert changed.model == {**recipe.model, "num_steps": 1}
    assert changed.fit == {**recipe.fit, "ema_decay": None}
    assert changed.module == recipe.module
    assert Change().of(recipe) == recipe


TITLES = {kind: search.title for kind, search in PUBLISHED.items()}


@pytest.mark.parametrize("name", TABLES)
def test_only_what_changes_a_recipe_is_tried(name):
    recipe = TABLES[name]
    classifiers = [TITLES[kind] for kind in recipe.settings["classifiers"]]
    changes = changes_of(recipe, classifiers, "complete")
    model = LaMP(BagEncoder(2, 8), fully_connected(1), num_feature_layers=0)
    assert {"no messages among labels", "no base scores", "no averaged weights"} <= set(changes)
    for change in changes.values():
        changed = change.of(recipe)
        # The module takes all of them.
        MultiLabelModule(model, ["a"], BinaryObjective(**changed.objective), **changed.module)
        differs = change.graph == "edgeless" or change.base_scores is not None
        assert differs or change.of(recipe) != recipe
        assert {TITLES[kind] for kind in change.base_scores or ()} <= set(classifiers)
    assert "no messages among labels" not in changes_of(recipe, classifiers, "edgeless")


@pytest.mark.parametrize(
    ("name", "classifiers", "model", "change", "tried"),
    [
        ("bibtex", ["svm", "ridge"], {}, "one step", True),
        ("delicious", ["svm", "ridge"], {}, "one step", False),
        ("bibtex", ["svm", "ridge"], {}, "no base scores in the logits", True),
        ("bibtex", ["svm", "ridge"], {"score_skip": False}, "no base scores in the logits", False),
        ("nuswide", ["svm"], {}, "base scores of the SVM alone", False),
    ],
)
def test_parts_that_a_recipe_does_without_are_left_out(name, classifiers, model, change, tried):
    recipe = replace(TABLES[name], model={**TABLES[name].model, **model})
    kinds = [TITLES[kind] for kind in classifiers]
    assert (change in changes_of(recipe, kinds, "complete")) is tried


@pytest.mark.usefixtures("needs_emotions")
@pytest.mark.slow
def test_ablation_end_to_end(tmp_path, results, own_runs, monkeypatch):
    kept = ("no base scores", "base scores of the SVM alone", "no messages among labels")
    for name in CHANGES.keys() - kept:
        monkeypatch.delitem(CHANGES, name)
    compare("complete", tmp_path, "emotions", seeds=2, max_epochs=3, ablation=True)
    written = own_runs / "ablation-emotions.json"
    runs = frame(json.loads(written.read_text())["runs"])
    rows, whole = dict(iter(runs.groupby("row", sort=False))), row("complete")
    without, edgeless_row = (replace(whole, change=kept[0]), replace(whole, change=kept[2]))
    edgeless_row = replace(edgeless_row, graph="edgeless")
    assert {Row("kernel ridge regression, tuned"), whole, without} < set(rows)
    assert rows[edgeless_row]["density"].mean() < rows[whole]["density"].mean() == 1.0
    # Without base scores three epochs are too few.
    ours, less = (spreads(rows[row])["roc_auc_macro"]["mean"] for row in (whole, without))
    assert ours > less + 0.02
    assert {test.row.change for test in paired_tests(runs)} == set(kept)
    written.rename(results / written.name)
    lines = short(Comparison.load("ablation-emotions"))
    changes = [line.split(" | ")[0] for line in lines if line.startswith("| LaMP")]
    assert changes == ["| LaMP", *(f"| LaMP, {name}" for name in CHANGES)]
