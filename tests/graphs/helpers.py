from __future__ import annotations


def error_of(action):
    """Returns the message of the ValueError that an action raises, or None. Others propagate."""
    try:
        action()
    except ValueError as error:
        return str(error)
    return None


def weights_of(graph):
    """Returns the weight (or None) of each edge by its pair of label names (else indices)."""
    names = graph.label_names or range(graph.num_labels)
    weight = [None] * graph.num_edges if graph.edge_weight is None else graph.edge_weight.tolist()
    return {
        (names[source], names[target]): value
        for (source, target), value in zip(graph.edge_index.t().tolist(), weight, strict=True)
    }


def edges_of(graph):
    return set(weights_of(graph))


def both(*pairs):
    """Returns the edges in both directions."""
    return {*pairs, *((b, a) for a, b in pairs)}


def loops(labels):
    return {(label, label) for label in labels}
