from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
    def seeds(content: dict[str, Any]) -> set[int]:
        return set(content["seeds"])

    files.check_kept("one", seeds, {1}, replace=True)
    files.write_results("one", {"seeds": [1, 2]}, replace=True)
    files.check_kept("one", seeds, {1}, replace=False)
    files.check_kept("one", seeds, {1, 2, 3}, replace=True)
    with pytest.raises(SystemExit, match=r"all rows and seeds of .* 1 of them, such as 2\); run them too"):
        files.check_kept("one", seeds, {1, 3}, replace=True)


def test_a_comparison_goes_on_from_what_it_would_replace(results: Path, own_runs: Path) -> None:
    assert files.earlier_file("one") is None
    for made, replace in ((results / "one.json", True), (own_runs / "one.json", False)):
        files.write_results("one", {}, replace=replace)
        assert files.earlier_file("one") == made
    assert files.earlier_file("one", replace=True) == results / "one.json"
    for folder, replace in ((results, True), (own_runs, False)):
        files.write_partial("one", {}, replace=replace)
        assert files.earlier_file("one", replace=replace) == folder / "one.part"
    files.write_results("one", {})
    assert files.earlier_file("one") == own_runs / "one.json"
