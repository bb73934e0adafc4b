"""Label graphs from a hierarchy: the parents of every child."""

from __future__ import annotations

from collections.abc import Sequence

from tg_mlc.graphs.label_graph import LabelGraph, as_names
from tg_mlc.graphs.parents import Node, Parents, label_edges


def tree(
    parents: Parents,
    label_names: Sequence[str] | None = None,
    undirected: bool = True,
    root: Node | None = None,
    self_loops: bool = True,
    include_root: bool = False,
    ancestors: bool = False,
) -> LabelGraph:
    """The label graph of a hierarchy: a label attends to its parents and its children, as the RCV1
    topics do in the `"Neural Message Passing for Multi-Label Classification"
    <https://arxiv.org/abs/1904.08049>`_ paper.

    A label may have several parents. If only some names of the hierarchy are labels, each label is
    joined to its nearest ancestors that are labels.

    Args:
        parents (dict or list of tuple): The parent, or list of parents, of each child; or pairs
            :obj:`(child, parent)`, as from :func:`~tg_mlc.graphs.read_parents`. Both are names, or
            indices of labels. A parent of :obj:`None` stands for none.
        label_names (list of str, optional): The labels in their order; labels outside the hierarchy
            stay alone. (default: :obj:`None`, names in order of appearance, or indices)
        undirected (bool, optional): Whether messages go from children to parents, too.
            (default: :obj:`True`)
        root (str or int, optional): A node above the hierarchy that is no label, and is dropped
            with its edges. (default: :obj:`None`, the only top node that is not in
            :obj:`label_names`)
        self_loops (bool, optional): If set to :obj:`False`, a label attends to itself only if it
            would receive nothing otherwise. (default: :obj:`True`)
        include_root (bool, optional): Whether the root stays, as the last label.
            (default: :obj:`False`)
        ancestors (bool, optional): Whether all ancestors count as parents. (default: :obj:`False`)

    Raises:
        ValueError: If the hierarchy has a cycle, or an index that is neither a label nor the root.
    """
    names = None if label_names is None else as_names(label_names)
    options = {"include_root": include_root, "ancestors": ancestors}
    graph = LabelGraph(**label_edges(parents, names, root, **options))
    graph = graph.to_undirected() if undirected else graph
    return graph.add_self_loops(only_isolated=not self_loops)
