"""Comparison of two label graphs: what they have in common."""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from tg_mlc.graphs.label_graph import LabelGraph
from tg_mlc.graphs.plot import check_same_labels, plot_comparison

SHOWN = 5  # neighbours that are named in print


@dataclass(frozen=True)
class NeighborDifference:
    """The sources that one label has in only one of two graphs."""

    label: str
    only_a: list[str]
    only_b: list[str]
    num_shared: int

    def __str__(self) -> str:
        more = [
            f", and {len(names) - SHOWN} more" * (len(names) > SHOWN)
            for names in (self.only_a, self.only_b)
        ]
        a, b = (", ".join(names[:SHOWN]) or "none" for names in (self.only_a, self.only_b))
        return (
            f"{self.label}: only a: {a}{more[0]}; only b: {b}{more[1]}; shared: {self.num_shared}"
        )


@dataclass(frozen=True)
class GraphComparison:
    """The result of :func:`compare`; NaN where a number is undefined, with the reason in :attr:`undefined`."""

    num_labels: int
    directed: bool  #: whether ordered pairs were compared
    num_pairs: int
    density_a: float  #: the share of pairs, without loops, that a joins
    density_b: float
    num_shared: int
    num_only_a: int
    num_only_b: int
    jaccard: float  #: shared edges of all edges
    precision: float  #: the share of a's edges that b has
    recall: float  #: the share of b's edges that a has
    roc_auc_a_to_b: float  #: of a's weights against b's edges
    average_precision_a_to_b: float
    roc_auc_b_to_a: float
    average_precision_b_to_a: float
    rank_correlation: float  #: Spearman's, of the weights of all pairs
    differing: list[NeighborDifference]  #: the labels whose neighbours differ most
    undefined: dict[str, str]  #: why a number is NaN
    a: LabelGraph = field(repr=False, compare=False)
    b: LabelGraph = field(repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the graphs, as plain data."""
        values = {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if each.name not in ("a", "b")
        }
        return {**values, "differing": [asdict(each) for each in self.differing]}

    def plot(self, path: str | os.PathLike[str] | None = None, **kwargs: Any) -> Any:
        """Draws both graphs side by side; see :func:`tg_mlc.graphs.plot_comparison`."""
        return plot_comparison(self.a, self.b, path, **kwargs)

    def __str__(self) -> str:
        pairs = "ordered" if self.directed else "unordered"
        lines = [
            f"a: {self.a.kind}, b: {self.b.kind}; {self.num_labels} labels, {self.num_pairs} {pairs} pairs",
            f"edges: {self.num_shared} shared, {self.num_only_a} only in a, {self.num_only_b} only in b",
            f"density: a {self.density_a:.4f}, b {self.density_b:.4f}",
            f"overlap: Jaccard {self.jaccard:.3f}, precision {self.precision:.3f}, recall {self.recall:.3f}",
            f"a's weights against b's edges: ROC-AUC {self.roc_auc_a_to_b:.3f}, "
            f"average precision {self.average_precision_a_to_b:.3f}",
            f"b's weights against a's edges: ROC-AUC {self.roc_auc_b_to_a:.3f}, "
            f"average precision {self.average_precision_b_to_a:.3f}",
            f"rank correlation: {self.rank_correlation:.3f}",
        ]
        lines += [f"{name} is undefined: {reason}" for name, reason in self.undefined.items()]
        lines += ["neighbours that differ most:"] if self.differing else []
        return "\n".join([*lines, *(f"  {each}" for each in self.differing)])


def compare(
    a: LabelGraph, b: LabelGraph, directed: bool | None = None, top: int = 10
) -> GraphComparison:
    r"""Compares two graphs of the same labels, *e.g.* one that was :func:`~tg_mlc.graphs.learned` with a prior.

    With :math:`\mathcal{E}_a` and :math:`\mathcal{E}_b` their edges, loops left out,

    .. math::
        \textrm{Jaccard} = \frac{|\mathcal{E}_a \cap \mathcal{E}_b|}{|\mathcal{E}_a \cup \mathcal{E}_b|}, \qquad
        \textrm{precision} = \frac{|\mathcal{E}_a \cap \mathcal{E}_b|}{|\mathcal{E}_a|}, \qquad
        \textrm{recall} = \frac{|\mathcal{E}_a \cap \mathcal{E}_b|}{|\mathcal{E}_b|}

    ROC-AUC and average precision take the weights of one graph as scores of all pairs, and the edges of the other as
    those to be found; a random ranking has 0.5 and the density. Pairs without an edge weigh zero, or one less than
    the least weight if that is not positive; edges without weights weigh one. The rank correlation is Spearman's,
    between the weights of all pairs.

    Args:
        a, b (LabelGraph): Two label graphs of the same labels in the same order.
        directed (bool, optional): If set to :obj:`True`, the two directions of a pair are compared one by one; if
            :obj:`False`, they count as one, which weighs the mean of those that are there. (default: :obj:`None`,
            :obj:`False` as soon as one of the graphs is the same in both directions)
        top (int, optional): How many labels to name whose neighbours differ. (default: :obj:`10`)

    Raises:
        ValueError: If one is no label graph, their labels differ in number, name or order, or :obj:`top` is negative.
    """
    if isinstance(top, bool) or not isinstance(top, int) or top < 0:
        raise ValueError(f"Expected 'top' to be a number of labels (got {top!r})")
    for name, graph in (("a", a), ("b", b)):
        if not isinstance(graph, LabelGraph):
            raise ValueError(f"Expected '{name}' to be a LabelGraph (got {graph!r})")
    check_same_labels(a, b)
    directed = not (a.is_undirected() or b.is_undirected()) if directed is None else directed
    in_a, in_b = _read_pairs(a, directed), _read_pairs(b, directed)
    names = a.label_names or b.label_names or [str(i) for i in range(a.num_labels)]
    shared = int((in_a.joined & in_b.joined).sum())
    only_a, only_b = in_a.num_edges - shared, in_b.num_edges - shared
    shares = {
        "density_a": (in_a.num_edges, in_a.num_pairs, "there are no pairs"),
        "density_b": (in_b.num_edges, in_b.num_pairs, "there are no pairs"),
        "jaccard": (shared, shared + only_a + only_b, "neither graph has an edge"),
        "precision": (shared, in_a.num_edges, "a has no edge"),
        "recall": (shared, in_b.num_edges, "b has no edge"),
    }
    numbers: dict[str, Any] = {
        **{
            name: part / whole if whole else reason
            for name, (part, whole, reason) in shares.items()
        },
        **_ranking("a", in_a, "b", in_b),
        **_ranking("b", in_b, "a", in_a),
    }
    level = [
        name
        for name, pairs in (("a", in_a), ("b", in_b))
        if not pairs.num_pairs or np.ptp(pairs.strength) == 0
    ]
    if level:
        numbers["rank_correlation"] = f"all pairs weigh the same in {level[0]}"
    else:
        from scipy.stats import spearmanr  # takes long to import

        numbers["rank_correlation"] = float(spearmanr(in_a.strength, in_b.strength).statistic)
    undefined = {name: number for name, number in numbers.items() if isinstance(number, str)}
    of_a, of_b = in_a.sources & ~in_b.sources, in_b.sources & ~in_a.sources
    both, differences = (
        (in_a.sources & in_b.sources).sum(axis=1).tolist(),
        (of_a | of_b).sum(axis=1),
    )
    differing = [
        NeighborDifference(
            names[label],
            [names[source] for source in of_a[label].nonzero()[0].tolist()],
            [names[source] for source in of_b[label].nonzero()[0].tolist()],
            both[label],
        )
        for label in np.argsort(-differences, kind="stable")[:top].tolist()
        if differences[label]
    ]
    return GraphComparison(
        num_labels=a.num_labels,
        directed=directed,
        num_pairs=in_a.num_pairs,
        num_shared=shared,
        num_only_a=only_a,
        num_only_b=only_b,
        differing=differing,
        undefined=undefined,
        a=a,
        b=b,
        **{**numbers, **dict.fromkeys(undefined, math.nan)},
    )


class _Pairs(NamedTuple):
    """Every pair of different labels, in one order for all graphs of as many labels."""

    joined: np.ndarray  # whether the graph has the edge
    strength: np.ndarray  # its weight; less than that of any edge where there is none
    sources: np.ndarray  # of every label (row), as a matrix of truth values
    num_pairs: int
    num_edges: int


def _read_pairs(graph: LabelGraph, directed: bool) -> _Pairs:
    """Reads ordered pairs, or unordered ones, of which each weighs the mean of the directions that are there."""
    graph = (
        graph.remove_self_loops()
        if directed
        else graph.remove_self_loops().to_undirected(reduce="mean")
    )
    source, target = graph.edge_index.cpu().numpy()
    weight = (
        np.ones(len(source))
        if graph.edge_weight is None
        else graph.edge_weight.detach().cpu().double().numpy()
    )
    absent = min(0.0, float(weight.min()) - 1.0) if len(weight) and weight.min() <= 0 else 0.0
    joined = np.zeros((graph.num_labels, graph.num_labels), dtype=bool)
    strength = np.full(joined.shape, absent)
    joined[target, source], strength[target, source] = True, weight
    counted = (
        ~np.eye(graph.num_labels, dtype=bool)
        if directed
        else np.tri(graph.num_labels, k=-1, dtype=bool)
    )
    return _Pairs(
        joined[counted], strength[counted], joined, int(counted.sum()), int(joined[counted].sum())
    )


def _ranking(scorer: str, scores: _Pairs, owner: str, edges: _Pairs) -> dict[str, float | str]:
    from tg_mlc.metrics import micro_average_precision, micro_roc_auc  # take long to import

    names = [f"{metric}_{scorer}_to_{owner}" for metric in ("roc_auc", "average_precision")]
    if not 0 < edges.num_edges < edges.num_pairs:
        return dict.fromkeys(names, f"{owner} has {'all edges' if edges.num_edges else 'no edge'}")
    truth, strength = edges.joined[None].astype(float), scores.strength[None]
    values = micro_roc_auc(truth, strength), micro_average_precision(truth, strength)
    return dict(zip(names, values, strict=True))
