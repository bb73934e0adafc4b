"""Time and memory of label states and coherent heads as hierarchies grow to 100,000 labels.

    python -m benchmarks.speed.hierarchies

Labels form a synthetic tree whose labels have ten children; states have 64 channels, and a sample
32 components. A training step is forward, coherent loss, backward and Adam, of one sample and one
step of messages; inference is the coherent probabilities of all labels, or of a shortlist: 100
candidates and their ancestors. The dense head is the definition in the paper, a maximum over a
matrix of all labels for every sample (here of 4). A step along all pairs of labels takes the
complete label graph instead of the tree. Each number of labels is measured in a separate process;
memory is its peak beyond the imports, before the dense head and the complete graph are measured.
"""

from __future__ import annotations

import multiprocessing
import resource
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.command_line import run
from benchmarks.files import write_results
from benchmarks.speed.measure import interleave, quartiles
from tg_mlc.graphs import LabelGraph, fully_connected, tree
from tg_mlc.nn import CoherentHead, LabelHead, LabelMessagePassing, Shortlister

NAME = "hierarchies-growth-cpu"
SIZES = (100, 300, 1000, 4000, 10_000, 30_000, 100_000)
CHANNELS, COMPONENTS, CANDIDATES, BATCH, MOST_DENSE = 64, 32, 100, 4, 4000


def main(sizes: str = ",".join(map(str, SIZES)), repeats: int = 5, replace: bool = False) -> None:
    """Measures all numbers of labels, and writes benchmarks/runs/.

    Args:
        sizes: Numbers of labels, joined by commas.
        repeats: Number of times that each is timed, after a warm-up; the median counts.
        replace: Whether to replace the tracked file in benchmarks/results/ instead.
    """
    torch.set_num_threads(1)
    rows = []
    for size in map(int, sizes.split(",")):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            rows.append(pool.apply(measure, (size, repeats)))
        print(rows[-1], flush=True)
    print(f"Wrote {write_results(NAME, {'growth': rows, 'channels': CHANNELS}, replace=replace)}")


def synthetic(num_labels: int) -> LabelGraph:
    """A tree in which every label has ten children, as long as labels remain."""
    return tree([(0, None), *((child, (child - 1) // 10) for child in range(1, num_labels))])


def measure(num_labels: int, repeats: int) -> dict[str, Any]:
    """Milliseconds and megabytes of one number of labels."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    start_memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    graph = synthetic(num_labels)
    head, shortlister = CoherentHead(graph), Shortlister(graph)
    x, y = torch.randn(COMPONENTS, CHANNELS), torch.zeros(1, num_labels)
    y[:, 0] = 1

    def network(graph: LabelGraph) -> tuple[LabelMessagePassing, LabelHead, Callable[[], None]]:
        labels = LabelMessagePassing(CHANNELS, graph, num_steps=1, heads=4)
        readout = LabelHead(labels, bias=True)
        optimizer = torch.optim.Adam([*labels.parameters(), *readout.parameters()])

        def step() -> None:
            optimizer.zero_grad()
            head.loss(readout(labels(x)), y).backward()  # type: ignore[no-untyped-call]
            optimizer.step()

        return labels, readout, step

    labels, readout, step = network(graph)

    @torch.inference_mode()
    def infer() -> None:
        head(readout(labels(x)))

    @torch.inference_mode()
    def shortlisted() -> None:
        shortlist = shortlister(torch.randint(num_labels, (1, CANDIDATES)))
        readout(labels(x, shortlist=shortlist), shortlist.label)

    scores = torch.rand(BATCH, num_labels)
    row: dict[str, Any] = {
        "num_labels": num_labels,
        "num_edges": graph.num_edges,
        "num_pairs": head.pairs.size(1),
        "train_ms": _time(step, repeats),
        "inference_ms": _time(infer, repeats),
        "shortlist_ms": _time(shortlisted, repeats),
        "head_ms": _time(lambda: head(scores), repeats),
        "megabytes": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start_memory) / 2**10,
    }
    if num_labels <= MOST_DENSE:
        is_below = torch.eye(num_labels, dtype=torch.bool)
        is_below[head.pairs[0], head.pairs[1]] = True

        def dense() -> torch.Tensor:
            return (scores.unsqueeze(1) * is_below).amax(dim=-1)

        if not torch.equal(head(scores), dense()):
            raise RuntimeError("Expected equal outputs of both heads (got different ones)")
        row["complete_ms"] = _time(network(fully_connected(num_labels))[-1], min(repeats, 3))
        row["dense_head_ms"] = _time(dense, min(repeats, 3))
    return row


def _time(call: Callable[[], Any], repeats: int) -> float:
    return quartiles(interleave({"": call}, repeats)[""].wall)["median"]


if __name__ == "__main__":
    run(main)
