from __future__ import annotations

import inspect
import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from benchmarks.accuracy.baselines import rivals
from benchmarks.accuracy.cells import (
    Cell,
    fingerprint,
    recipe_of,
    run_cell,
    settings_of,
    stored,
    untrained,
)
from benchmarks.accuracy.papers import TABLES
from benchmarks.accuracy.runs import Row, Task
from tg_mlc.baselines import ChainEnsemble, ClassifierChain, ForestBaseline, MLkNN
from tg_mlc.data import ArrayDataset, MoleculeDataset, Split
from tg_mlc.data.records import Records
from tg_mlc.datasets.base import TextOptions
from tg_mlc.inputs.smiles import molecule_features
from tg_mlc.nn import AttentionConv, FeatureMessagePassing, FeatureToLabelConv, LabelToLabelConv
from tg_mlc.nn.encoders.components import RecurrentEncoder
from tg_mlc.papers import SPEN, mped_autoregressive
from tg_mlc.papers.recipes.family import FAMILY
from tg_mlc.training import MultiLabelModule

SPLIT = Split(*torch.arange(60).split([36, 12, 12]), "by hand")
TEST = SPLIT.test.numpy()


def samples(*, other_test=False):
    """Bags of 12 words with 5 labels; on request with other labels and words in the test part."""
    rng = np.random.default_rng(0)
    words = (rng.random((60, 12)) < 0.4).astype(np.float32)
    y = (words @ rng.standard_normal((12, 5)) > 0.3).astype(np.float32)
    words[TEST, 0] = 1.0
    if other_test:
        words[TEST], y[TEST] = 1.0 - words[TEST], 1.0 - y[TEST]
        words[TEST, 1] = 1.0
    return ArrayDataset(Records(sp.csr_array(words), y, list("abcde")).to_samples())


def drugs(*, other_test):
    """Chains of carbon; on request with other labels and molecules in the test part."""
    ends = [(acid, amine) for acid in (0, 1) for amine in (0, 1)] * 15
    smiles = [
        f"{'N' * amine}CC{'C' * (i // 4)}{'C(=O)O' * acid}" for i, (acid, amine) in enumerate(ends)
    ]
    y = torch.tensor(ends, dtype=torch.float)
    if other_test:
        smiles = [f"c1ccccc1{each}" if i in TEST else each for i, each in enumerate(smiles)]
        y[SPLIT.test] = 1.0 - y[SPLIT.test]
    return MoleculeDataset.from_smiles(smiles, y, ["acid", "amine"], transform=molecule_features())


def task_of(row, dataset="bibtex", *, other_test=False, **smaller):
    """Small samples, and the recipe of a row."""
    recipe = recipe_of(dataset, row, **smaller)
    raw = (drugs if dataset == "sider" else samples)(other_test=other_test)
    return Task(dataset, recipe.prepare(raw, SPLIT), recipe)


def made(row, dataset="bibtex", learned=None, **options):
    """The cell of a small model."""
    task = task_of(row, dataset, channels=8, epochs=1, **options)
    return run_cell(Cell(dataset, row, 10), task, SPLIT, {}, learned)


#: Without label trees, of which two fits differ in any case.
CLASSIFIERS = {"linear SVM", "classifier chain", "ensemble of chains", "ML-kNN"}
#: Those that take words, along the label graphs that need no further files.
ROWS = {
    row
    for table in TABLES.values()
    for row in table.rows
    if row.model in {"lamp", *FAMILY, *CLASSIFIERS}
    and row.graph in (None, "complete", "prior", "learned")
}


#: Models of molecules, and classifiers of their fingerprints.
MOLECULE_ROWS = [Row("lamp", True, "prior"), Row("mped-ar", True)]
MOLECULE_ROWS += [Row("linear SVM"), Row("random forest")]


@pytest.mark.parametrize(
    ("dataset", "row"),
    [("bibtex", row) for row in sorted(ROWS, key=lambda row: row.title)]
    + [("sider", row) for row in MOLECULE_ROWS],
    ids=lambda value: value.title if isinstance(value, Row) else value,
)
def test_no_test_sample_reaches_what_is_learned_or_tuned(dataset, row, monkeypatch):
    def forest(seed=0):
        return ForestBaseline(30, criterion="gini", random_state=seed)

    monkeypatch.setattr("benchmarks.accuracy.baselines.forest", forest)
    ours, theirs = (made(row, dataset, other_test=other) for other in (False, True))
    assert ours["run"]["metrics"] != theirs["run"]["metrics"]  # Test samples do differ.
    # Fingerprints of inputs, label graph, weights and validation scores.
    assert ours.get("fingerprints") == theirs.get("fingerprints")
    for tuned in ("thresholds", "on_validation", "validation", "density"):
        assert ours["run"][tuned] == theirs["run"][tuned]


@pytest.mark.parametrize("model", ["lamp", "mped"])
def test_what_a_model_along_all_pairs_has_learned_is_learned_once(model):
    node_messages = model != "lamp"
    rows = Row(model, node_messages, "learned"), Row(model, node_messages, "complete")
    kept = {}
    alone = made(rows[0])
    first, after = (made(row, learned=kept) for row in rows[::-1])
    assert list(kept) == [Cell("bibtex", rows[1], 10)]
    assert alone["fingerprints"] == after["fingerprints"] != first["fingerprints"]
    assert after["run"]["metrics"] == alone["run"]["metrics"]
    # The time that the label graph took is its own.
    assert after["run"]["seconds"] > first["run"]["seconds"]


def test_a_model_that_takes_given_labels_is_validated_with_none_given():
    run = made(Row("lamp-given", False, "complete"))["run"]
    expected = run["on_validation"]["average_precision_macro"]
    assert run["validation"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "part"), [("seq2seq", RecurrentEncoder), ("gaml", FeatureMessagePassing)]
)
def test_rivals_have_the_encoder_of_their_papers(name, part):
    for row in (row for table in TABLES.values() for row in table.rows if row.model == name):
        modules = untrained(row, task_of(row, channels=8), SPLIT).modules()
        assert any(isinstance(module, part) for module in modules)


def test_no_test_document_reaches_the_vocabulary():
    train = [["a", "b"], ["b", "c"]]
    encode, others = TextOptions().encode, (["d"], ["a", "e", "e", "e"])
    ours, theirs = (encode(train, [*train, test]) for test in others)
    assert ours[1] == theirs[1] == ["<unk>", "b", "a", "c"]


def test_a_fingerprint_tells_values_types_and_order_apart():
    values = [{"a": torch.zeros(2)}, {"a": torch.zeros(2, dtype=torch.long)}]
    values += [{"a": torch.zeros(1, 2)}, {"b": torch.zeros(2)}, [1, [2]], [[1], 2], None]
    assert len({fingerprint(value) for value in values}) == len(values)
    assert fingerprint({"a": torch.zeros(2)}) == fingerprint(values[0])


def settings(row, **smaller):
    return settings_of(Cell("bibtex", row, 10), task_of(row, **smaller), SPLIT, {"sha256": "0"})


def test_settings_know_what_is_smaller():
    row, three = Row("lamp", False, "complete"), Row("lamp", False, "complete", change="T=3")
    found = settings(row, channels=8, epochs=2)
    assert (found["model"]["channels"], found["fit"]["max_epochs"]) == (8, 2)
    assert found != settings(row)
    assert settings(three)["model"]["num_steps"] == 3
    assert Cell("bibtex", three, 10).name == "cells/bibtex/lamp-complete-T=3-s10"


TRACKED = stored(tracked=True)


@pytest.mark.parametrize("name", sorted(TRACKED["dataset"].unique()))
def test_tracked_cells_were_trained_as_recipes_say_today(name):
    for _, cell in TRACKED[TRACKED["dataset"] == name].iterrows():
        if cell["row"].node_messages is not None:
            recipe, settings = recipe_of(name, cell["row"]), cell["content"]["settings"]
            for part in ("model", "module", "fit", "objective"):
                said = json.loads(json.dumps(getattr(recipe, part)))
                where = Cell(name, cell["row"], cell["seed"]).name, part
                assert settings[part] == {**settings[part], **said}, where
            assert settings["batch_size"] == recipe.batch_size


def test_label_dropout_is_that_of_attention_among_labels_alone():
    row = Row("lamp", False, "complete", change="label dropout 0.75")
    task = task_of(row, channels=8)
    modules = untrained(row, task, SPLIT).modules()
    convs = [module for module in modules if isinstance(module, AttentionConv)]
    found = {type(conv): conv.attention_dropout for conv in convs}
    assert found == {FeatureToLabelConv: task.recipe.model["dropout"], LabelToLabelConv: 0.75}
    assert settings(row) != settings(replace(row, change=None))


@pytest.mark.parametrize(
    ("row", "changed"),
    [
        (Row("lamp", False, "complete"), (AttentionConv, "heads")),
        (Row("mped-ar", True), (mped_autoregressive, "heads")),
        (Row("spen", False), (SPEN, "num_steps")),
        (Row("lamp", False, "complete"), (MultiLabelModule, "eps")),
        (Row("ML-kNN"), (MLkNN, "smoothing")),
        (Row("ensemble of chains"), (ChainEnsemble, "n_estimators")),
        (Row("ensemble of chains"), (ChainEnsemble, "C")),
        (Row("classifier chain"), (ClassifierChain, "C")),
    ],
    ids=lambda value: value.title if isinstance(value, Row) else value[1],
)
def test_settings_know_what_is_not_said(row, changed, monkeypatch):
    before = settings(row)
    assert before == settings(row)
    change_default(*changed, monkeypatch)
    assert settings(row) != before


def change_default(call, name, monkeypatch):
    """Doubles the default of an option."""
    function = inspect.unwrap(call.__init__ if isinstance(call, type) else call)
    if name in (function.__kwdefaults__ or {}):
        monkeypatch.setitem(function.__kwdefaults__, name, 2 * function.__kwdefaults__[name])
    else:
        parameters = inspect.signature(function).parameters.values()
        defaults = [p for p in parameters if p.default is not p.empty]
        defaults = [p for p in defaults if p.kind is p.POSITIONAL_OR_KEYWORD]
        values = tuple(2 * p.default if p.name == name else p.default for p in defaults)
        monkeypatch.setattr(function, "__defaults__", values)


def test_settings_of_a_classifier():
    assert settings(Row("linear SVM")) == {
        "data": "0",
        "split": "official",
        "settings": {"inputs": "TF-IDF (sublinear), unit length; vectors standardised"},
        "model": {"loss": "hinge", "C": 1.0, "grid": [0.1, 0.3, 1.0, 3.0, 10.0]},
    }
    assert rivals("sider", 10)["random forest"].settings["grid"]["min_samples_leaf"] == (1, 2, 5)
    assert "random_state" not in rivals("sider", 10)["classifier chain"].settings
