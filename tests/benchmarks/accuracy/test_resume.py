from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.accuracy import baselines
from benchmarks.accuracy.prior_vs_learned import main, run_variant
from benchmarks.accuracy.rows import Row
from benchmarks.accuracy.runs import Run
from benchmarks.accuracy.summary import by_row


@pytest.fixture
def emotions(root: Path, own_runs: Path, needs_emotions: None) -> Path:
    """Trains one row, and returns its result file."""
    main(dataset="emotions", seeds=2, graphs="fc", encoders="emb", root=root, max_epochs=1)
    return own_runs / "prior_vs_learned-emotions-official.json"


def test_a_comparison_makes_only_the_rows_it_has_not(
    emotions: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = json.loads(emotions.read_text())["runs"]
    monkeypatch.setattr(baselines, "_frequency", lambda *args: pytest.fail("made again"))
    main(dataset="emotions", seeds=2, graphs="fc,el", encoders="emb", root=root, max_epochs=1, resume=True)
    result = json.loads(emotions.read_text())
    assert result["runs"][: len(before)] == before
    assert [(run["graph"], run["seed"]) for run in result["runs"][len(before) :]] == [("el", 10), ("el", 11)]
    main(dataset="emotions", seeds=1, graphs="fc", encoders="emb", root=root, max_epochs=1, resume=True)
    result = json.loads(emotions.read_text())
    assert {run["seed"] for run in result["runs"]} == set(result["seeds"]) == {10}


def test_a_comparison_that_stopped_early_goes_on(emotions: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, partial = emotions.read_text(), emotions.with_suffix(".part")

    def run_but_pr(*args: Any) -> list[Run]:
        if args[3].graph == "pr":
            raise RuntimeError("stopped early")
        return run_variant(*args)

    with monkeypatch.context() as patch:
        patch.setattr("benchmarks.accuracy.prior_vs_learned.run_variant", run_but_pr)
        with pytest.raises(RuntimeError, match="stopped early"):
            main(dataset="emotions", seeds=2, graphs="el,pr", encoders="emb", root=root, max_epochs=1)
    assert emotions.read_text() == before
    kept = json.loads(partial.read_text())["runs"]
    assert {(run["model"], run["graph"]) for run in kept} > {("label frequency", None), ("LaMP", "el")}
    main(dataset="emotions", seeds=2, graphs="el,pr", encoders="emb", root=root, max_epochs=1, resume=True)
    result = json.loads(emotions.read_text())
    assert result["runs"][: len(kept)] == kept
    assert [run["graph"] for run in result["runs"][len(kept) :]] == ["pr"] * 2
    assert not partial.exists()


def test_a_classifier_that_is_new_is_added(emotions: Path, root: Path) -> None:
    result = json.loads(emotions.read_text())
    kept = [run for run in result["runs"] if run["model"] != "logistic regression, tuned"]
    assert len(kept) < len(result["runs"])
    emotions.write_text(json.dumps({**result, "runs": kept}))
    main(dataset="emotions", seeds=2, graphs="fc", encoders="emb", root=root, max_epochs=1, resume=True)
    runs = json.loads(emotions.read_text())["runs"]
    assert runs[: len(kept)] == kept
    assert [(run["model"], run["seed"]) for run in runs[len(kept) :]] == [("logistic regression, tuned", 10)]


def test_a_row_that_was_not_compared_with_a_graph_is_made_again(
    emotions: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baselines, "_frequency", lambda *args: pytest.fail("made again"))
    main(dataset="emotions", seeds=2, graphs="correlation", encoders="emb", root=root, max_epochs=1, resume=True)
    assert "learned attention, correlation" not in recovered(emotions)
    main(dataset="emotions", seeds=2, graphs="fc,correlation", encoders="emb", root=root, max_epochs=1, resume=True)
    assert recovered(emotions) == {"learned attention, pr", "learned attention, correlation"}


def recovered(file: Path) -> set[str]:
    runs = [Run.from_dict(run) for run in json.loads(file.read_text())["runs"]]
    return set(by_row(runs)[Row("LaMP", "emb", "fc", "best")]["recovery"])


def test_encoders_that_models_do_not_have_are_named_before_training(root: Path, emotions: Path) -> None:
    with pytest.raises(SystemExit, match=r"--encoders that models of emotions have \(got vectors\)"):
        main(dataset="emotions", seeds=1, graphs="el", encoders="emb,vectors", root=root)


def test_rows_with_other_settings_are_not_kept(emotions: Path, root: Path) -> None:
    before = emotions.read_bytes()
    with pytest.raises(SystemExit, match="have the same recipes, as --resume keeps its rows"):
        main(dataset="emotions", seeds=2, graphs="el", encoders="emb", root=root, max_epochs=2, resume=True)
    assert emotions.read_bytes() == before
