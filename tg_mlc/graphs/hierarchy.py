"""The rule of a hierarchy: a label applies only if all its ancestors apply.

The functions apply this rule to scores, labels and thresholds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits
from torch_geometric.data import Data

from tg_mlc._names import shorten

if TYPE_CHECKING:
    from tg_mlc.metrics._inputs import ArrayLike
    from tg_mlc.metrics.thresholds import Decider, ThresholdTuner

_GO_ROOTS = {
    "0003674": "molecular_function",
    "0005575": "cellular_component",
    "0008150": "biological_process",
}
#: The roots of hierarchies, including those of the Gene Ontology by ID and by name. Roots apply to
#: all samples, and publications do not evaluate them.
ROOTS = frozenset(
    {
        "root",
        *_GO_ROOTS.values(),
        *(f"GO{sep}{number}" for sep in ("", ":") for number in _GO_ROOTS),
    }
)
_MAX_SCORES = 2**24  # Without gradients, `coherent` splits inputs with more scores.


def ancestor_pairs(parent_index: Tensor, num_labels: int) -> Tensor:
    """Returns the transitive closure of pairs of parent and child :math:`(2, P)`: all pairs of an
    ancestor and its descendant :math:`(2, C)`, sorted. Raises ValueError if there is a cycle.
    """
    edges = parent_index.cpu().numpy()
    ones = np.ones(edges.shape[1], dtype=np.int32)
    closure, num_pairs = sp.csr_array((ones, tuple(edges)), shape=(num_labels, num_labels)), -1
    while closure.nnz > num_pairs:  # Each round doubles the length of paths.
        num_pairs, closure = closure.nnz, closure + closure @ closure
        closure.data[:] = 1
        if circular := np.flatnonzero(closure.diagonal()).tolist():
            got = f"(got one through the labels {circular[:6]})"
            raise ValueError(f"Expected a hierarchy without cycles {got}")
    closure.sort_indices()
    pairs = np.stack(closure.tocoo().coords).astype(np.int64)
    return torch.from_numpy(pairs).to(parent_index.device)


def pairs_of(
    label_graph: Data, label_names: Sequence[str] | None = None, name: str = "label_graph"
) -> Tensor:
    """Returns the :func:`ancestor_pairs` of a label graph in the order of a model's labels. Raises
    ValueError if the graph has no parents, or has other labels.
    """
    parents, size = label_graph.get("parent_index"), int(label_graph.num_nodes or 0)
    if parents is None:
        hint = "tg_mlc.graphs.tree makes one, and LabelGraph(..., parent_index=pairs)"
        got = shorten(label_graph)
        raise ValueError(f"Expected '{name}' to keep the parents of labels (got {got}); {hint}")
    names = label_graph.get("label_names")
    if label_names is not None:
        if size != len(label_names) or (names is not None and {*names} != {*label_names}):
            got = f"{size}, others are {sorted({*(names or ())} ^ {*label_names})[:3]}"
            raise ValueError(f"Expected '{name}' to have the labels of the model (got {got})")
        if names is not None and list(names) != list(label_names):
            index_of = {label: index for index, label in enumerate(label_names)}
            parents = torch.tensor([index_of[label] for label in names], dtype=torch.long)[parents]
    return ancestor_pairs(parents, size)


def roots_of(always: Tensor, pairs: Tensor, label_names: Sequence[str]) -> list[str]:
    """Returns the labels that are :data:`ROOTS`, or that lie above all others and apply always.

    Args:
        always (Tensor): Whether a label applies to all samples :math:`(L)`.
        pairs (Tensor): The :func:`ancestor_pairs`.
        label_names (Sequence[str]): The names of the labels.
    """
    num_below = torch.bincount(pairs[0], minlength=len(label_names))
    is_above_all = (num_below == len(label_names) - 1) & (num_below > 0)
    is_root = (is_above_all & always).tolist()
    return [name for name, root in zip(label_names, is_root, strict=True) if root or name in ROOTS]


def derive(y: Tensor, pairs: Tensor, is_derived: Tensor) -> Tensor:
    """Returns labels :math:`(N, L)` in which labels without values of their own follow from those
    below them: 1 if one of these applies, 0 if none does, else NaN.

    Args:
        y (Tensor): Labels :math:`(N, L)`: 0, 1, or NaN for unknown.
        pairs (Tensor): The :func:`ancestor_pairs`.
        is_derived (Tensor): Whether a label follows from others :math:`(L)`.
    """
    maybe = torch.where(is_derived, 0.0, (y != 0).float())
    present = coherent(torch.where(is_derived, 0.0, (y == 1).float()), pairs) == 1
    absent = coherent(maybe, pairs) == 0
    values = torch.where(present, 1.0, torch.where(absent, 0.0, torch.nan)).to(y.dtype)
    return torch.where(is_derived, values, y)


def coherent(scores: Tensor, pairs: Tensor) -> Tensor:
    """Returns the largest score :math:`(N, L)` (probability, logit, decision or threshold) among
    each label and its descendants; with :obj:`pairs.flip(0)`, among the label and its ancestors.
    """
    if torch.compiler.is_compiling():  # This order of dimensions compiles for one sample, too.
        index = pairs[0].expand(scores.size(0), -1)
        return scores.scatter_reduce(1, index, scores[:, pairs[1]], "amax")
    size = max(_MAX_SCORES // max(pairs.size(1), 1), 1)
    if not scores.requires_grad and len(scores) > size:
        return torch.cat([coherent(chunk, pairs) for chunk in torch.split(scores, size)])
    # With labels in rows, the samples of a label are contiguous in memory and share an index.
    columns = scores.t().contiguous()
    index = pairs[0].unsqueeze(-1).expand(-1, columns.size(1))
    return columns.scatter_reduce(0, index, columns[pairs[1]], "amax").t()


def coherent_loss(logits: Tensor, y: Tensor, pairs: Tensor) -> Tensor:
    """Returns the cross-entropy of coherent logits :math:`(N, L)`. The maximum for a positive
    label only includes positive descendants. The loss is the mean over known targets (not NaN).
    """
    positive, known = y == 1, ~y.isnan()
    among_positive = coherent(logits.masked_fill(~positive, -torch.inf), pairs)
    maxima = torch.where(positive, among_positive, coherent(logits, pairs))
    maxima, targets = torch.where(known, maxima, 0.0), torch.where(known, y, 0.0)
    losses = binary_cross_entropy_with_logits(maxima, targets, reduction="none")
    return torch.where(known, losses, 0.0).sum() / known.sum().clamp(min=1)


def propagate(
    y: Tensor,
    pairs: Tensor,
    label_names: Sequence[str] | None = None,
    name: str = "y",
    *,
    check: bool = True,
    where: Callable[[int], str] = "row {}".format,
) -> Tensor:
    """Returns labels :math:`(N, L)`, 0, 1, or NaN for unknown. Ancestors of positive labels become
    1, and descendants of negative labels 0. With :obj:`check`, contradictions raise ValueError with
    the location of the row.
    """
    present = coherent((y == 1).float(), pairs) == 1
    absent = coherent((y == 0).float(), pairs.flip(0)) == 1
    if check and (contradictions := (present & absent).nonzero()).numel():
        row = int(contradictions[0, 0])
        above, below = pairs[:, (y[row, pairs[0]] == 0) & (y[row, pairs[1]] == 1)][:, 0].tolist()
        names = range(y.size(1)) if label_names is None else label_names
        states = f"{names[below]!r} applies and {names[above]!r} above it does not"
        got = f"{where(row)}, in which {states}"
        hint = "mend one of them, or leave it unknown"
        raise ValueError(f"Expected '{name}' to agree with its hierarchy (got {got}); {hint}")
    return torch.where(present, 1.0, torch.where(absent, 0.0, torch.nan)).to(y.dtype)


def coherent_decider(
    decider: Decider,
    pairs: Tensor,
    y: ArrayLike | None = None,
    scores: ArrayLike | None = None,
) -> Decider:
    """Returns the decider with thresholds that keep decisions of coherent scores coherent: the
    threshold of a label is at least as high as the thresholds of its ancestors.

    Thresholds of descendants are raised. With targets and coherent scores :math:`(N, L)`,
    thresholds of ancestors are lowered instead if this gives a higher metric.
    """
    # Layers import this file, and metrics take long to import.
    from tg_mlc.metrics._inputs import read_targets
    from tg_mlc.metrics.decisions import value_of
    from tg_mlc.metrics.label_sets import LabelSets
    from tg_mlc.metrics.thresholds import decide

    if isinstance(decider, LabelSets) or decider.fitted().size == 1:
        return decider
    thresholds = torch.from_numpy(decider.fitted())[None]
    raised = _with_thresholds(decider, coherent(thresholds, pairs.flip(0)))
    if y is None:
        return raised
    lowered = _with_thresholds(decider, -coherent(-thresholds, pairs))
    targets, zero_division = read_targets(y, "y"), {decider.metric: decider.zero_division}
    for tuner in (raised, lowered):
        decisions = decide(np.asarray(scores), tuner.fitted())
        tuner.best_value = value_of(decider.metric, targets, decisions, zero_division)
    return lowered if (lowered.best_value or 0.0) > (raised.best_value or 0.0) else raised


def _with_thresholds(tuner: ThresholdTuner, thresholds: Tensor) -> ThresholdTuner:
    """Returns a copy of the tuner with the thresholds :math:`(1, L)`."""
    changed = copy(tuner)
    changed.thresholds = thresholds[0].numpy()
    return changed
