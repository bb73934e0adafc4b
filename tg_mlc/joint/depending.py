"""Which labels depend on each other beyond the inputs."""

from __future__ import annotations

from tg_mlc._names import register
from tg_mlc._options import check_count, check_number
from tg_mlc.graphs import LabelGraph
from tg_mlc.graphs.builders import select, source_in_words
from tg_mlc.inference import Model
from tg_mlc.joint.messages import given_labels_of


def dependencies(model: Model, *, min_weight: float = 0.0, top_k: int | None = None) -> LabelGraph:
    r"""Returns the labels that surely depend on each other beyond the inputs.

    The weight of an edge is the correlation of the residuals :math:`y - p` of two labels, where
    :math:`p` are probabilities of classifiers that were not fitted to the sample: positive if the
    labels occur together more often than the inputs explain, negative if they exclude each other.
    Only pairs are kept for which the chance of any false edge in the graph is at most 1 %, by
    Bennett's inequality for the samples in which both labels are known
    (:func:`tg_mlc.stacking.dependencies.sure_dependencies`). What the classifiers fail to learn
    from the inputs counts as a dependency.

    .. code-block:: python

        model.dependencies(top_k=5).plot(path="who-tells-whom.png")

    Args:
        model (Model): A model of :func:`tg_mlc.auto` or of an estimator.
        min_weight (float, optional): The least size of a weight. (default: :obj:`0.0`)
        top_k (int, optional): Each label keeps its edges with so many other labels, by size of the
            weight, and those that other labels keep with it. (default: :obj:`None`, all)

    Raises:
        ValueError: If an option is out of range, or the model has no residual messages.
    """
    check_number("min_weight", min_weight)
    check_count("top_k", top_k, or_none=True)
    graph = given_labels_of(model).dependencies.to_undirected()
    source, target = graph.edge_index.numpy()
    weight = graph.edge_weight
    assert weight is not None
    size = weight.abs().numpy()
    keep = select(source, target, size, graph.num_labels, min_weight, top_k, self_loops=False)
    return LabelGraph(
        graph.edge_index[:, keep],
        edge_weight=weight[keep],
        label_names=model.label_names,
        kind=graph.kind,
        source=source_in_words(
            "residuals of training samples", min_weight=min_weight or None, top_k=top_k
        ),
    ).to_undirected()


register("method", dependencies)
