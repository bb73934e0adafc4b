from __future__ import annotations

import sys

import pytest

from benchmarks.command_line import run


@pytest.mark.parametrize(("status", "expected"), [(None, 0), (1, 1)])
def test_the_exit_status_comes_from_the_main_function(
    status: int | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def main(quick: bool = False) -> int | None:
        assert quick
        return status

    monkeypatch.setattr(sys, "argv", ["benchmark", "--quick"])
    assert run(main) == expected


def test_an_interrupted_run_prints_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def main() -> None:
        raise KeyboardInterrupt  # Ctrl-C raises KeyboardInterrupt.

    monkeypatch.setattr(sys, "argv", ["benchmark"])
    assert run(main) == 130
    assert capsys.readouterr().err == "Interrupted\n"
