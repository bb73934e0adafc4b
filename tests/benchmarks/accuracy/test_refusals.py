"""Every comparison refuses invalid options before training."""

import json

import pytest

from benchmarks.accuracy import (
    auto,
    given_labels,
    lanet_tables,
    learning_curve,
    paper_tables,
    prior_vs_learned,
    settings,
)
from benchmarks.accuracy.learning_curve import DEFAULT
from tests.sequences.histories import histories


@pytest.mark.parametrize(
    ("main", "options"),
    [
        (auto.main, {"seconds": auto.SECONDS - 1}),
        (given_labels.main, {"max_epochs": 1}),
        (lanet_tables.main, {"max_epochs": 1}),
        (lanet_tables.main, {"batches": 1}),
        (lanet_tables.main, {"draws": 3}),
        (paper_tables.main, {"epochs": 1}),
        (paper_tables.main, {"channels": 8}),
        (prior_vs_learned.main, {"max_epochs": 3}),
        (settings.main, {"channels": 8}),
    ],
)
def test_reduced_runs_cannot_replace_tracked_results(main, options):
    option = next(iter(options))
    with pytest.raises(SystemExit, match=f"whole run with --replace \\(got --{option}\\)"):
        main(replace=True, **options)


PRIOR = prior_vs_learned.main
ABLATION = {"dataset": "sider", "ablation": True}
WORDNET = {"dataset": "nci", "graphs": "edgeless,wordnet"}
RANDOM = {"dataset": "bibtex", "split": "random"}


@pytest.mark.parametrize(
    ("main", "options", "message"),
    [
        (PRIOR, ABLATION, "--dataset of --ablation to be one of bibtex"),
        (settings.main, {"dataset": "sider"}, "--dataset to be one of bibtex"),
        (given_labels.main, {"dataset": "planted-50"}, r"one of bibtex, .* \(got planted-50\)"),
        (learning_curve.main, {"dataset": "planted-50"}, "bags of words, or nci"),
        (learning_curve.main, {"dataset": "nothing"}, r"one of sider, .* \(got nothing\)"),
        (PRIOR, {"dataset": "nothing"}, "--dataset to be one of sider, tox21"),
        (PRIOR, RANDOM, "--split of bibtex to be one of official"),
        (PRIOR, WORDNET, "--graphs of nci' to be some of edgeless"),
    ],
)
def test_unknown_values_of_options_are_refused(main, options, message, root):
    with pytest.raises(SystemExit, match=message):
        main(root=root, **options)


@pytest.fixture
def few_events(monkeypatch):
    monkeypatch.setattr(lanet_tables, "load_events", lambda *_, **__: histories(num_rows=800))


@pytest.mark.parametrize(("option", "value"), [("cells", "table_9"), ("tables", "table 9")])
def test_unknown_cells_and_tables_are_refused(option, value, few_events):
    with pytest.raises(SystemExit, match=f"'{option}' to be some of .*\\(got '{value}'\\)"):
        lanet_tables.main(**{option: value})


def _runs(model, *seeds, **fields):
    return [{"model": model, "seed": seed, **fields} for seed in seeds]


ROW = {"node_messages": None, "graph": None, "settings": None, "change": None}
EL = {"node_messages": False, "graph": "edgeless", "settings": "best", "change": None}
PLANTED = [*_runs("label frequency", 10, 11, **ROW), *_runs("LaMP", 10, 11, **EL)]
SCENE, EMOTIONS = {"dataset": "scene", "seed": 0}, {"datasets": "emotions", "seeds": 1}
LSTM, ONE_CELL = "table 3: LSTM", {"cells": "table_3.lstm", "seeds": "0"}
EPOCHS = [*_runs(DEFAULT, 0, epoch=1), *_runs(DEFAULT, 0, epoch=2)]
NCI = {"dataset": "nci", "epochs": 1, "seeds": 1}
COMPARISON = "prior_vs_learned-planted-50-official"


@pytest.mark.parametrize(
    ("main", "name", "runs", "options", "missing"),
    [
        (auto.main, "default", [SCENE], EMOTIONS, "'scene', 0"),
        (lanet_tables.main, "lanet-complete_journey", _runs(LSTM, 0, 1), ONE_CELL, f"'{LSTM}', 1"),
        (learning_curve.main, "learning_curve-nci", EPOCHS, NCI, f"'{DEFAULT}', 0, 2"),
        (PRIOR, COMPARISON, PLANTED, {"seeds": 1, "graphs": "edgeless"}, "Row"),
        (PRIOR, COMPARISON, PLANTED, {"seeds": 2, "graphs": "complete"}, "Row"),
    ],
)
@pytest.mark.usefixtures("few_events", "own_runs")
def test_fewer_rows_or_seeds_cannot_replace_tracked_results(
    main, name, runs, options, missing, root, results, monkeypatch
):
    monkeypatch.setattr(prior_vs_learned, "baselines", lambda *args: ["label frequency"])
    (results / f"{name}.json").write_text(json.dumps({"seconds": 1.0, "runs": runs}))
    if main is prior_vs_learned.main:
        options = {"dataset": "planted-50", "node_messages": "false", **options}
    if main is not lanet_tables.main:
        options = {"root": root, **options}
    with pytest.raises(SystemExit, match=f"all rows and seeds .*{missing}"):
        main(replace=True, **options)
