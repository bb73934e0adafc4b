"""Label graph: the labels, and the edges along which they send messages."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from scipy.sparse import csr_array
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr, size_repr
from torch_geometric.data.storage import GlobalStorage
from torch_geometric.typing import Adj
from torch_geometric.utils import (
    coalesce,
    is_sparse,
    remove_self_loops,
    to_scipy_sparse_matrix,
    to_undirected,
)

from tg_mlc._files import replace_when_done
from tg_mlc._names import check_names, nearest, shorten
from tg_mlc._optional import require
from tg_mlc._options import check_choice
from tg_mlc.graphs.parents import label_edges, read_parents
from tg_mlc.graphs.plot import plot_label_graph
from tg_mlc.graphs.tables import DEFAULT_COLUMNS, Edge, read_edges
from tg_mlc.ops.patterns import check_edge_index, to_list, with_values

if TYPE_CHECKING:
    import networkx as nx

Order = Literal["rcm", "tree"]
#: Name of the file format, which does not depend on where the class is defined.
FORMAT = "tg_mlc.LabelGraph/1"
MAX_SCORE = 1000  #: the largest score of STRING, which writes probabilities in thousandths


class LabelGraph(Data):  # type: ignore[misc, unused-ignore]
    r"""A graph :math:`\mathcal{G} = (\mathcal{V}, \mathcal{E})` whose nodes are the :math:`L`
    labels, as a :class:`torch_geometric.data.Data`.

    An edge :math:`(j, i) \in \mathcal{E}`, stored as the column :obj:`(j, i)` of
    :obj:`edge_index`, lets label :math:`i` (the target, row 1) attend to label :math:`j` (the
    source, row 0). Edges are unique and sorted by target, then by source, as segment
    kernels require. Of repeated edges, the largest weight is kept. Methods that
    change the graph return a new one.

    Args:
        edge_index (Tensor or SparseTensor, optional): The edges :math:`(2, |\mathcal{E}|)`, source
            to target; or a sparse adjacency matrix with targets in its rows and weights as values.
            PyG creates empty objects :obj:`LabelGraph()` to copy and batch graphs.
            (default: :obj:`None`)
        num_nodes (int, optional): The number of labels :math:`L`, if there are no names.
            (default: :obj:`None`)
        edge_weight (Tensor, optional): The weights of edges :math:`(|\mathcal{E}|)`, which layers
            ignore by default. (default: :obj:`None`)
        label_names (list of str, optional): One unique name per label. (default: :obj:`None`)
        kind (str, optional): How the graph was built, *e.g.* :obj:`"co_occurrence"`.
            (default: :obj:`"custom"`)
        source (str, optional): A description of the graph's data. (default: :obj:`""`)
        **kwargs (optional): Further attributes, *e.g.* label features :obj:`x` of shape :math:`(L,
            *)`, or the pairs of parent and child :obj:`parent_index` :math:`(2, P)` of a hierarchy.

    Raises:
        TypeError: If :obj:`edge_index` is not a tensor of :obj:`torch.long`.
        ValueError: If an edge index is out of range, sizes disagree, a name is used twice, or a
            weight is not finite.
    """

    def __init__(
        self,
        edge_index: Adj | None = None,
        *,
        num_nodes: int | None = None,
        edge_weight: Tensor | None = None,
        label_names: Sequence[str] | None = None,
        kind: str = "custom",
        source: str = "",
        **kwargs: Any,
    ) -> None:
        if "edge_attr" in kwargs:
            hint = "pass one number per edge as 'edge_weight'"
            raise ValueError(f"Expected no 'edge_attr' (got one); {hint}")
        super().__init__(**kwargs)
        self.kind = kind
        self.source = source
        if edge_index is None and num_nodes is None and label_names is None:
            return
        if num_nodes is None and label_names is not None:
            num_nodes = len(as_names(label_names))
        if not isinstance(num_nodes, int) or isinstance(num_nodes, bool) or num_nodes < 0:
            expected = "'num_nodes' or 'label_names', as isolated labels are in no edge"
            raise ValueError(f"Expected {expected} (got num_nodes={num_nodes!r})")
        if not (edge_index is None or isinstance(edge_index, Tensor) or is_sparse(edge_index)):
            got = f"(got {type(edge_index).__name__})"
            hint = "edges by names, or in a file, are read by LabelGraph.from_edges"
            raise TypeError(f"Expected 'edge_index' to be a tensor {got}; {hint}")
        self.num_nodes = num_nodes
        if label_names is not None:
            self["label_names"] = check_label_names(label_names, num_nodes)
        if edge_index is None:
            edge_index = torch.empty(2, 0, dtype=torch.long)
        if is_sparse(edge_index):
            edge_index, values = with_values(edge_index)
            edge_weight = values if edge_weight is None else edge_weight
        if self.parent_index is not None:
            check_edge_index(self.parent_index, num_nodes, num_nodes, "parent_index")
        self._set_edges(edge_index, edge_weight)

    @classmethod
    def from_edges(
        cls,
        edges: str | os.PathLike[str] | Iterable[Sequence[Any]],
        label_names: Sequence[str] | None = None,
    ) -> LabelGraph:
        """Reads edges between named labels. The target of an edge attends to its source.
        :meth:`to_undirected` adds opposite edges, and :meth:`add_self_loops` adds self-loops.

        Args:
            edges (str, Path or list of tuple): Pairs :obj:`(source, target)` or triples
                :obj:`(source, target, weight)`; or a table of edges (a file, or a text of several
                lines) delimited by tabs, :obj:`,`, :obj:`;` or :obj:`|`. Its first line may name
                the columns :obj:`source`, :obj:`target` and :obj:`weight`, or :obj:`parent` and
                :obj:`child`, or similarly, such as :obj:`source_name`.
            label_names (list of str, optional): The labels in their order.
                (default: :obj:`None`, in order of appearance)

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If a line or tuple has another format or an unknown label.
        """
        if isinstance(edges, str | os.PathLike):
            return cls._from_rows(*read_edges(edges), label_names)
        if isinstance(edges, Mapping) or hasattr(edges, "columns"):
            expected = f"'edges' to be a file or a list of tuples (got {type(edges).__name__})"
            hint = 'pass \'frame[["source", "target"]].values.tolist()\', or tuples'
            raise ValueError(f"Expected {expected}; {hint}")
        rows: list[Edge] = []
        for number, edge in enumerate(edges):
            is_tuple = isinstance(edge, list | tuple) and len(edge) in (2, 3)
            weights = [*edge[2:]] if is_tuple else []
            are_numbers = all(
                isinstance(w, int | float) and not isinstance(w, bool) for w in weights
            )
            if not is_tuple or not are_numbers:
                expected = f"edge {number} to be (source, target) or (source, target, weight)"
                raise ValueError(f"Expected {expected} (got {shorten(repr(edge))})")
            weight = float(weights[0]) if weights else None
            rows.append((f"edge {number}", edge[0], edge[1], weight))
        return cls._from_rows("a list", rows, label_names)

    @classmethod
    def _from_rows(
        cls, origin: str, rows: list[Edge], label_names: Sequence[str] | None
    ) -> LabelGraph:
        if label_names is None:
            label_names = list(dict.fromkeys(end for row in rows for end in row[1:3]))
        names = check_label_names(label_names)
        index_of = {name: index for index, name in enumerate(names)}
        for location, *ends, _ in rows:
            if bad := [end for end in ends if end not in index_of]:
                hint = nearest(bad[0], names) or "; add it, or name the columns in the first line"
                got = f"(got {bad[0]!r}){hint}"
                raise ValueError(f"Expected {location} to hold two of 'label_names' {got}")
        weights = [row[3] for row in rows if row[3] is not None]
        if weights and len(weights) < len(rows):
            got = f"(got {len(weights)} of {len(rows)})"
            raise ValueError(f"Expected all edges or none to have a weight {got}")
        pairs = [[index_of[source], index_of[target]] for _, source, target, _ in rows]
        return cls(
            torch.tensor(pairs, dtype=torch.long).view(-1, 2).t(),
            edge_weight=torch.tensor(weights) if weights else None,
            label_names=names,
            kind="edges",
            source=f"{len(rows)} edges of {origin}",
        )

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        label_names: Sequence[str] | None = None,
        *,
        columns: tuple[str, str] = DEFAULT_COLUMNS,
        weight: str | None = None,
    ) -> LabelGraph:
        """Reads the edges of a file by the names of labels: a table, a GraphML file
        (``.graphml``), an OBO ontology (``.obo``, edges from terms to their child terms), or a
        file that :meth:`save` wrote (``.safetensors``).

        Args:
            path (str or Path): The file. Tables have a delimiter of :meth:`from_edges`, or
                white space.
            label_names (list of str, optional): The labels in their order, including labels without
                edges. OBO terms are matched by identifier if any label is an identifier, else by
                name. (default: :obj:`None`, in order of appearance)
            columns (tuple of str, optional): The columns of source and target. Without the default
                ones, similarly named columns are read. (default: :obj:`("source", "target")`)
            weight (str, optional): The column or GraphML attribute of weights. Whole numbers
                up to 1000 in a table, such as STRING's scores, are divided by 1000, unless this
                name is specified and does not contain "score".
                (default: :obj:`None`, a column with a name such as :obj:`weight`, if any)

        Raises:
            FileNotFoundError: If there is no such file.
            ImportError: If the file is in OBO, and :obj:`obonet` is not installed.
            ValueError: If the file has another format or an unknown label.
        """
        suffix = Path(path).suffix.lower()
        if suffix == ".safetensors":
            graph = cls.load(path)
            if None not in (label_names, graph.label_names) and label_names != graph.label_names:
                expected = f"'{path}' to have the labels of 'label_names', in this order"
                raise ValueError(f"Expected {expected} (got others)")
            return graph
        if suffix == ".obo":
            parents = read_parents(path, "obo")
            if label_names is None or not {*label_names} & {child for child, _ in parents}:
                parents = read_parents(path, "obo", names=True)
            names = None if label_names is None else as_names(label_names)
            return cls(**label_edges(parents, names))
        if suffix == ".graphml":
            import networkx as nx

            network = nx.read_graphml(path)
            nodes = network.nodes(data=True)
            name_of = {node: str(data.get("name", data.get("label", node))) for node, data in nodes}
            triples: Any = network.to_directed().edges(data=weight or "weight")
            rows = [(name_of[j], name_of[i], *([] if w is None else [w])) for j, i, w in triples]
            return cls.from_edges(rows, [*name_of.values()] if label_names is None else label_names)
        origin, edges = read_edges(path, columns, weight)
        values = [edge[3] for edge in edges if edge[3] is not None]
        are_whole = bool(values) and all(value % 1 == 0 for value in values)
        if are_whole and 1 < max(values) <= MAX_SCORE and (weight is None or "score" in weight):
            edges = [(*edge[:3], edge[3] and edge[3] / MAX_SCORE) for edge in edges]
        return cls._from_rows(origin, edges, label_names)

    def _set_edges(self, edge_index: Tensor, edge_weight: Tensor | None) -> None:
        edge_index = to_list(edge_index)
        check_edge_index(edge_index, self.num_labels, self.num_labels)
        if edge_weight is not None:
            is_tensor = isinstance(edge_weight, Tensor)
            got = tuple(edge_weight.shape) if is_tensor else type(edge_weight).__name__
            if got != (edge_index.size(1),):
                expected = f"a tensor of shape [{edge_index.size(1)}], one per edge"
                raise ValueError(f"Expected 'edge_weight' to be {expected} (got {got})")
            edge_weight = edge_weight if edge_weight.is_floating_point() else edge_weight.float()
            if not torch.isfinite(edge_weight).all():
                raise ValueError("Expected 'edge_weight' to be finite (got NaN or infinity)")
        # Without weights, PyG's coalesce returns None in their place.
        edge_index, edge_weight = coalesce(
            edge_index, edge_weight, self.num_labels, reduce="max", sort_by_row=False
        )
        self.edge_index = edge_index.contiguous()
        if edge_weight is not None:
            self["edge_weight"] = edge_weight

    def _with_edges(self, edge_index: Tensor, edge_weight: Tensor | None) -> LabelGraph:
        edges = {"edge_index": edge_index, "edge_weight": edge_weight}
        return type(self)(**{**self.to_dict(), **edges})

    @property
    def num_labels(self) -> int:
        """The number of labels :math:`L`."""
        return int(self.num_nodes or 0)

    @property
    def label_names(self) -> list[str] | None:
        """One name per label, or :obj:`None`."""
        return self["label_names"] if "label_names" in self._store else None

    @property
    def edge_weight(self) -> Tensor | None:
        """One number per edge, or :obj:`None`."""
        return self["edge_weight"] if "edge_weight" in self._store else None

    @property
    def parent_index(self) -> Tensor | None:
        """Pairs of parent and child :math:`(2, P)` of a hierarchy, or :obj:`None`."""
        return self["parent_index"] if "parent_index" in self._store else None

    @property
    def density(self) -> float:
        """The fraction of ordered pairs, self-loops included, that are edges."""
        return float(self.num_edges) / max(self.num_labels**2, 1)

    @property
    def is_hierarchy(self) -> bool:
        """Whether labels have parents, as in a graph of :func:`~tg_mlc.graphs.tree`."""
        return self.parent_index is not None or self.kind == "tree"

    def add_self_loops(self, fill_value: float = 1.0, *, only_isolated: bool = False) -> LabelGraph:
        """Returns the graph with self-loops added to all labels or, with :obj:`only_isolated`, to
        labels without incoming edges. :obj:`fill_value` is the weight of a new loop.
        """
        source, target = self.edge_index
        labels = torch.arange(self.num_labels, device=target.device)
        new = labels[~torch.isin(labels, target if only_isolated else target[source == target])]
        edge_index, weight = torch.cat([self.edge_index, new.expand(2, -1)], 1), self.edge_weight
        if weight is not None:
            weight = torch.cat([weight, weight.new_full(new.shape, fill_value)])
        return self._with_edges(edge_index, weight)

    def remove_self_loops(self) -> LabelGraph:
        """Returns the graph in which no label attends to itself."""
        return self._with_edges(*remove_self_loops(self.edge_index, self.edge_weight))

    def to_undirected(self, reduce: str = "max") -> LabelGraph:
        """Returns the graph with edges in both directions. Weights are merged as in PyG."""
        if self.edge_weight is None:
            return self._with_edges(to_undirected(self.edge_index, num_nodes=self.num_labels), None)
        loops = self.edge_index[0] == self.edge_index[1]
        # Loops are excluded, because reduce="add" would double their weights.
        pairs = to_undirected(
            self.edge_index[:, ~loops], self.edge_weight[~loops], self.num_labels, reduce=reduce
        )
        edge_index = torch.cat([pairs[0], self.edge_index[:, loops]], dim=1)
        return self._with_edges(edge_index, torch.cat([pairs[1], self.edge_weight[loops]]))

    def permute(self, perm: Tensor | Sequence[int]) -> LabelGraph:
        """Returns the graph with label :obj:`perm[i]` at index :obj:`i`, as :obj:`y[:, perm]`."""
        index = torch.as_tensor(perm)
        index = index if index.numel() else index.long()  # An empty list becomes floats.
        is_whole = index.dim() == 1 and not index.is_floating_point()
        if not is_whole or sorted(index.tolist()) != list(range(self.num_labels)):
            expected = f"'perm' to hold each of 0 to {self.num_labels - 1} once"
            raise ValueError(f"Expected {expected} (got {index.tolist()[:10]}...)")
        index = index.long().to(self.edge_index.device)
        new_index = index.argsort()
        graph = self._with_edges(new_index[self.edge_index], self.edge_weight)
        if self.parent_index is not None:
            graph["parent_index"] = new_index[self.parent_index]
        for key in filter(self.is_node_attr, set(self.keys()) - {"parent_index"}):
            value = self[key]
            is_tensor = isinstance(value, Tensor)
            graph[key] = value[index] if is_tensor else [value[i] for i in index.tolist()]
        return graph

    def locality_order(self, method: Order = "rcm") -> Tensor:
        r"""Returns an order of the labels in which neighbours are close, for :meth:`permute`.

        On very large and sparse graphs, this order lets attention read neighbours from a cache.

        .. code-block:: python

            order = label_graph.locality_order()
            label_graph, y = label_graph.permute(order), y[:, order]

        Args:
            method (str, optional): :obj:`"rcm"` for the order of the `"Reducing the Bandwidth of
                Sparse Symmetric Matrices" <https://doi.org/10.1145/800195.805928>`_ paper,
                reversed; :obj:`"tree"` for depth-first order, which keeps the branches of a tree
                together. (default: :obj:`"rcm"`)

        Shapes:
            - **output:** the old index at every new index :math:`(L)`
        """
        check_choice("method", method, get_args(Order))
        matrix = to_scipy_sparse_matrix(self.edge_index.cpu(), num_nodes=self.num_labels)
        adjacency = csr_array(matrix + matrix.T)
        if method == "rcm":
            from scipy.sparse.csgraph import reverse_cuthill_mckee  # takes long to import

            order = reverse_cuthill_mckee(adjacency, symmetric_mode=True)
            return torch.from_numpy(order.copy()).long()
        import networkx as nx

        # Each component is walked from its first label.
        forest = nx.dfs_preorder_nodes(nx.from_scipy_sparse_array(adjacency))
        return torch.tensor(list(forest), dtype=torch.long)

    def validate(self, raise_on_error: bool = True) -> bool:
        """Tells whether edges are in range, unique and sorted by target, and label names valid."""
        try:
            super().validate(raise_on_error=True)
            rebuilt = self._with_edges(self.edge_index, self.edge_weight)
            if not torch.equal(rebuilt.edge_index, self.edge_index):
                expected = "'edge_index' to be unique and sorted by target, then source"
                raise ValueError(f"Expected {expected} (got other); build the graph again")
        except (TypeError, ValueError):
            if raise_on_error:
                raise
            return False
        return True

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a :obj:`safetensors` file, whose header holds all attributes but tensors."""
        attrs: dict[str, Any] = {**self.to_dict(), "num_nodes": self.num_labels}
        tensors = {key: attrs.pop(key) for key in list(attrs) if isinstance(attrs[key], Tensor)}
        try:
            header = {"format": FORMAT, "attributes": json.dumps(attrs)}
        except TypeError as error:
            got = f"(got other data: {error}); remove that attribute"
            raise ValueError(f"Expected the graph to hold tensors and plain data {got}") from error
        with replace_when_done(path) as unfinished:
            contiguous = {key: tensor.contiguous() for key, tensor in tensors.items()}
            save_file(contiguous, unfinished, metadata=header)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LabelGraph:
        """Reads a graph that :meth:`save` wrote."""
        expected = f"'{path}' to be a safetensors file that LabelGraph.save wrote"
        if Path(path).is_dir():
            raise ValueError(f"Expected {expected} (got a folder)")
        try:
            with safe_open(Path(path), framework="pt") as file:
                header = file.metadata() or {}
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        except SafetensorError as error:
            raise ValueError(f"Expected {expected} (got {error})") from error
        if header.get("format") != FORMAT:
            got = f"(got {header.get('format')!r})"
            raise ValueError(f"Expected '{path}' to be of format {FORMAT!r} {got}")
        try:
            return cls(**json.loads(header["attributes"]), **tensors)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            got = f"(got {shorten(repr(error))}); the file is damaged, save the graph again"
            raise ValueError(f"Expected '{path}' to hold a label graph {got}") from error

    def to_networkx(self, *, by_name: bool = False) -> nx.DiGraph[Any]:
        r"""Returns the graph as a :class:`networkx.DiGraph` from source to target.

        Nodes are indices, or names if :obj:`by_name` is set. Nodes have the attribute
        :obj:`name` if labels have names, and edges have :obj:`weight` if there are weights.
        """
        import networkx as nx

        if by_name and self.label_names is None:
            raise ValueError("Expected 'label_names' for 'by_name' (got None); name the labels")
        out: nx.DiGraph[Any] = nx.DiGraph(kind=self.kind, source=self.source)
        out.add_nodes_from(range(self.num_labels))
        out.add_edges_from(self.edge_index.t().tolist())
        if self.edge_weight is not None:
            weights = zip(*self.edge_index.tolist(), self.edge_weight.tolist(), strict=True)
            out.add_weighted_edges_from(weights)
        names = dict(enumerate(self.label_names or ()))
        nx.set_node_attributes(out, names, "name")
        return nx.relabel_nodes(out, names) if by_name else out

    def to_frame(self) -> Any:
        """Returns the edges as a :class:`pandas.DataFrame` with the columns :obj:`source`,
        :obj:`target` and, if there are weights, :obj:`weight`. Labels are names, or indices if
        there are no names. ``to_csv`` of the frame writes a table for :meth:`read`.
        """
        names = self.label_names or range(self.num_labels)
        ends = [[names[label] for label in labels] for labels in self.edge_index.tolist()]
        columns: dict[str, list[Any]] = dict(zip(DEFAULT_COLUMNS, ends, strict=True))
        columns |= {} if self.edge_weight is None else {"weight": self.edge_weight.tolist()}
        return require("pandas", extra="data").DataFrame(columns)

    def plot(
        self, ax: Any = None, path: str | os.PathLike[str] | None = None, **kwargs: Any
    ) -> Any:
        """Draws the graph; see :func:`tg_mlc.graphs.plot.plot_label_graph`."""
        return plot_label_graph(self, ax, path, **kwargs)

    def __repr__(self) -> str:
        if isinstance(self, Batch) or self.edge_index is None:
            return str(super().__repr__())
        parts = [f"num_labels={self.num_labels}", f"num_edges={self.num_edges}"]
        parts += [f"density={self.density:.3f}"]
        parts += [f"{key}={self[key]!r}" for key in ("kind", "source") if self[key]]
        shown = {"num_nodes", "edge_index", "kind", "source"}
        parts += [size_repr(key, self[key]) for key in sorted(set(self._store) - shown)]
        return f"{type(self).__name__}({', '.join(parts)})"


# PyG lets torch.load(weights_only=True) read Data, but not its private classes.
torch.serialization.add_safe_globals([LabelGraph, GlobalStorage, DataEdgeAttr, DataTensorAttr])


def as_names(label_names: Sequence[str]) -> list[str]:
    """Returns the names as a list; a string is one name, not a list of them."""
    if isinstance(label_names, str | bytes) or not isinstance(label_names, Iterable):
        got = shorten(repr(label_names))
        raise ValueError(f"Expected 'label_names' to be a list of names (got {got})")
    return list(label_names)


def check_label_names(label_names: Sequence[str], num_labels: int | None = None) -> list[str]:
    """Returns the names as a list, one unique string per label."""
    names = as_names(label_names)
    if invalid := [name for name in names if not isinstance(name, str)]:
        got = f"(got {shorten(repr(invalid[0]))}); convert with 'str'"
        raise ValueError(f"Expected 'label_names' to hold strings only {got}")
    check_names(names, len(names) if num_labels is None else num_labels, "label_names", of="labels")
    return names


def check_keys(name: str, keys: Iterable[str], labels: Iterable[str]) -> None:
    """Raises ValueError if a key of a dictionary is not a label."""
    if unknown := sorted(set(keys).difference(labels)):
        got = f"(got {unknown[:5]}, not in 'label_names')"
        raise ValueError(f"Expected the keys of '{name}' to be labels {got}")
