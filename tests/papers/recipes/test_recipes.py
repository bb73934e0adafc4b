from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.papers.recipes.conftest import FEW
from tg_mlc.graphs import fully_connected
from tg_mlc.inputs import Chain
from tg_mlc.metrics import ThresholdTuner, macro_roc_auc
from tg_mlc.nn.given import takes_given_labels
from tg_mlc.papers.recipes import RECIPES
from tg_mlc.papers.recipes.family import FAMILY

SHORT = {"node_messages": False, "max_epochs": 1, "logger": False}


def test_words_of_the_dictionary_are_those_that_labels_stand_for(dataset, monkeypatch):
    dataset.label_descriptions = {"b": "Coconut oil"}
    dataset.label_parents = [("c", "d")]
    prepared = RECIPES["bibtex"].prepare(dataset, FEW)
    queries = []
    wordnet = "tg_mlc.papers.recipes.tables.wordnet"
    monkeypatch.setattr(wordnet, lambda names, words: queries.append(words))
    RECIPES["bibtex"].label_graph("wordnet", prepared, FEW)
    assert queries == [{"TAG_cat": "cat", "b": "Coconut oil", "c": "c", "d": "d"}]
    tree = RECIPES["rcv1-sample"].label_graph("tree", prepared, FEW).edge_index.t().tolist()
    assert [[2, 3] in tree, [2, 1] in tree] == [True, False]


def test_a_prepared_data_set_has_its_preprocessor(dataset, tmp_path):
    recipe, graph = RECIPES["bibtex"], fully_connected(dataset.label_names)
    with pytest.raises(ValueError, match=r"that 'recipe\.prepare' returns .*; call it first"):
        recipe.train(dataset, FEW, graph, tmp_path / "run")
    prepared = recipe.prepare(dataset, FEW)
    assert isinstance(prepared.preprocessor, Chain)
    assert dataset.preprocessor is None
    result, _ = recipe.train(prepared, FEW, graph, tmp_path / "run", **SHORT)
    assert result.module.preprocessor is prepared.preprocessor


def test_scores_before_training_are_those_of_base_scores_alone(dataset):
    recipe = RECIPES["bibtex"]
    prepared = recipe.prepare(dataset, FEW)
    on_val, on_test = recipe.untrained_scores(prepared, FEW)
    copies = [scores.clone() for scores in (on_val, on_test)]
    # Other weights have the same scores.
    torch.testing.assert_close(recipe.untrained_scores(prepared, FEW), tuple(copies))
    assert on_test.std(dim=0).min() > 0
    assert macro_roc_auc(dataset.y[FEW.test], on_test) > 0.6


def test_labels_that_are_too_rare_do_not_count(dataset):
    recipe = replace(RECIPES["bibtex"], data=replace(RECIPES["bibtex"].data, min_positives=2))
    dataset.y[:, 1] = (torch.arange(40) == 39).float()
    scores, columns = torch.rand(40, 4), [0, 2, 3]
    evaluation = recipe.evaluate(dataset, FEW, scores[FEW.val], scores[FEW.test])
    assert evaluation.num_labels == recipe.counted_labels(dataset).sum() == 3
    val, test = ((dataset.y[rows][:, columns], scores[rows][:, columns]) for rows in FEW.parts[1:])
    assert evaluation["roc_auc_macro"] == macro_roc_auc(*test)
    assert evaluation.thresholds["f1_micro"] == ThresholdTuner().fit(*val).threshold


def test_rivals_keep_their_own_learning_rates():
    reuters = RECIPES["reuters"]
    rates = {"lamp": 1e-3, "lamp-given": 1e-3, "seq2seq": 2e-3, "mped": 5e-4}
    assert {name: reuters.as_member(FAMILY[name]).module["lr"] for name in rates} == rates


def test_lamp_of_the_family_is_lamp_as_published(dataset, tmp_path):
    published, lamp = RECIPES["bibtex"].as_published(), RECIPES["bibtex"].as_member(FAMILY["lamp"])
    assert lamp == published
    known = RECIPES["bibtex"].as_member(FAMILY["lamp-given"])
    assert known.model == {**published.model, "given_labels": True}
    assert known.objective == {**published.objective, "max_given": 0.75}
    prepared = known.prepare(dataset, FEW)
    graph = known.label_graph("complete", prepared, FEW)
    result, _ = known.train(prepared, FEW, graph, tmp_path / "run", **SHORT)
    assert takes_given_labels(result.module.model)
