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
    """Returns bags of 12 words with 5 labels. `other_test` changes the samples of the test part."""
    rng = np.random.default_rng(0)
    words = (rng.random((60, 12)) < 0.4).astype(np.float32)
    y = (words @ rng.standard_normal((12, 5)) > 0.3).astype(np.float32)
    words[TEST, 0] = 1.0
    if other_test:
        words[TEST], y[TEST] = 1.0 - words[TEST], 1.0 - y[TEST]
        words[TEST, 1] = 1.0
    return ArrayDataset(Records(sp.csr_array(words), y, list("abcde")).to_samples())


def drugs(*, other_test):
    """Returns carbon chains with 2 labels. `other_test` changes the samples of the test part."""
    ends = [(acid, amine) for acid in (0, 1) for amine in (0, 1)] * 15
    smiles = [
        f"{'N' * amine}CC{'C' * (i // 4)}{'C(=O)O' * acid}" for i, (acid, amine) in enumerate(ends)
    ]
    y = torch.tensor(ends, dtype=torch.float)
    if other_test:
        smiles = [f"c1ccccc1{text}" if i in TEST else text for i, text in enumerate(smiles)]
        y[SPLIT.test] = 1.0 - y[SPLIT.test]
    return MoleculeDataset.from_smiles(smiles, y, ["acid", "amine"], transform=molecule_features())


def task_of(row, dataset="bibtex", *, other_test=False, **smaller):
    """Returns a task of few samples with the recipe of a row."""
    recipe = recipe_of(dataset, row, **smaller)
    raw = (drugs if dataset == "sider" else samples)(other_test=other_test)
    return Task(dataset, recipe.prepare(raw, SPLIT), recipe)


def make_cell(row, dataset="bibtex", learned=None, **options):
    """Trains a small model and returns its cell."""
    task = task_of(row, dataset, channels=8, epochs=1, **options)
    return run_cell(Cell(dataset, row, 10), task, SPLIT, {}, learned)


#: Classifiers with reproducible fits. Two fits of label trees differ.
CLASSIFIERS = {"linear SVM", "classifier chain", "ensemble of chains", "ML-kNN"}
#: Rows of word inputs whose label graphs need no further files.
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
#: Models that other rows train too, with another label graph, decoder or input.
REPEATED = {
    ("bibtex", Row("lamp", False, "learned")),
    *(("bibtex", Row("lamp", True, graph)) for graph in ("complete", "learned", "prior")),
    *(("bibtex", Row("mped", True, graph)) for graph in ("learned", "prior")),
    *(("bibtex", Row("graph2graph", True, graph)) for graph in ("learned", "prior")),
    *(("bibtex", Row(name, True)) for name in ("graph2graph-ar", "mped-ar")),
    ("sider", Row("mped-ar", True)),
}


def case(dataset, row):
    """Returns the parameters of one test. The test is slow if other rows train the model too."""
    marks = [pytest.mark.slow] * ((dataset, row) in REPEATED)
    return pytest.param(dataset, row, marks=marks, id=f"{dataset}-{row.title}")


@pytest.mark.parametrize(
    ("dataset", "row"),
    [case("bibtex", row) for row in sorted(ROWS, key=lambda row: row.title)]
    + [case("sider", row) for row in MOLECULE_ROWS],
)
def test_training_and_tuning_see_no_test_sample(dataset, row, monkeypatch):
    def forest(seed=0):
        return ForestBaseline(30, criterion="gini", random_state=seed)

    monkeypatch.setattr("benchmarks.accuracy.baselines.forest", forest)
    cell, other_cell = (
        make_cell(row, dataset, other_test=other_test) for other_test in (False, True)
    )
    assert cell["run"]["metrics"] != other_cell["run"]["metrics"]  # The test samples differ.
    # Fingerprints cover the inputs, label graph, weights and validation scores.
    assert cell.get("fingerprints") == other_cell.get("fingerprints")
    for key in ("thresholds", "on_validation", "validation", "density"):
        assert cell["run"][key] == other_cell["run"][key]


@pytest.mark.parametrize("model", ["lamp", pytest.param("mped", marks=pytest.mark.slow)])
def test_the_model_behind_a_learned_graph_is_trained_once(model):
    node_messages = model != "lamp"
    rows = Row(model, node_messages, "learned"), Row(model, node_messages, "complete")
    learned = {}
    alone = make_cell(rows[0])
    first, second = (make_cell(row, learned=learned) for row in rows[::-1])
    assert list(learned) == [Cell("bibtex", rows[1], 10)]
    assert alone["fingerprints"] == second["fingerprints"] != first["fingerprints"]
    assert second["run"]["metrics"] == alone["run"]["metrics"]
    # Only the second cell counts the time of learning the label graph.
    assert second["run"]["seconds"] > first["run"]["seconds"]


def test_a_model_of_given_labels_is_validated_without_given_labels():
    run = make_cell(Row("lamp-given", False, "complete"))["run"]
    expected = run["on_validation"]["average_precision_macro"]
    assert run["validation"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "part"), [("seq2seq", RecurrentEncoder), ("gaml", FeatureMessagePassing)]
)
def test_compared_models_have_the_encoder_of_the_paper(name, part):
    for row in (row for table in TABLES.values() for row in table.rows if row.model == name):
        modules = untrained(row, task_of(row, channels=8), SPLIT).modules()
        assert any(isinstance(module, part) for module in modules)


def test_the_vocabulary_has_no_words_of_test_documents():
    train = [["a", "b"], ["b", "c"]]
    encode, test_parts = TextOptions().encode, (["d"], ["a", "e", "e", "e"])
    encoded, other_encoded = (encode(train, [*train, test]) for test in test_parts)
    assert encoded[1] == other_encoded[1] == ["<unk>", "b", "a", "c"]


def test_fingerprints_depend_on_keys_shapes_types_and_nesting():
    values = [{"a": torch.zeros(2)}, {"a": torch.zeros(2, dtype=torch.long)}]
    values += [{"a": torch.zeros(1, 2)}, {"b": torch.zeros(2)}, [1, [2]], [[1], 2], None]
    assert len({fingerprint(value) for value in values}) == len(values)
    assert fingerprint({"a": torch.zeros(2)}) == fingerprint(values[0])


def settings(row, **smaller):
    return settings_of(Cell("bibtex", row, 10), task_of(row, **smaller), SPLIT, {"sha256": "0"})


def test_settings_contain_smaller_sizes_and_changes():
    row, three_steps = Row("lamp", False, "complete"), Row("lamp", False, "complete", change="T=3")
    changed = settings(row, channels=8, epochs=2)
    assert (changed["model"]["channels"], changed["fit"]["max_epochs"]) == (8, 2)
    assert changed != settings(row)
    assert settings(three_steps)["model"]["num_steps"] == 3
    assert Cell("bibtex", three_steps, 10).name == "cells/bibtex/lamp-complete-T=3-s10"


TRACKED = stored(tracked=True)


@pytest.mark.parametrize("name", sorted(TRACKED["dataset"].unique()))
def test_tracked_cells_have_the_settings_of_the_current_recipes(name):
    for _, cell in TRACKED[TRACKED["dataset"] == name].iterrows():
        if cell["row"].node_messages is not None:
            recipe, recorded = recipe_of(name, cell["row"]), cell["content"]["settings"]
            for part in ("model", "module", "fit", "objective"):
                expected = json.loads(json.dumps(getattr(recipe, part)))
                message = Cell(name, cell["row"], cell["seed"]).name, part
                assert recorded[part] == {**recorded[part], **expected}, message
            assert recorded["batch_size"] == recipe.batch_size


def test_label_dropout_applies_only_to_attention_among_labels():
    row = Row("lamp", False, "complete", change="label dropout 0.75")
    task = task_of(row, channels=8)
    modules = untrained(row, task, SPLIT).modules()
    convs = [module for module in modules if isinstance(module, AttentionConv)]
    dropouts = {type(conv): conv.attention_dropout for conv in convs}
    assert dropouts == {FeatureToLabelConv: task.recipe.model["dropout"], LabelToLabelConv: 0.75}
    assert settings(row) != settings(replace(row, change=None))


@pytest.mark.parametrize(
    ("row", "default"),
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
def test_settings_contain_defaults_of_unspecified_options(row, default, monkeypatch):
    original = settings(row)
    assert original == settings(row)
    change_default(*default, monkeypatch)
    assert settings(row) != original


def change_default(call, name, monkeypatch):
    """Doubles the default of one parameter of `call`."""
    function = inspect.unwrap(call.__init__ if isinstance(call, type) else call)
    if name in (function.__kwdefaults__ or {}):
        monkeypatch.setitem(function.__kwdefaults__, name, 2 * function.__kwdefaults__[name])
    else:
        parameters = inspect.signature(function).parameters.values()
        defaults = [p for p in parameters if p.default is not p.empty]
        defaults = [p for p in defaults if p.kind is p.POSITIONAL_OR_KEYWORD]
        values = tuple(2 * p.default if p.name == name else p.default for p in defaults)
        monkeypatch.setattr(function, "__defaults__", values)


def test_settings_of_classifiers_are_recorded():
    assert settings(Row("linear SVM")) == {
        "data": "0",
        "split": "official",
        "settings": {"inputs": "TF-IDF (sublinear), unit length; vectors standardised"},
        "model": {"loss": "hinge", "C": 1.0, "grid": [0.1, 0.3, 1.0, 3.0, 10.0]},
    }
    assert rivals("sider", 10)["random forest"].settings["grid"]["min_samples_leaf"] == (1, 2, 5)
    assert "random_state" not in rivals("sider", 10)["classifier chain"].settings
