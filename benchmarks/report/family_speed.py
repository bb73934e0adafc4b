"""Minutes per epoch of models of the family, beside those of Table 4 of LaMP and Table 2 of MPED."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from benchmarks import files
from benchmarks.accuracy.paper_rows import title
from benchmarks.accuracy.papers import reported
from benchmarks.accuracy.rows import Row

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
            lines += [_line(dataset, each) for each in found["models"].values() if each["agrees"]]
    return [*lines, "", *(f"- {_machine(result)}" for result in results)]


def _line(dataset: str, found: dict[str, Any]) -> str:
    row = Row(**found["row"])
    cells = (cell for mode in MODES for cell in _cells(dataset, row.model, mode, found[mode]))
    return f"| {dataset} | {title(row)} | {' | '.join(cells)} |"


def _cells(dataset: str, name: str, mode: str, found: dict[str, Any]) -> Iterator[str]:
    """Minutes and speed-up, each with the paper's in parentheses."""
    paper, model = IN_PAPERS.get(name, ("", ""))
    minutes, theirs = found["minutes_per_epoch"], (paper, dataset, model)
    ours = f"{minutes['median']:.3f} [{minutes['q1']:.3f}, {minutes['q3']:.3f}]"
    yield _beside(ours, reported().get((*theirs, f"{MODES[mode]}_minutes_per_epoch")), 3)
    ratio = f"{found['speedup']['median']:.2f}" if "speedup" in found else ""
    yield _beside(ratio, reported().get((*theirs, f"{MODES[mode]}_speedup_over_rnn_seq2seq")), 1)


def _beside(ours: str, paper: float | None, digits: int) -> str:
    return ours if paper is None else f"{ours} ({paper:.{digits}f})".strip()


def _machine(result: dict[str, Any]) -> str:
    settings, machine = result["settings"], result["environment"]
    return (
        f"{machine['cuda'] or machine['processor']}, threads: {settings['threads']}; median [quartiles] of "
        f"{settings['rounds']} rounds of {settings['batches']} batches of {settings['batch_size']}, scaled to an epoch"
        f"; epochs of training before: {settings['epochs_before']}; seed {settings['seed']}; torch "
        f"{machine['versions']['torch']}, PyG {machine['versions']['torch-geometric']}"
    )
