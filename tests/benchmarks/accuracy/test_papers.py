import pytest

from benchmarks.accuracy.papers import (
    DIFFERENT,
    GRAPHS,
    NAMES,
    TABLES,
    figures,
    own_rows,
    reported,
    title,
)
from benchmarks.accuracy.runs import Row
from tg_mlc.papers import pooled_mlp
from tg_mlc.papers.recipes import RECIPES
from tg_mlc.papers.recipes.family import FAMILY
from tg_mlc.papers.recipes.recipe import Member


def test_figures_equal_those_of_the_papers():
    best = "best of the papers' message passing"
    metrics = ("f1_samples", "f1_micro", "f1_macro", "subset_accuracy")
    assert figures("bibtex")["arXiv:1904.08049, FMP + LaMP_fc"]["f1_samples"] == 0.445
    assert [figures("bibtex")[best][metric] for metric in metrics] == [0.447, 0.473, 0.376, 0.197]
    assert figures("delicious")[best]["subset_accuracy"] < 0.02  # One paper has a misprint.
    assert figures("rcv1")[f"{best} (34 times the training samples)"]["subset_accuracy"] > 0.5
    assert figures("emotions") == {}


def test_every_data_set_of_the_papers_has_a_recipe_or_no_files():
    names = {dataset for _, dataset, _, _ in reported()}
    assert names - set(RECIPES) == {"tfbs"}
    assert set(DIFFERENT) < names
    assert figures("nuswide")


@pytest.mark.parametrize("name", TABLES)
def test_rows_have_the_model_names_of_the_papers(name):
    table = TABLES[name]
    known = {model for paper, _, model, _ in reported() if paper == table.paper}
    assert {model_name for names in table.rows.values() for model_name in names} <= known
    assert len({title(row) for row in table.rows}) == len(table.rows)


def test_every_network_of_the_papers_is_in_the_family_and_has_a_name():
    assert own_rows() == []
    networks = [
        row
        for table in TABLES.values()
        for row in table.papers_rows
        if row.node_messages is not None
    ]
    assert {row.model for row in networks} == NAMES.keys() == FAMILY.keys()
    for row in networks:
        assert (row.graph is not None) == FAMILY[row.model].uses_graph


@pytest.mark.parametrize("uses_graph", [False, True])
def test_a_rival_of_ones_own_has_rows_in_every_table(uses_graph, monkeypatch):
    monkeypatch.setitem(FAMILY, "mine", Member(pooled_mlp, uses_graph=uses_graph))
    graphs = GRAPHS if uses_graph else [None]
    expected = [Row("mine", flag, graph) for flag in (False, True) for graph in graphs]
    for table in TABLES.values():
        assert [row for row in table.rows if row.model == "mine"] == expected
    titles = {title(row) for row in expected}
    assert len(titles) == len(expected)
    assert ("mine fmp" in titles) != uses_graph


def test_titles_name_graphs_and_changes():
    assert title(Row("lamp", True, "prior")) == "LaMP fmp pr"
    assert title(Row("mped", True, "complete", change="T=1")) == "MPED fc, T=1"
    assert title(Row("label frequency")) == "label frequency"
