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


@pytest.mark.slow
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
    tree_recoveries = {f"{score}, tree" for score in scores}
    assert set(run["recovery"]) == {"learned attention, prior", *tree_recoveries}
    assert all(0 <= values["ROC-AUC"] <= 1 for values in run["recovery"].values())


def row(graph, settings="best"):
    return Row("LaMP", False, graph, settings)


def test_published_settings_are_those_of_the_recipe_as_published():
    task = Task("bibtex", None)
    assert task.with_settings("published").recipe == task.recipe.as_published() != task.recipe
    assert task.with_settings("best") == task.with_settings(None) == task


def read(path):
    return dict(iter(frame(json.loads(path.read_text())["runs"]).groupby("row", sort=False)))


def test_an_unknown_label_graph_is_refused(root):
    recipe = RECIPES["planted-50"]
    dataset = recipe.load_dataset(root)
    with pytest.raises(ValueError, match=r"'edgeless', 'complete', 'prior', 'planted'"):
        recipe.label_graph("tree", dataset, recipe.split(dataset, "official", 0))


def test_statistics_are_compared_with_a_tree_where_labels_are_unknown(monkeypatch):
    y = torch.tensor([[1, 1, 0], [1, 1, 1], [0, torch.nan, 1], [0, 0, 0]])
    graph = tree([("b", "a")], ["a", "b", "c"])
    recipe = SimpleNamespace(graphs={"tree": graph}, label_graph=lambda *args: graph)
    dataset, counted = SimpleNamespace(y=y), torch.ones(3, dtype=torch.bool)
    task = SimpleNamespace(dataset=dataset, recipe=recipe, counted=counted)
    result = SimpleNamespace(module=SimpleNamespace(model=None))
    attention = "benchmarks.accuracy.prior_vs_learned.mean_label_attention"
    monkeypatch.setattr(attention, lambda *args: torch.zeros(3, 3))
    split = SimpleNamespace(train=torch.arange(4))
    loaders = SimpleNamespace(val_dataloader=list)
    recovery = _recovered(task, split, result, loaders, ["tree"])
    expected = {"learned attention": 0.5, "count": 1.0, "conditional": 1.0, "correlation": 1.0}
    roc_auc = {key: values["ROC-AUC"] for key, values in recovery.items()}
    assert roc_auc == {f"{score}, tree": value for score, value in expected.items()}


@pytest.mark.slow
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
    for rule in ("a threshold per label", "thresholds by frequency", "likeliest known label set"):
        assert rule in printed
    assert "by frequency or label set" in printed
    assert "| LaMP complete | LaMP edgeless | macro ROC-AUC |" in printed
    assert "- LaMP complete: subset accuracy 0." in printed
    written.rename(tracked)
    lines = short(Comparison.load("planted-50-official"))
    assert any("samples drawn anew for every seed" in line for line in lines)


def compare(graphs, root, dataset="planted-50", **options):
    """Trains one model per label graph for one epoch."""
    options = {"seeds": 1, "node_messages": "false", "max_epochs": 1, **options}
    main(dataset=dataset, graphs=graphs, root=root, **options)


@pytest.fixture
def few_samples(monkeypatch):
    """Reduces the planted data set to 400 samples."""
    monkeypatch.setattr("tg_mlc.papers.recipes.graphs.Planted", partial(Planted, num_samples=400))


@pytest.fixture
def few_baselines(monkeypatch):
    """Skips the classifiers because tuning them is slow."""
    rows = "benchmarks.accuracy.prior_vs_learned.baselines"
    monkeypatch.setattr(rows, lambda *args: ["label frequency"])


@pytest.mark.usefixtures("few_baselines", "few_samples")
def test_label_graphs_are_read_from_files(root, own_runs, tmp_path):
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


def test_files_without_a_matching_label_graph_are_refused(root, tmp_path):
    with pytest.raises(SystemExit, match=r"got no 'nowhere\.safetensors'"):
        own_graphs("edgeless,nowhere.safetensors", ["edgeless"])
    path = tmp_path / "prior.safetensors"
    edgeless(["a", "b"]).save(path)
    with pytest.raises(SystemExit, match="another name than the known graphs"):
        own_graphs(f"edgeless,{path}", ["edgeless", "prior"])
    recipe = RECIPES["planted-50"]
    dataset = recipe.load_dataset(root)
    extended, split = with_graphs(recipe, {"two": path}), recipe.split(dataset, "official", 0)
    message = rf"the {dataset.num_labels} labels of the data set \(got 2\)"
    for labels, expected in (
        (list(dataset.label_names)[::-1], "the labels of the data set, in its order"),
        (2, message),
    ):
        edgeless(labels).save(path)
        with pytest.raises(SystemExit, match=expected):
            extended.label_graph("two", dataset, split)


class Parts:
    """A data set whose subsets are the names of the parts of a split."""

    label_names = ("a", "b")

    def __getitem__(self, part):
        return part


def test_models_are_tried_out_on_training_samples_without_slow_options():
    calls = []
    recipe = SimpleNamespace(
        model={"latent": True, "min_df": 8},
        label_graph=lambda *args: None,
        build=lambda part, graph, **options: calls.append((part, options)),
    )
    task = SimpleNamespace(dataset=Parts(), recipe=recipe, with_settings=lambda _: task)
    split = SimpleNamespace(train="train", val="val")
    _try_out(task, split, [row("edgeless")])
    assert calls == [("train", {"node_messages": False, "latent": False, "min_df": 8})]


@pytest.mark.usefixtures("few_samples")
def test_the_learned_graph_comes_from_a_trained_model(root, monkeypatch):
    task = Task("planted-50", RECIPES["planted-50"].load_dataset(root))
    split = task.recipe.split(task.dataset, "official", 0)
    results, models = [], []

    def train(*args):
        results.append(Task.train(task, *args))
        return results[-1]

    def learn(model, *args, **kwargs):
        models.append(model)
        return edgeless(task.dataset.label_names)

    monkeypatch.setattr(task, "train", train)
    monkeypatch.setattr("benchmarks.accuracy.label_graphs.learned", learn)
    monkeypatch.setattr(task, "with_settings", lambda settings: task)
    run_variant(task, split, 0, row("learned"), {"max_epochs": 1})
    assert len(results) == 2
    assert [id(model) for model in models] == [id(results[0][0].module.model)]


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
    # Nearly all of the 27 label sets of Emotions occur in the training samples.
    svm = rows[Row("linear SVM, tuned")]
    assert svm["by_label_set.subset_accuracy"].item() > svm["metrics.subset_accuracy"].item()
    assert svm["by_frequency.f1_macro"].item() > 0.5
    metrics = ("subset_accuracy", "hamming_accuracy", "f1_samples", "f1_micro", "f1_macro")
    assert all(0 <= rows[row("edgeless")][f"thresholds.{metric}"].item() <= 1 for metric in metrics)


@pytest.mark.usefixtures("few_baselines", "few_samples")
def test_models_as_published_have_a_separate_file_and_the_same_table(root, own_runs, results):
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
    dataset = recipe.load_dataset(root)
    subset = dataset[random_split(len(dataset), seed=0).test]
    monkeypatch.setattr(type(recipe), "load_dataset", lambda *args: subset)
    compare("edgeless,complete", root, "nci", seeds=2)
    result = json.loads((own_runs / "prior_vs_learned-nci-random.json").read_text())
    assert result["seeds"] == [10, 11]
    assert len(result["runs"]) == 4
    assert result["environment"]["versions"]["torch"] == version("torch")
    assert "| LaMP complete | LaMP edgeless | macro ROC-AUC |" in capsys.readouterr().out


class Emotions:
    """Trains rows on Emotions for one epoch and reads the result file."""

    first = ""  #: Text of the initial result file of every test.

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


@pytest.mark.slow
def test_a_comparison_runs_only_missing_rows(emotions, monkeypatch):
    earlier_runs = emotions.runs
    monkeypatch.setattr(baselines, "_frequency", lambda *args: pytest.fail("made again"))
    runs = emotions("complete,edgeless")
    assert runs[: len(earlier_runs)] == earlier_runs
    added = [(run["graph"], run["seed"]) for run in runs[len(earlier_runs) :]]
    assert added == [("edgeless", 10), ("edgeless", 11)]
    # Rows of the complete graph run again if one of the requested graphs is new to them.
    assert "learned attention, correlation" not in recovered_in(emotions.path)
    emotions("correlation")
    assert "learned attention, correlation" not in recovered_in(emotions.path)
    emotions("complete,correlation")
    expected = {"learned attention, prior", "learned attention, correlation"}
    assert recovered_in(emotions.path) == expected
    assert {run["seed"] for run in emotions("complete", seeds=1)} == {10}


def recovered_in(file):
    return set(recovered(read(file)[row("complete")]))


@pytest.mark.slow
def test_an_interrupted_comparison_resumes(emotions, monkeypatch):
    earlier_runs, partial = emotions.runs, emotions.path.with_suffix(".part")

    def run_but_priors(*args):
        if args[3].graph == "prior":
            raise RuntimeError("stopped early")
        return run_variant(*args)

    with monkeypatch.context() as patch:
        patch.setattr("benchmarks.accuracy.prior_vs_learned.run_variant", run_but_priors)
        with pytest.raises(RuntimeError, match="stopped early"):
            emotions("edgeless,prior")
    assert emotions.runs == earlier_runs
    partial_runs = json.loads(partial.read_text())["runs"]
    partial_rows = {(run["model"], run["graph"]) for run in partial_runs}
    assert partial_rows > {("label frequency", None), ("LaMP", "edgeless")}
    runs = emotions("edgeless,prior")
    assert runs[: len(partial_runs)] == partial_runs
    assert [run["graph"] for run in runs[len(partial_runs) :]] == ["prior"] * 2
    assert not partial.exists()


def test_a_new_classifier_is_added(emotions):
    result = json.loads(emotions.path.read_text())
    other_runs = [run for run in result["runs"] if run["model"] != "logistic regression, tuned"]
    assert len(other_runs) < len(result["runs"])
    emotions.path.write_text(json.dumps({**result, "runs": other_runs}))
    runs = emotions("complete")
    assert runs[: len(other_runs)] == other_runs
    added = [(run["model"], run["seed"]) for run in runs[len(other_runs) :]]
    assert added == [("logistic regression, tuned", 10)]


def test_unknown_encoder_options_are_refused_before_training(emotions):
    message = r"--atoms and --node_messages that models of emotions take"
    with pytest.raises(SystemExit, match=message):
        emotions("edgeless", atoms=False)


def test_a_change_replaces_only_the_named_options():
    recipe = TABLES["bibtex"]
    changed = Change(parts={"model": {"num_steps": 1}, "fit": {"ema_decay": None}}).of(recipe)
    assert changed.model == {**recipe.model, "num_steps": 1}
    assert changed.fit == {**recipe.fit, "ema_decay": None}
    assert changed.module == recipe.module
    assert Change().of(recipe) == recipe


TITLES = {kind: search.title for kind, search in PUBLISHED.items()}


@pytest.mark.parametrize("name", TABLES)
def test_every_change_of_an_ablation_has_an_effect(name):
    recipe = TABLES[name]
    classifiers = [TITLES[kind] for kind in recipe.settings["classifiers"]]
    changes = changes_of(recipe, classifiers, "complete")
    model = LaMP(BagEncoder(2, 8), fully_connected(1), num_feature_layers=0)
    assert {"no messages among labels", "no base scores", "no averaged weights"} <= set(changes)
    for change in changes.values():
        changed = change.of(recipe)
        # MultiLabelModule accepts every changed option.
        MultiLabelModule(model, ["a"], BinaryObjective(**changed.objective), **changed.module)
        changes_inputs = change.graph == "edgeless" or change.base_scores is not None
        assert changes_inputs or change.of(recipe) != recipe
        assert {TITLES[kind] for kind in change.base_scores or ()} <= set(classifiers)
    assert "no messages among labels" not in changes_of(recipe, classifiers, "edgeless")


@pytest.mark.parametrize(
    ("name", "classifiers", "model", "change", "expected"),
    [
        ("bibtex", ["svm", "ridge"], {}, "one step", True),
        ("delicious", ["svm", "ridge"], {}, "one step", False),
        ("bibtex", ["svm", "ridge"], {}, "no base scores in the logits", True),
        ("bibtex", ["svm", "ridge"], {"score_skip": False}, "no base scores in the logits", False),
        ("nuswide", ["svm"], {}, "base scores of the SVM alone", False),
    ],
)
def test_changes_without_effect_are_skipped(name, classifiers, model, change, expected):
    recipe = replace(TABLES[name], model={**TABLES[name].model, **model})
    kinds = [TITLES[kind] for kind in classifiers]
    assert (change in changes_of(recipe, kinds, "complete")) is expected


@pytest.mark.usefixtures("needs_emotions")
@pytest.mark.slow
def test_ablation_end_to_end(tmp_path, results, own_runs, monkeypatch):
    names = ("no base scores", "base scores of the SVM alone", "no messages among labels")
    for name in CHANGES.keys() - names:
        monkeypatch.delitem(CHANGES, name)
    compare("complete", tmp_path, "emotions", seeds=2, max_epochs=3, ablation=True)
    written = own_runs / "ablation-emotions.json"
    runs = frame(json.loads(written.read_text())["runs"])
    rows, full = dict(iter(runs.groupby("row", sort=False))), row("complete")
    scoreless, edgeless_row = (replace(full, change=names[0]), replace(full, change=names[2]))
    edgeless_row = replace(edgeless_row, graph="edgeless")
    assert {Row("kernel ridge regression, tuned"), full, scoreless} < set(rows)
    assert rows[edgeless_row]["density"].mean() < rows[full]["density"].mean() == 1.0
    # Three epochs are too few without base scores.
    better, worse = (spreads(rows[key])["roc_auc_macro"]["mean"] for key in (full, scoreless))
    assert better > worse + 0.02
    assert {test.row.change for test in paired_tests(runs)} == set(names)
    written.rename(results / written.name)
    lines = short(Comparison.load("ablation-emotions"))
    changes = [line.split(" | ")[0] for line in lines if line.startswith("| LaMP")]
    assert changes == ["| LaMP", *(f"| LaMP, {name}" for name in CHANGES)]
