import json
from dataclasses import asdict

from benchmarks.accuracy.runs import Row
from benchmarks.report import speed
from tools.endurance import ROUNDS


def row(*names, agrees=True):
    mode = {"minutes_per_epoch": {"median": 0.5, "q1": 0.4, "q3": 0.6}}
    mode["speedup"] = {"median": 2.0, "q1": 1.9, "q3": 2.1}
    return {"row": asdict(Row(*names)), "agrees": agrees, "training": mode, "testing": mode}


MACHINE = {"cuda": None, "processor": "CPU", "versions": {"torch": "2", "torch-geometric": "2"}}


def test_measured_and_published_times_share_a_table(results):
    assert speed.family() == ["Not measured."]
    settings = {"threads": 1, "rounds": 9, "batches": 5, "batch_size": 32}
    settings |= {"epochs_before": 1, "seed": 10}
    models = {"lamp": row("lamp", True, "complete"), "spen": row("spen", False)}
    models["mped-ar"] = row("mped-ar", True, agrees=False)
    datasets = {"bibtex": {"models": models}}
    content = {"environment": MACHINE, "settings": settings, "datasets": datasets}
    (results / "family-cpu.json").write_text(json.dumps(content))
    lines = speed.family()
    assert lines[2].startswith("| bibtex | LaMP fmp fc | 0.500 [0.400, 0.600] (0.376) | 2.00 (2.1)")
    assert lines[2].endswith("| 0.500 [0.400, 0.600] (0.080) | 2.00 (2.1) |")
    assert "| bibtex | SPEN | 0.500 [0.400, 0.600] | 2.00 | 0.500 [0.400, 0.600] | 2.00 |" in lines
    assert not any("autoregressive" in line for line in lines)
    assert lines[-1].startswith("- CPU, threads: 1; median [quartiles] of 9 rounds of 5 batches")


def test_the_table_shows_rounds_of_the_endurance_tool(results):
    assert speed.endured() == ["Not measured."]
    content = {"environment": MACHINE, "failed": [], "minutes": 30.2, "first_seed": 0}
    content["rounds"] = dict.fromkeys(ROUNDS, 1200)
    content["largest"] = {"bytes of a server": 3 * 2**20, "seconds until /health": 0.25}
    (results / "endurance.json").write_text(json.dumps(content))
    lines = speed.endured()
    assert len([line for line in lines if line.endswith("| 1,200 |")]) == len(ROUNDS)
    assert {"- at most 3 MiB of a server", "- at most 0.25 s until /health"} < {*lines}
    assert "- 30 minutes, seeds from 0; failed: none" in lines
    content["failed"] = ["--seed 7"]
    (results / "endurance.json").write_text(json.dumps(content))
    assert "- 30 minutes, seeds from 0; failed: `--seed 7`" in speed.endured()
