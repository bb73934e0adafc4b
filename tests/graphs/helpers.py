def error_of(action):
    """Returns the message of the ValueError that an action raises, or None without an error."""
    try:
        action()
    except ValueError as error:
        return str(error)
    return None


def weights_of(graph):
    """Returns weights, or None, by edge. An edge is a pair of label names, or else of indices."""
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
