"""Comparison of two label graphs: what they have in common."""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tg_mlc._names import few, shorten
from tg_mlc.graphs.label_graph import LabelGraph
from tg_mlc.graphs.plot import check_same_labels, plot_comparison


@dataclass(frozen=True)
class NeighborDifference:
    """The sources that one label has in only one of two graphs."""

    label: str
    only_a: list[str]
    only_b: list[str]
    num_shared: int

    def __str__(self) -> str:
        a, b = few(self.only_a) or "none", few(self.only_b) or "none"
        return f"{self.label}: only a: {a}; only b: {b}; shared: {self.num_shared}"


@dataclass(frozen=True)
class GraphComparison:
    """The result of :func:`compare`; undefined numbers are NaN, and :attr:`undefined` says why."""

    num_labels: int
    directed: bool  #: whether ordered pairs were compared
    num_pairs: int
    density_a: float  #: fraction of pairs, without loops, that are edges of a
    density_b: float
    num_shared: int
    num_only_a: int
    num_only_b: int
    jaccard: float  #: shared edges as a fraction of the edges of either graph
    precision: float  #: fraction of a's edges that b has
    recall: float  #: fraction of b's edges that a has
    roc_auc_a_to_b: float  #: ROC-AUC of a's weights against b's edges
    average_precision_a_to_b: float
    roc_auc_b_to_a: float
    average_precision_b_to_a: float
    rank_correlation: float  #: Spearman's, of the weights of all pairs
    differing: list[NeighborDifference]  #: the labels whose neighbours differ most
    undefined: dict[str, str]  #: why a number is NaN
    a: LabelGraph = field(repr=False, compare=False)
    b: LabelGraph = field(repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Returns everything but the graphs, as plain data."""
        return {name: value for name, value in asdict(self).items() if name not in ("a", "b")}

    def plot(self, path: str | os.PathLike[str] | None = None, **kwargs: Any) -> Any:
        """Draws both graphs side by side; see :func:`tg_mlc.graphs.plot_comparison`."""
        return plot_comparison(self.a, self.b, path, **kwargs)

    def __str__(self) -> str:
        pairs = f"{self.num_pairs} {'ordered' if self.directed else 'unordered'} pairs"
        only = f"{self.num_only_a} only in a, {self.num_only_b} only in b"
        counts = f"{self.num_shared} shared, {only}"
        overlap = f"precision {self.precision:.3f}, recall {self.recall:.3f}"
        lines = [
            f"a: {self.a.kind}, b: {self.b.kind}; {self.num_labels} labels, {pairs}",
            f"edges: {counts}",
            f"density: a {self.density_a:.4f}, b {self.density_b:.4f}",
            f"overlap: Jaccard {self.jaccard:.3f}, {overlap}",
            f"a's weights against b's edges: ROC-AUC {self.roc_auc_a_to_b:.3f}, "
            f"average precision {self.average_precision_a_to_b:.3f}",
            f"b's weights against a's edges: ROC-AUC {self.roc_auc_b_to_a:.3f}, "
            f"average precision {self.average_precision_b_to_a:.3f}",
            f"rank correlation: {self.rank_correlation:.3f}",
        ]
        lines += [f"{name} is undefined: {reason}" for name, reason in self.undefined.items()]
        lines += ["neighbours that differ most:"] if self.differing else []
        return "\n".join([*lines, *(f"  {difference}" for difference in self.differing)])


def compare(
    a: LabelGraph, b: LabelGraph, directed: bool | None = None, top: int = 10
) -> GraphComparison:
    r"""Compares two graphs of the same labels, *e.g.* a :func:`~tg_mlc.graphs.learned` graph
    and a prior graph.

    With the edges :math:`\mathcal{E}_a` and :math:`\mathcal{E}_b` of the graphs, without loops,

    .. math::
        \textrm{Jaccard} =
        \frac{|\mathcal{E}_a \cap \mathcal{E}_b|}{|\mathcal{E}_a \cup \mathcal{E}_b|}, \qquad
        \textrm{precision} =
        \frac{|\mathcal{E}_a \cap \mathcal{E}_b|}{|\mathcal{E}_a|}, \qquad
        \textrm{recall} = \frac{|\mathcal{E}_a \cap \mathcal{E}_b|}{|\mathcal{E}_b|}

    ROC-AUC and average precision take the weights of one graph as scores of all pairs, and the
    edges of the other as targets; for a random ranking, ROC-AUC is 0.5 and average precision is
    the density. A pair without an edge has weight 0 or, if the smallest weight :math:`w` is not
    positive, :math:`w - 1`. Edges of graphs without weights have weight 1. The rank correlation is
    Spearman's over all pairs.

    Args:
        a, b (LabelGraph): Two label graphs of the same labels in the same order.
        directed (bool, optional): If set to :obj:`True`, the two directions of a pair are compared
            separately; if :obj:`False`, they are one pair, with the mean weight of its edges.
            (default: :obj:`None`, :obj:`False` if either graph is undirected)
        top (int, optional): The maximum number of labels to list whose neighbours differ.
            (default: :obj:`10`)

    Raises:
        ValueError: If an argument is no label graph, the graphs have different labels, or
            :obj:`top` is negative.
    """
    if isinstance(top, bool) or not isinstance(top, int) or top < 0:
        raise ValueError(f"Expected 'top' to be a number of labels (got {top!r})")
    for name, graph in (("a", a), ("b", b)):
        if not isinstance(graph, LabelGraph):
            raise ValueError(f"Expected '{name}' to be a LabelGraph (got {shorten(repr(graph))})")
    check_same_labels(a, b)
    directed = not (a.is_undirected() or b.is_undirected()) if directed is None else directed
    in_a, in_b = _read_pairs(a, directed), _read_pairs(b, directed)
    num_a, num_b = int(in_a.is_edge.sum()), int(in_b.is_edge.sum())
    shared = int((in_a.is_edge & in_b.is_edge).sum())
    fractions = {
        "density_a": (num_a, in_a.is_edge.size, "there are no pairs"),
        "density_b": (num_b, in_b.is_edge.size, "there are no pairs"),
        "jaccard": (shared, num_a + num_b - shared, "neither graph has an edge"),
        "precision": (shared, num_a, "a has no edge"),
        "recall": (shared, num_b, "b has no edge"),
    }
    numbers: dict[str, Any] = {
        name: num / total if total else reason for name, (num, total, reason) in fractions.items()
    }
    numbers |= _ranking("a", in_a, "b", in_b) | _ranking("b", in_b, "a", in_a)
    strengths = (("a", in_a.strength), ("b", in_b.strength))
    constant = [name for name, strength in strengths if np.unique(strength).size < 2]
    if constant:
        numbers["rank_correlation"] = f"all pairs weigh the same in {constant[0]}"
    else:
        from scipy.stats import spearmanr  # takes long to import

        numbers["rank_correlation"] = float(spearmanr(in_a.strength, in_b.strength).statistic)
    undefined = {name: number for name, number in numbers.items() if isinstance(number, str)}
    return GraphComparison(
        num_labels=a.num_labels,
        directed=directed,
        num_pairs=in_a.is_edge.size,
        num_shared=shared,
        num_only_a=num_a - shared,
        num_only_b=num_b - shared,
        differing=_differences(in_a.sources, in_b.sources, a.label_names or b.label_names, top),
        undefined=undefined,
        a=a,
        b=b,
        **{**numbers, **dict.fromkeys(undefined, math.nan)},
    )


def _differences(
    sources_a: np.ndarray, sources_b: np.ndarray, label_names: list[str] | None, top: int
) -> list[NeighborDifference]:
    """Returns the labels whose sources differ most, from boolean matrices with targets in rows."""
    names = np.array(label_names or [str(i) for i in range(len(sources_a))], dtype=object)
    num_different = (sources_a ^ sources_b).sum(axis=1)
    ranked = np.argsort(-num_different, kind="stable")[:top].tolist()
    return [
        NeighborDifference(
            label=names[label],
            only_a=names[sources_a[label] & ~sources_b[label]].tolist(),
            only_b=names[sources_b[label] & ~sources_a[label]].tolist(),
            num_shared=int((sources_a[label] & sources_b[label]).sum()),
        )
        for label in ranked
        if num_different[label]
    ]


class _Pairs(NamedTuple):
    """All pairs of different labels, in an order that depends on the number of labels alone."""

    is_edge: np.ndarray  # whether the graph has the edge
    strength: np.ndarray  # weight of the edge; pairs without an edge have less than any edge
    sources: np.ndarray  # boolean matrix of edges: row target, column source


def _read_pairs(graph: LabelGraph, directed: bool) -> _Pairs:
    """Returns ordered pairs or, unless directed, unordered pairs with the mean of both weights."""
    graph = graph.remove_self_loops()
    graph = graph if directed else graph.to_undirected(reduce="mean")
    source, target = graph.edge_index.cpu().numpy()
    weight = np.ones(len(source))
    if graph.edge_weight is not None:
        weight = graph.edge_weight.detach().cpu().double().numpy()
    absent = min(0.0, float(weight.min()) - 1.0) if len(weight) and weight.min() <= 0 else 0.0
    has_edge = np.zeros((graph.num_labels, graph.num_labels), dtype=bool)
    strength = np.full(has_edge.shape, absent)
    has_edge[target, source], strength[target, source] = True, weight
    size = graph.num_labels
    is_pair = ~np.eye(size, dtype=bool) if directed else np.tri(size, k=-1, dtype=bool)
    return _Pairs(has_edge[is_pair], strength[is_pair], has_edge)


def _ranking(scorer: str, scores: _Pairs, owner: str, edges: _Pairs) -> dict[str, float | str]:
    from tg_mlc.metrics import micro_average_precision, micro_roc_auc  # take long to import

    names = [f"{metric}_{scorer}_to_{owner}" for metric in ("roc_auc", "average_precision")]
    if edges.is_edge.all() or not edges.is_edge.any():
        return dict.fromkeys(
            names, f"{owner} has {'all edges' if edges.is_edge.any() else 'no edge'}"
        )
    targets, strength = edges.is_edge[None].astype(float), scores.strength[None]
    values = micro_roc_auc(targets, strength), micro_average_precision(targets, strength)
    return dict(zip(names, values, strict=True))
