from __future__ import annotations

import json
from pathlib import Path

import joblib
import pytest

from benchmarks import files


def test_tracked_results_are_replaced_on_request_only(results: Path, own_runs: Path) -> None:
    (results / "one.json").write_text("tracked")
    assert files.write_results("one", {"a": 1}) == own_runs / "one.json"
    assert (results / "one.json").read_text() == "tracked"
    files.write_results("one", {"a": 2}, replace=True)
    assert json.loads((results / "one.json").read_text())["a"] == 2
    assert json.loads((own_runs / "one.json").read_text())["a"] == 1


def test_reduced_runs_replace_nothing() -> None:
    with pytest.raises(SystemExit, match=r"whole run with --replace \(got --max_epochs\)"):
        files.check_replacement(True, max_epochs=3, quick=False)
    files.check_replacement(True, quick=False)
    files.check_replacement(False, quick=True)


def test_results_are_replaced_by_no_fewer(results: Path) -> None:
    def seed(run: files.Run) -> int:
        return int(run["seed"])

    files.check_kept("one", seed, {1}, replace=True)
    files.write_results("one", {"runs": [{"seed": 1}, {"seed": 2}]}, replace=True)
    files.check_kept("one", seed, {1}, replace=False)
    files.check_kept("one", seed, {1, 2, 3}, replace=True)
    with pytest.raises(SystemExit, match=r"all rows and seeds of .* 1 of them, such as 2\); run them too"):
        files.check_kept("one", seed, {1, 3}, replace=True)


def test_a_comparison_goes_on_from_what_it_would_replace(results: Path, own_runs: Path) -> None:
    assert files.earlier_file("one") is None
    for made, replace in ((results / "one.json", True), (own_runs / "one.json", False)):
        files.write_results("one", {}, replace=replace)
        assert files.earlier_file("one") == made
    assert files.earlier_file("one", replace=True) == results / "one.json"
    for folder, replace in ((results, True), (own_runs, False)):
        (folder / "one.part").write_text("{}")
        assert files.earlier_file("one", replace=replace) == folder / "one.part"
    files.write_results("one", {})
    assert files.earlier_file("one") == own_runs / "one.json"


def test_what_there_is_so_far_is_kept(own_runs: Path) -> None:
    def make(seed: int) -> list[files.Run]:
        if seed == 2:
            raise RuntimeError("stopped early")
        return [{"seed": seed}]

    calls = [joblib.delayed(make)(seed) for seed in (1, 2)]
    with pytest.raises(RuntimeError, match="stopped early"):
        files.collect("one", {"a": 1}, calls, str, earlier=[{"seed": 0}])
    assert json.loads((own_runs / "one.part").read_text())["runs"] == [{"seed": 0}, {"seed": 1}]
    found = json.loads(files.collect("one", {"a": 1}, calls[:1], str).read_text())
    assert (found["a"], found["runs"]) == (1, [{"seed": 1}])
    assert found["environment"]["command"].startswith("python ")
    assert not (own_runs / "one.part").exists()
