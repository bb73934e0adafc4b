"""Summary of a label graph that is stored with weights, as a tensor, so that any file of weights can hold it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from tg_mlc._names import check_same_names
from tg_mlc.ops.patterns.base import adjacency_of, to_list


def summary_of(label_graph: Data) -> Tensor:
    """The kind, the names, the number of edges and their hash, in whatever order they come."""
    source, target = to_list(adjacency_of(label_graph)).cpu()
    places = (target * int(label_graph.num_nodes or 0) + source).sort().values
    kind, names = label_graph.get("kind"), label_graph.get("label_names")
    summary = {
        "kind": None if kind is None else str(kind),
        "label_names": None if names is None else [str(name) for name in names],
        "num_edges": places.numel(),
        "edges": hashlib.sha256(places.numpy()).hexdigest(),
    }
    return torch.tensor(list(json.dumps(summary).encode()), dtype=torch.uint8, device="cpu")


def check_summary(stored: Tensor, present: Tensor) -> None:
    """Refuses weights that belong to another label graph, along which they would give other outputs."""
    there, here = _read(stored), _read(present)
    check_same_names(there["label_names"], here["label_names"], "the weights", "'label_graph'")
    if there["edges"] != here["edges"]:
        raise ValueError(
            f"Expected weights of a model with the same label graph, {_describe(here)} (got weights of one with "
            f"{_describe(there)}); build the model with the graph of the weights, load them, and then assign "
            f"'label_graph' to use another"
        )


def _read(summary: Tensor) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(bytes(summary.tolist()))
    return content


def _describe(summary: dict[str, Any]) -> str:
    return f"{summary['num_edges']} edges of kind {summary['kind']!r}"
