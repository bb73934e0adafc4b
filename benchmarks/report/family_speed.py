"""Minutes per epoch of models of the family, beside those of Table 4 of LaMP and Table 2 of MPED."""

from __future__ import annotations

import json
from typing import Any

from benchmarks import files
from benchmarks.accuracy.paper_rows import NAMES
from benchmarks.accuracy.papers import reported

MODES = {"training": "train", "testing": "test"}
#: Models as the papers call them.
IN_PAPERS = {
    "lamp": ("lamp2019", "LaMP"),
    "mped": ("mped2019", "MPED"),
    "mped-ar": ("mped2019", "MPED Autoregressive"),
    "mp-br": ("mped2019", "MP BR"),
    "seq2seq": ("mped2019", "RNN Seq2Seq"),
}


def table() -> list[str]:
    """One line for each machine, data set and model."""
    results = [json.loads(path.read_text()) for path in sorted(files.RESULTS.glob("family-*.json"))]
    if not results:
        return ["Not measured."]
    lines = [
        "| data | model | training | x RNN Seq2Seq | testing | x RNN Seq2Seq |",
        "|---|---|---|---|---|---|",
    ]
    for result in results:
        for dataset, found in result["datasets"].items():
            lines += [_line(dataset, name, row) for name, row in found["models"].items() if row["agrees"]]
    return [*lines, "", *(f"- {_machine(result)}" for result in results)]


def _line(dataset: str, name: str, row: dict[str, Any]) -> str:
    cells = (cell for mode in MODES for cell in (_minutes(dataset, name, mode, row[mode]), _speedup(row[mode])))
    return f"| {dataset} | {NAMES[name]} | {' | '.join(cells)} |"


def _minutes(dataset: str, name: str, mode: str, found: dict[str, Any]) -> str:
    minutes = found["minutes_per_epoch"]
    paper, model = IN_PAPERS.get(name, ("", ""))
    theirs = reported().get((paper, dataset, model, f"{MODES[mode]}_minutes_per_epoch"))
    ours = f"{minutes['median']:.3f} [{minutes['q1']:.3f}, {minutes['q3']:.3f}]"
    return ours if theirs is None else f"{ours} ({theirs:.3f})"


def _speedup(found: dict[str, Any]) -> str:
    return f"{found['speedup']['median']:.2f}" if "speedup" in found else ""


def _machine(result: dict[str, Any]) -> str:
    settings, machine = result["settings"], result["environment"]
    return (
        f"{machine['cuda'] or machine['processor']}, {settings['threads']} threads; median [quartiles] of "
        f"{settings['rounds']} rounds of {settings['batches']} batches of {settings['batch_size']}, scaled to an epoch"
        f", after {settings['epochs_before']} epochs of training; seed {settings['seed']}; torch "
        f"{machine['versions']['torch']}, PyG {machine['versions']['torch-geometric']}"
    )
