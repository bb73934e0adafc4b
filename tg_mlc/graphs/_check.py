"""Checks of what a label graph is made of, each with a message that a user can act on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from tg_mlc._names import check_names

Labels = int | Sequence[str]


def resolve_labels(labels: Labels) -> tuple[int, list[str] | None]:
    """Reads "how many labels, or which" as a number of labels and, where known, their names."""
    if isinstance(labels, int) and not isinstance(labels, bool) and labels >= 0:
        return labels, None
    if isinstance(labels, int | str) or not isinstance(labels, Sequence):
        raise ValueError(f"Expected 'labels' to be a non-negative number of labels or a list of names (got {labels!r})")
    return len(labels), check_label_names(labels, len(labels))


def check_num_nodes(num_nodes: int | None, label_names: Sequence[str] | None) -> int:
    """Returns the number of labels; a graph must be told it, as a last label without edges is invisible in them."""
    if num_nodes is None and label_names is None:
        raise ValueError("Expected 'num_nodes' or 'label_names' (got neither): edges do not show labels without any")
    size = len(as_names(label_names)) if num_nodes is None and label_names is not None else num_nodes
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise ValueError(f"Expected 'num_nodes' to be a non-negative integer (got {num_nodes!r})")
    return size


def as_names(label_names: Sequence[str]) -> list[str]:
    """Returns the names as a list; a string is one name, not a list of them."""
    if isinstance(label_names, str | bytes) or not isinstance(label_names, Iterable):
        raise ValueError(f"Expected 'label_names' to be a list of names (got {label_names!r})")
    return list(label_names)


def check_label_names(label_names: Sequence[str], num_labels: int) -> list[str]:
    """Returns the names as a list, one unique string per label."""
    names = as_names(label_names)
    strange = [name for name in names if not isinstance(name, str)]
    if strange:
        raise ValueError(f"Expected 'label_names' to hold strings only (got {strange[0]!r}); convert with 'str'")
    check_names(names, num_labels, "label_names", of="labels")
    return names


def check_keys(name: str, keys: Iterable[str], labels: Iterable[str]) -> None:
    """Refuses keys of a dictionary that are no labels."""
    if strange := sorted(set(keys).difference(labels)):
        raise ValueError(f"Expected the keys of '{name}' to be labels (got {strange[:5]}, not in 'label_names')")


def check_edge_weight(edge_weight: Tensor, num_edges: int) -> Tensor:
    """Returns the weights as floats, one finite number per edge."""
    if not isinstance(edge_weight, Tensor) or tuple(edge_weight.shape) != (num_edges,):
        got = tuple(edge_weight.shape) if isinstance(edge_weight, Tensor) else type(edge_weight).__name__
        raise ValueError(f"Expected 'edge_weight' to be a tensor of shape [{num_edges}], one per edge (got {got})")
    if not edge_weight.is_floating_point():
        edge_weight = edge_weight.float()
    if not torch.isfinite(edge_weight).all():
        raise ValueError("Expected 'edge_weight' to be finite (got NaN or infinity)")
    return edge_weight


def check_permutation(perm: Tensor | Sequence[int], num_labels: int) -> Tensor:
    """Returns a permutation of the labels as an index tensor."""
    index = torch.as_tensor(perm)
    index = index if index.numel() else index.long()  # an empty list comes as floats
    if index.dim() != 1 or index.is_floating_point() or sorted(index.tolist()) != list(range(num_labels)):
        raise ValueError(f"Expected 'perm' to hold each of 0 to {num_labels - 1} once (got {index.tolist()[:10]}...)")
    return index.long()
