from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from benchmarks.accuracy import baselines
from benchmarks.accuracy.prior_vs_learned import Trial, _recovered, _try_out, main, own_graphs, run_variant, with_graphs
from benchmarks.accuracy.runs import Row, Task, frame
from benchmarks.report.comparisons import Comparison, recovered, short, spreads
from tg_mlc.datasets import Planted
from tg_mlc.graphs import LabelGraph, edgeless, tree
from tg_mlc.papers.recipes import RECIPES


def test_one_variant_learns_on_nci(root: Path, tmp_path: Path) -> None:
    recipe = RECIPES["nci"]
    dataset = recipe.load_dataset(root)
    split = recipe.split(dataset, "random", 0)
    task = Task("nci", recipe.prepare(dataset, split, tmp_path))
    assert int(task.counted.sum()) == 35
    (run,) = run_variant(task, split, 0, row("complete"), {"max_epochs": 1})
    assert Row.of(run) == row("complete")
    assert run["density"] == 1.0
    assert run["metrics"]["roc_auc_macro"] > 0.6
    of_tree = {f"{score}, tree" for score in ("learned attention", "count", "conditional", "correlation")}
    assert set(run["recovery"]) == {"learned attention, prior", *of_tree}
    assert all(0 <= values["ROC-AUC"] <= 1 for values in run["recovery"].values())


def row(graph: str, settings: Any = "best") -> Row:
    return Row("LaMP", False, graph, settings)


def test_published_settings_are_those_of_the_recipe_as_published() -> None:
    task = Task("bibtex", cast(Any, None))
    assert task.with_settings("published").recipe == task.recipe.as_published() != task.recipe
    assert task.with_settings("best") == task.with_settings(None) == task


def read(path: Path) -> dict[Row, Any]:
    return dict(iter(frame(json.loads(path.read_text())["runs"]).groupby("row", sort=False)))


def test_a_graph_that_is_not_there(root: Path) -> None:
    recipe = RECIPES["planted-50"]
    dataset = recipe.load_dataset(root)
    with pytest.raises(ValueError, match=r"'edgeless', 'complete', 'prior', 'planted'"):
        recipe.label_graph("tree", dataset, recipe.split(dataset, "official", 0))


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


def test_planted_graphs_end_to_end(
    root: Path, own_runs: Path, results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tg_mlc.papers.recipes.graphs.Planted", partial(Planted, num_samples=800))
    tracked = results / "prior_vs_learned-planted-50-official.json"
    tracked.write_text("tracked")
    main(
        dataset="planted-50",
        seeds=2,
        graphs="edgeless,complete,learned,planted",
        node_messages="false",
        root=root,
        max_epochs=1,
    )
    assert tracked.read_text() == "tracked"
    written = own_runs / tracked.name
    result, rows = json.loads(written.read_text()), read(written)
    for metric in ("roc_auc_macro", "subset_accuracy", "f1_macro"):
        assert spreads(rows[Row("best possible")])[metric] == {"mean": 1.0, "sd": 0.0}
    assert 0.8 < rows[Row("best without neighbours")]["metrics.roc_auc_macro"].mean() < 0.9
    assert {run["seed"] for run in result["runs"] if run["model"] == "label frequency"} == {10, 11}
    assert rows[row("learned")]["density"].mean() == pytest.approx(7 / 24)
    assert "learned attention, planted" in recovered(rows[row("complete")])
    printed = capsys.readouterr().out
    assert "a threshold per label" in printed
    assert "thresholds by frequency" in printed
    assert "likeliest known label set" in printed
    assert "by frequency or label set" in printed
    assert "| LaMP complete | LaMP edgeless | macro ROC-AUC |" in printed
    assert "- LaMP complete: subset accuracy 0." in printed
    written.rename(tracked)
    assert any("samples drawn anew for every seed" in line for line in short(Comparison.load("planted-50-official")))


@pytest.fixture
def few_baselines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out the classifiers, which take long to tune."""
    monkeypatch.setattr("benchmarks.accuracy.prior_vs_learned.baselines", lambda *args: ["label frequency"])


@pytest.mark.usefixtures("few_baselines")
def test_label_graphs_from_files(root: Path, own_runs: Path, tmp_path: Path) -> None:
    names = RECIPES["planted-50"].load_dataset(root).label_names
    path = tmp_path / "mine.safetensors"
    tree([(names[1], names[0])], names).save(path)
    graphs = f"edgeless,{path}"
    main(dataset="planted-50", seeds=1, graphs=graphs, node_messages="false", root=root, max_epochs=1)
    written = own_runs / "prior_vs_learned-planted-50-official.json"
    density = read(written)[row("mine")]["density"].item()
    assert density == LabelGraph.load(path).density
    tree([(names[2], names[0])], names).save(path)
    with pytest.raises(SystemExit, match="have the same own_graphs"):
        main(dataset="planted-50", seeds=1, graphs=graphs, node_messages="false", root=root, max_epochs=1, resume=True)


def test_files_that_are_no_label_graph_of_the_data_set(root: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"got no 'nowhere\.safetensors'"):
        own_graphs("edgeless,nowhere.safetensors", ["edgeless"])
    path = tmp_path / "prior.safetensors"
    edgeless(["a", "b"]).save(path)
    with pytest.raises(SystemExit, match="a name of its own"):
        own_graphs(f"edgeless,{path}", ["edgeless", "prior"])
    recipe = RECIPES["planted-50"]
    dataset = recipe.load_dataset(root)
    edgeless(list(dataset.label_names)[::-1]).save(path)
    with pytest.raises(SystemExit, match="the labels of the data set, in its order"):
        with_graphs(recipe, {"two": path}).label_graph("two", dataset, recipe.split(dataset, "official", 0))
    edgeless(2).save(path)
    with pytest.raises(SystemExit, match=rf"the {dataset.num_labels} labels of the data set \(got 2\)"):
        with_graphs(recipe, {"two": path}).label_graph("two", dataset, recipe.split(dataset, "official", 0))


class Parts:
    """Samples of which only the parts and the labels are known."""

    label_names = ("a", "b")

    def __getitem__(self, part: str) -> str:
        return part


def test_models_are_tried_out_on_training_samples_without_what_takes_long() -> None:
    built: list[Any] = []
    recipe = SimpleNamespace(
        model={"latent": True, "min_df": 8},
        label_graph=lambda *args: None,
        build=lambda part, graph, **options: built.append((part, options)),
    )
    task = SimpleNamespace(dataset=Parts(), recipe=recipe, with_settings=lambda settings: task)
    _try_out(Trial(cast(Any, task), cast(Any, SimpleNamespace(train="train", val="val"))), [row("edgeless")])
    assert built == [("train", {"node_messages": False, "latent": False, "min_df": 8})]


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
    monkeypatch.setattr("benchmarks.accuracy.label_graphs.learned", learn)
    monkeypatch.setattr(task, "with_settings", lambda settings: task)
    run_variant(task, split, 0, row("learned"), {"max_epochs": 1})
    assert len(trained) == 2
    assert [id(model) for model in asked] == [id(trained[0][0].module.model)]


@pytest.mark.usefixtures("needs_emotions")
def test_tables_end_to_end(root: Path, own_runs: Path) -> None:
    main(dataset="emotions", seeds=1, graphs="edgeless", node_messages="false", root=root, max_epochs=5)
    rows = read(own_runs / "prior_vs_learned-emotions-official.json")
    classifiers = ["linear SVM, tuned", "kernel ridge regression, tuned", "logistic regression, tuned"]
    assert list(rows) == [*map(Row, ["label frequency", *classifiers]), row("edgeless")]
    assert all(rows[Row(name)]["metrics.roc_auc_macro"].item() > 0.75 for name in classifiers)
    assert len({rows[Row(name)]["metrics.roc_auc_macro"].item() for name in classifiers}) == len(classifiers)
    assert rows[row("edgeless")]["metrics.roc_auc_macro"].item() > 0.7
    # Six emotions make 27 sets, of which nearly all are known.
    svm = rows[Row("linear SVM, tuned")]
    assert svm["by_label_set.subset_accuracy"].item() > svm["metrics.subset_accuracy"].item()
    assert svm["by_frequency.f1_macro"].item() > 0.5
    metrics = ("subset_accuracy", "hamming_accuracy", "f1_samples", "f1_micro", "f1_macro")
    assert all(0 <= rows[row("edgeless")][f"thresholds.{metric}"].item() <= 1 for metric in metrics)


@pytest.mark.usefixtures("few_baselines")
def test_models_as_published_have_a_file_of_their_own_and_the_same_table(
    root: Path, own_runs: Path, results: Path
) -> None:
    options: dict[str, Any] = {
        "dataset": "planted-50",
        "seeds": 1,
        "graphs": "edgeless",
        "node_messages": "false",
        "root": root,
    }
    for settings in ("best", "published"):
        main(**options, settings=settings, max_epochs=1)
    names = sorted(path.name for path in own_runs.iterdir())
    assert names == [f"prior_vs_learned-planted-50-official{which}.json" for which in ("-published", "")]
    result = json.loads((own_runs / names[0]).read_text())
    changed = RECIPES["planted-50"].published["model"]
    assert result["recipes"]["published"]["model"] == {**result["recipes"]["best"]["model"], **changed}
    for name in names:
        (own_runs / name).rename(results / name)
    lines = short(Comparison.load("planted-50-official"))
    assert sum(line.startswith("| LaMP | no | edgeless ") for line in lines) == 1
    assert sum(line.startswith("| LaMP, as published | no | edgeless ") for line in lines) == 1
    assert sum(line.startswith("| label frequency |") for line in lines) == 1


@pytest.mark.slow
def test_molecules_end_to_end(
    root: Path, own_runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.accuracy.prior_vs_learned.baselines", lambda *args: [])
    main(dataset="nci", seeds=2, graphs="edgeless,complete", node_messages="false", root=root, max_epochs=1)
    result = json.loads((own_runs / "prior_vs_learned-nci-random.json").read_text())
    assert result["seeds"] == [10, 11]
    assert len(result["runs"]) == 4
    assert result["environment"]["versions"]["torch"] == torch.__version__
    assert "| LaMP complete | LaMP edgeless | macro ROC-AUC |" in capsys.readouterr().out


@pytest.fixture
def emotions(root: Path, own_runs: Path, needs_emotions: None) -> Path:
    """Trains one row, and returns its result file."""
    main(dataset="emotions", seeds=2, graphs="complete", node_messages="false", root=root, max_epochs=1)
    return own_runs / "prior_vs_learned-emotions-official.json"


def test_a_comparison_makes_only_the_rows_it_has_not(
    emotions: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = json.loads(emotions.read_text())["runs"]
    monkeypatch.setattr(baselines, "_frequency", lambda *args: pytest.fail("made again"))
    main(
        dataset="emotions",
        seeds=2,
        graphs="complete,edgeless",
        node_messages="false",
        root=root,
        max_epochs=1,
        resume=True,
    )
    result = json.loads(emotions.read_text())
    assert result["runs"][: len(before)] == before
    assert [(run["graph"], run["seed"]) for run in result["runs"][len(before) :]] == [
        ("edgeless", 10),
        ("edgeless", 11),
    ]
    main(dataset="emotions", seeds=1, graphs="complete", node_messages="false", root=root, max_epochs=1, resume=True)
    result = json.loads(emotions.read_text())
    assert {run["seed"] for run in result["runs"]} == set(result["seeds"]) == {10}


def test_a_comparison_that_stopped_early_goes_on(emotions: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, partial = emotions.read_text(), emotions.with_suffix(".part")

    def run_but_priorior(*args: Any) -> list[dict[str, Any]]:
        if args[3].graph == "prior":
            raise RuntimeError("stopped early")
        return run_variant(*args)

    with monkeypatch.context() as patch:
        patch.setattr("benchmarks.accuracy.prior_vs_learned.run_variant", run_but_priorior)
        with pytest.raises(RuntimeError, match="stopped early"):
            main(dataset="emotions", seeds=2, graphs="edgeless,prior", node_messages="false", root=root, max_epochs=1)
    assert emotions.read_text() == before
    kept = json.loads(partial.read_text())["runs"]
    assert {(run["model"], run["graph"]) for run in kept} > {("label frequency", None), ("LaMP", "edgeless")}
    main(
        dataset="emotions",
        seeds=2,
        graphs="edgeless,prior",
        node_messages="false",
        root=root,
        max_epochs=1,
        resume=True,
    )
    result = json.loads(emotions.read_text())
    assert result["runs"][: len(kept)] == kept
    assert [run["graph"] for run in result["runs"][len(kept) :]] == ["prior"] * 2
    assert not partial.exists()


def test_a_classifier_that_is_new_is_added(emotions: Path, root: Path) -> None:
    result = json.loads(emotions.read_text())
    kept = [run for run in result["runs"] if run["model"] != "logistic regression, tuned"]
    assert len(kept) < len(result["runs"])
    emotions.write_text(json.dumps({**result, "runs": kept}))
    main(dataset="emotions", seeds=2, graphs="complete", node_messages="false", root=root, max_epochs=1, resume=True)
    runs = json.loads(emotions.read_text())["runs"]
    assert runs[: len(kept)] == kept
    assert [(run["model"], run["seed"]) for run in runs[len(kept) :]] == [("logistic regression, tuned", 10)]


def test_a_row_that_was_not_compared_with_a_graph_is_made_again(
    emotions: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baselines, "_frequency", lambda *args: pytest.fail("made again"))
    main(dataset="emotions", seeds=2, graphs="correlation", node_messages="false", root=root, max_epochs=1, resume=True)
    assert "learned attention, correlation" not in recovered_in(emotions)
    main(
        dataset="emotions",
        seeds=2,
        graphs="complete,correlation",
        node_messages="false",
        root=root,
        max_epochs=1,
        resume=True,
    )
    assert recovered_in(emotions) == {"learned attention, prior", "learned attention, correlation"}


def recovered_in(file: Path) -> set[str]:
    return set(recovered(read(file)[row("complete")]))


def test_encoders_that_models_do_not_have_are_named_before_training(root: Path, emotions: Path) -> None:
    with pytest.raises(SystemExit, match=r"--atoms and --node_messages that models of emotions take"):
        main(dataset="emotions", seeds=1, graphs="edgeless", node_messages="false", atoms=False, root=root)


def test_rows_with_other_settings_are_not_kept(emotions: Path, root: Path) -> None:
    before = emotions.read_bytes()
    with pytest.raises(SystemExit, match="have the same recipes"):
        main(
            dataset="emotions", seeds=2, graphs="edgeless", node_messages="false", root=root, max_epochs=2, resume=True
        )
    assert emotions.read_bytes() == before
