"""Refusals of every comparison before it trains anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

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

Main = Callable[..., Any]


@pytest.mark.parametrize(
    ("main", "reduced"),
    [
        (auto.main, {"seconds": auto.SECONDS - 1}),
        (given_labels.main, {"max_epochs": 1}),
        *((lanet_tables.main, each) for each in ({"max_epochs": 1}, {"batches": 1}, {"draws": 3})),
        *((paper_tables.main, each) for each in ({"epochs": 1}, {"channels": 8})),
        (prior_vs_learned.main, {"max_epochs": 3}),
        (settings.main, {"channels": 8}),
    ],
)
def test_shortened_runs_replace_no_tracked_results(main: Main, reduced: dict[str, Any]) -> None:
    with pytest.raises(
        SystemExit, match=f"whole run with --replace \\(got --{next(iter(reduced))}\\)"
    ):
        main(replace=True, **reduced)


@pytest.mark.parametrize(
    ("main", "options", "told"),
    [
        (
            prior_vs_learned.main,
            {"dataset": "sider", "ablation": True},
            "--dataset of --ablation to be one of bibtex",
        ),
        (settings.main, {"dataset": "sider"}, "--dataset to be one of bibtex"),
        (given_labels.main, {"dataset": "planted-50"}, r"one of bibtex, .* \(got planted-50\)"),
        (learning_curve.main, {"dataset": "planted-50"}, "bags of words, or nci"),
        (learning_curve.main, {"dataset": "nothing"}, r"one of sider, .* \(got nothing\)"),
        (prior_vs_learned.main, {"dataset": "nothing"}, "--dataset to be one of sider, tox21"),
        (
            prior_vs_learned.main,
            {"dataset": "bibtex", "split": "random"},
            "--split of bibtex to be one of official",
        ),
        (
            prior_vs_learned.main,
            {"dataset": "nci", "graphs": "edgeless,wordnet"},
            "--graphs of nci' to be some of edgeless",
        ),
    ],
)
def test_what_is_not_there_is_refused(
    main: Main, options: dict[str, Any], told: str, root: Path
) -> None:
    with pytest.raises(SystemExit, match=told):
        main(root=root, **options)


@pytest.mark.parametrize(
    ("options", "option"), [({"cells": "table_9"}, "cells"), ({"tables": "table 9"}, "tables")]
)
def test_unknown_cells_and_tables_are_refused(
    options: dict[str, str], option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanet_tables, "load_events", lambda *_, **__: histories(num_rows=800))
    with pytest.raises(
        SystemExit, match=f"Expected '{option}' to be some of .*\\(got 'table.9'\\)"
    ):
        lanet_tables.main(**options)


def _runs(model: str, *seeds: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"model": model, "seed": seed, **fields} for seed in seeds]


ROW = {"node_messages": None, "graph": None, "settings": None, "change": None}
EL = {"node_messages": False, "graph": "edgeless", "settings": "best", "change": None}
PLANTED = [*_runs("label frequency", 10, 11, **ROW), *_runs("LaMP", 10, 11, **EL)]


@pytest.mark.parametrize(
    ("main", "name", "runs", "options", "lost"),
    [
        (
            auto.main,
            "default",
            [{"dataset": "scene", "seed": 0}],
            {"datasets": "emotions", "seeds": 1},
            "'scene', 0",
        ),
        (
            lanet_tables.main,
            "lanet-complete_journey",
            _runs("table 3: LSTM", 0, 1),
            {"cells": "table_3.lstm", "seeds": "0"},
            "'table 3: LSTM', 1",
        ),
        (
            learning_curve.main,
            "learning_curve-nci",
            [*_runs(DEFAULT, 0, epoch=1), *_runs(DEFAULT, 0, epoch=2)],
            {"dataset": "nci", "epochs": 1, "seeds": 1},
            f"'{DEFAULT}', 0, 2",
        ),
        *(
            (prior_vs_learned.main, "prior_vs_learned-planted-50-official", PLANTED, options, "Row")
            for options in ({"seeds": 1, "graphs": "edgeless"}, {"seeds": 2, "graphs": "complete"})
        ),
    ],
)
def test_fewer_rows_or_seeds_replace_no_tracked_results(
    main: Main,
    name: str,
    runs: list[dict[str, Any]],
    options: dict[str, Any],
    lost: str,
    root: Path,
    results: Path,
    own_runs: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lanet_tables, "load_events", lambda *_, **__: histories(num_rows=800))
    monkeypatch.setattr(prior_vs_learned, "baselines", lambda *args: ["label frequency"])
    (results / f"{name}.json").write_text(json.dumps({"seconds": 1.0, "runs": runs}))
    if main is prior_vs_learned.main:
        options = {"dataset": "planted-50", "node_messages": "false", **options}
    if main is not lanet_tables.main:
        options = {"root": root, **options}
    with pytest.raises(SystemExit, match=f"all rows and seeds .*{lost}"):
        main(replace=True, **options)
