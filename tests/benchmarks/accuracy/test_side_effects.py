import json
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.accuracy import side_effects as benchmark
from benchmarks.accuracy.completion import cosine
from benchmarks.accuracy.side_effects import (
    AMOUNTS,
    BASE,
    GIVEN,
    HIDDEN,
    MEAN,
    MORGAN,
    NEW,
    Drugs,
    main,
)
from tg_mlc.data import from_arrays
from tg_mlc.datasets import SideEffectFrequencies
from tg_mlc.datasets.downloads import RawFile
from tg_mlc.graphs import fully_connected

NUM_DRUGS, NUM_EFFECTS = 40, 16


@pytest.fixture
def drugs(monkeypatch):
    """Loads two groups of drugs with similar structures and effects in each group."""
    rng = np.random.default_rng(0)
    group, effect = np.arange(NUM_DRUGS) % 2, np.arange(NUM_EFFECTS) % 2
    probability = np.where(group[:, None] == effect, 0.6, 0.1)
    y = (rng.random((NUM_DRUGS, NUM_EFFECTS)) < probability).astype(float)
    kernel = np.where(group[:, None] == group, 0.8, 0.2) + 0.2 * np.eye(NUM_DRUGS)
    graph, fold = fully_connected(NUM_EFFECTS), np.arange(NUM_DRUGS) // 2 % 10
    loaded = Drugs(y, fold, {MORGAN: kernel, MEAN: kernel}, cosine(np.eye(2)[effect]), graph)
    monkeypatch.setattr(benchmark, "load", lambda root: loaded)
    monkeypatch.setattr(benchmark, "EXPECTED", {"present": (1, 0.5), "both": (0.5,)})
    monkeypatch.setattr(benchmark, "NUM_PARTS", 2)
    return loaded


def test_structures_predict_effects_of_new_drugs(drugs):
    roc_auc = {run["model"]: run["roc_auc"] for run in benchmark.new_drugs(Path(), fold=0)}
    frequency = roc_auc.pop("label frequency")
    assert all(value > frequency + 0.1 for value in roc_auc.values())


@pytest.mark.parametrize("function", ["new_drugs", "with_given"])
def test_settings_do_not_depend_on_effects_of_test_drugs(drugs, monkeypatch, function):
    settings = {}
    for change in (False, True):
        y = drugs.y.copy()
        y[drugs.fold == 0] = 1 - y[drugs.fold == 0] if change else y[drugs.fold == 0]
        monkeypatch.setattr(benchmark, "load", lambda root, y=y: drugs._replace(y=y))
        runs = getattr(benchmark, function)(Path(), fold=0)
        settings[change] = [run["settings"] for run in runs]
    assert settings[True] == settings[False]


def test_known_effects_help_and_are_excluded_from_metrics(drugs):
    runs = benchmark.with_given(Path(), fold=0)
    assert {run["given"] for run in runs} == set(AMOUNTS)
    half = {run["model"]: run["roc_auc"] for run in runs if run["given"] == "half of all"}
    assert len(half) == 7
    assert half[BASE] > 0.7
    values = benchmark._metrics_of_unknown(
        np.eye(3), np.eye(3), np.where(np.eye(3) == 1, 1, np.nan)
    )
    assert np.isnan(values["roc_auc"])  # No effect is left to predict.


@pytest.mark.parametrize(
    ("kind", "amount", "counts"),
    [
        ("present", 1, [1, 1, 0]),
        ("present", 10, [3, 1, 0]),
        ("present", 0.5, [2, 1, 0]),
        ("both", 1.0, [6, 6, 6]),
    ],
)
def test_given_effects_have_the_specified_number(kind, amount, counts):
    y = np.array([[1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]], dtype=float)
    given = benchmark.draw_given(y, kind, amount, np.random.default_rng(0))
    known = ~np.isnan(given)
    assert known.sum(axis=1).tolist() == counts
    assert (given[known] == y[known]).all()


def test_every_pair_is_hidden_once(drugs, monkeypatch):
    hidden = np.zeros_like(drugs.y)
    completed = lambda drugs, x, best: iter([("row", {"known": x}, x)])  # noqa: E731
    monkeypatch.setattr(benchmark, "completed", completed)
    for fold in range(10):
        (run,) = benchmark.hidden_pairs(Path(), fold, seed=0)
        hidden += drugs.y - run["settings"]["known"]
    assert (hidden == drugs.y).all()


def test_settings_are_chosen_without_hidden_pairs(drugs, monkeypatch):
    matrices = []

    def completed(drugs, x, best):
        matrices.append(x)
        for number in (1.0, 2.0):
            yield "row", best.get("row", {"number": number}), number * x + (number == 2) * drugs.y

    monkeypatch.setattr(benchmark, "completed", completed)
    benchmark.hidden_pairs(Path(), 0, seed=0)
    inner, known = matrices
    assert (inner <= known).all()
    assert inner.sum() < known.sum() < drugs.y.sum()


def test_the_default_and_other_rows_get_the_same_given_effects(drugs, monkeypatch):
    group = np.arange(NUM_DRUGS) % 2
    x = np.random.default_rng(1).normal(size=(NUM_DRUGS, 3)) + 3 * group[:, None]
    dataset = from_arrays(x, drugs.y)
    dataset.fold = torch.from_numpy(drugs.fold)
    monkeypatch.setattr(benchmark, "SideEffectFrequencies", lambda root: dataset)
    masks = []

    def fake_metrics(y, scores, given_runs):
        masks.append(given_runs)
        return {"roc_auc": 0.5}

    monkeypatch.setattr(benchmark, "_metrics_of_unknown", fake_metrics)
    new_run, *given_runs = benchmark.default(Path(), fold=0, seconds=1)
    assert new_run["roc_auc"] > 0.6
    assert [run["given"] for run in given_runs] == list(AMOUNTS)
    default_masks = [*masks]
    masks.clear()
    benchmark.with_given(Path(), fold=0)
    num_rows = len(masks) // len(AMOUNTS)  # Every amount has a mask per row.
    for default_mask, mask in zip(default_masks, masks[::num_rows], strict=True):
        np.testing.assert_array_equal(default_mask, mask)


def test_all_rows_predict_hidden_pairs(drugs):
    roc_auc = {run["model"]: run["roc_auc"] for run in benchmark.hidden_pairs(Path(), 0, seed=0)}
    assert roc_auc[benchmark.ALL] > 0.7
    assert len(roc_auc) == 9


def test_an_extended_run_computes_only_missing_folds(own_runs, tmp_path, monkeypatch):
    monkeypatch.delenv("TG_MLC_DATA", raising=False)
    texts = {
        "drugs.csv": "drug,stitch_id,smiles,fold\na,1,CCO,0\nb,2,CCN,1\n",
        "frequencies.csv": "drug,side_effect,level\na,rash,2\nb,nausea,1\n",
        "side_effect_classes.csv": "side_effect,class\nnausea,0\nrash,0\n",
    }
    monkeypatch.setattr(SideEffectFrequencies, "files", tuple(map(RawFile, texts)))
    (tmp_path / "side-effects" / "raw").mkdir(parents=True)
    for name, text in texts.items():
        (tmp_path / "side-effects" / "raw" / name).write_text(text)
    calls = []

    def run(part, fold, seed=0):
        calls.append((part, fold, seed))
        values = dict.fromkeys(("roc_auc", "average_precision", "roc_auc_macro", "seconds"), 0.5)
        values |= {"part": part, "task": part, "given": ""}
        return [{"model": "row", "fold": fold, "seed": seed, **values}]

    monkeypatch.setattr(benchmark, "new_drugs", lambda root, fold: run(NEW, fold))
    monkeypatch.setattr(benchmark, "with_given", lambda root, fold: run(GIVEN, fold))
    monkeypatch.setattr(benchmark, "hidden_pairs", lambda root, fold, seed: run(HIDDEN, fold, seed))
    main(seeds=1, folds=2, given_folds=1, default_folds=0, root=tmp_path)
    assert calls == [(NEW, 0, 0), (NEW, 1, 0), (HIDDEN, 0, 0), (HIDDEN, 1, 0), (GIVEN, 0, 0)]
    calls.clear()
    main(seeds=2, folds=2, given_folds=2, default_folds=0, root=tmp_path)
    assert calls == [(GIVEN, 1, 0), (HIDDEN, 0, 1), (HIDDEN, 1, 1)]
    assert len(json.loads((own_runs / "side_effects.json").read_text())["runs"]) == 8


def test_kernels_are_larger_for_more_similar_molecules():
    pytest.importorskip("rdkit", reason="molecules need RDKit")
    for kernel in benchmark._kernels(["CCCCO", "CCCCCO", "c1ccccc1C(=O)O"]).values():
        np.testing.assert_allclose(np.diag(kernel), 1)
        assert kernel[0, 1] > kernel[0, 2]
