import json
from pathlib import Path

import pytest

from benchmarks import gpu


def test_every_part_has_a_time_limit_and_a_stored_result(own_runs, monkeypatch):
    commands = []

    def record(command, seconds):
        commands.append((command, seconds))
        return {"state": "done" if len(commands) < 3 else "failed with status 1", "seconds": 1.0}

    monkeypatch.setattr(gpu, "_run", record)
    assert gpu.main(minutes=5.0, device="cpu", root=Path("there")) == 1
    rows = json.loads((own_runs / "gpu-cpu.json").read_text())["parts"]
    assert [row["part"] for row in rows] == list(gpu.PARTS)
    assert [row["state"] for row in rows[:3]] == ["done", "done", "failed with status 1"]
    assert all(0 < seconds <= 300 for _, seconds in commands)
    papers = next(command for command, _ in commands if "benchmarks.speed.family" in command)
    assert papers[papers.index("--root") + 1] == "there"


@pytest.mark.slow
def test_a_part_runs_as_a_user_would_run_it(own_runs):
    assert gpu.main("models-bf16,attention", minutes=0.0, device="cpu", quick=True) == 1
    assert gpu.main("correctness", device="cpu", quick=True) == 0
    assert json.loads((own_runs / "gpu-cpu.json").read_text())["parts"][0]["state"] == "done"


def test_a_part_beyond_its_time_limit_is_stopped(own_runs):
    assert gpu.main("attention-bf16", minutes=0.01, device="cpu", quick=True) == 1
    (part, *_) = json.loads((own_runs / "gpu-cpu.json").read_text())["parts"]
    assert part["state"] == "cut short after 1 s"
