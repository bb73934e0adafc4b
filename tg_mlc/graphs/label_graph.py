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
    add_remaining_self_loops,
    coalesce,
    is_sparse,
    remove_self_loops,
    to_networkx,
    to_scipy_sparse_matrix,
    to_undirected,
)

from tg_mlc._files import replace_when_done
from tg_mlc._names import check_names, nearest
from tg_mlc._optional import require
from tg_mlc._options import check_choice
from tg_mlc.graphs.hierarchy_files import read_parents
from tg_mlc.graphs.parents import to_label_edges
from tg_mlc.graphs.plot import plot_label_graph
from tg_mlc.graphs.tables import DEFAULT_COLUMNS, read_edges
from tg_mlc.ops.patterns import check_edge_index, to_list, with_values

if TYPE_CHECKING:
    import networkx as nx

Order = Literal["rcm", "tree"]
#: The mark of the file format, which stays the same wherever the class is defined.
FORMAT = "tg_mlc.LabelGraph/1"
MAX_SCORE = 1000  #: of STRING, which writes probabilities in thousandths


class LabelGraph(Data):  # type: ignore[misc, unused-ignore]
    r"""A graph :math:`\mathcal{G} = (\mathcal{V}, \mathcal{E})` whose nodes are the :math:`L` labels, as
    a :class:`torch_geometric.data.Data`.

    An edge :math:`(j, i) \in \mathcal{E}`, stored as the column :obj:`(j, i)` of :obj:`edge_index`, lets label
    :math:`i` (the target, row 1) attend to label :math:`j` (the source, row 0). Edges are unique and sorted by target,
    then by source, so that segment kernels need no sort of their own. An edge given more than once keeps its largest
    weight. Methods that change the graph return a new one.

    Args:
        edge_index (Tensor or SparseTensor, optional): The edges :math:`(2, |\mathcal{E}|)`, source to target; or an
            adjacency with targets in its rows, whose values are the weights. :obj:`LabelGraph()` is the empty object
            that PyG's copying and batching ask for. (default: :obj:`None`)
        num_nodes (int, optional): The number of labels :math:`L`, if there are no names. (default: :obj:`None`)
        edge_weight (Tensor, optional): The weights of edges :math:`(|\mathcal{E}|)`, which layers disregard unless
            told otherwise. (default: :obj:`None`)
        label_names (list of str, optional): One unique name per label. (default: :obj:`None`)
        kind (str, optional): How the graph was built, *e.g.* :obj:`"co_occurrence"`. (default: :obj:`"custom"`)
        source (str, optional): Its data, in words. (default: :obj:`""`)
        **kwargs (optional): Further attributes, *e.g.* label features :obj:`x` of shape :math:`(L, *)`, or the pairs of
            parent and child :obj:`parent_index` :math:`(2, P)` of a hierarchy.

    Raises:
        TypeError: If :obj:`edge_index` is not a tensor of :obj:`torch.long`.
        ValueError: If an edge names no label, sizes disagree, a name is used twice, or a weight is not finite.
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
            raise ValueError(
                "Expected no 'edge_attr': a label graph holds one number per edge, in 'edge_weight'"
            )
        super().__init__(**kwargs)
        self.kind = kind
        self.source = source
        if edge_index is None and num_nodes is None and label_names is None:
            return
        if num_nodes is None and label_names is None:
            raise ValueError(
                "Expected 'num_nodes' or 'label_names' (got neither): edges show no label without any"
            )
        size = (
            len(as_names(label_names))
            if num_nodes is None and label_names is not None
            else num_nodes
        )
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise ValueError(
                f"Expected 'num_nodes' to be a non-negative integer (got {num_nodes!r})"
            )
        if (
            edge_index is not None
            and not isinstance(edge_index, Tensor)
            and not is_sparse(edge_index)
        ):
            hint = "edges by names, or in a file, are read by LabelGraph.from_edges"
            raise TypeError(
                f"Expected 'edge_index' to be a tensor (got {type(edge_index).__name__}); {hint}"
            )
        self.num_nodes = size
        if label_names is not None:
            self["label_names"] = check_label_names(label_names, size)
        if edge_index is None:
            edge_index = torch.empty(2, 0, dtype=torch.long)
        if is_sparse(edge_index):
            edge_index, values = with_values(edge_index)
            edge_weight = values if edge_weight is None else edge_weight
        if self.parent_index is not None:
            check_edge_index(self.parent_index, size, size, "parent_index")
        self._set_edges(edge_index, edge_weight)

    @classmethod
    def from_edges(
        cls,
        edges: str | os.PathLike[str] | Iterable[Sequence[Any]],
        label_names: Sequence[str] | None = None,
    ) -> LabelGraph:
        """Reads a list of edges by the names of labels, from a source to the target that attends to it;
        :meth:`to_undirected` adds the opposite ones, and :meth:`add_self_loops` loops.

        Args:
            edges (str, Path or list of tuple): Pairs :obj:`(source, target)` or triples
                :obj:`(source, target, weight)`; or a table of them between tabs, :obj:`,`, :obj:`;` or :obj:`|`, the
                file or its text of several lines. Columns go by the names :obj:`source`, :obj:`target` and
                :obj:`weight`, or :obj:`parent` and :obj:`child`, if the first line has them, also in words such as
                :obj:`source_name`.
            label_names (list of str, optional): The labels in their order. (default: :obj:`None`, as they appear)

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If a line or tuple is of another form, or names no label.
        """
        if isinstance(edges, str | os.PathLike):
            origin, rows = read_edges(edges)
        else:
            origin, rows = "a list", []
            if isinstance(edges, Mapping) or hasattr(edges, "columns"):
                expected = f"'edges' to be a file or a list of tuples (got {type(edges).__name__})"
                hint = "pass 'frame[[\"source\", \"target\"]].values.tolist()', or '[(*edge, weight), ...]'"
                raise ValueError(f"Expected {expected}; {hint}")
            for number, edge in enumerate(edges):
                weight = edge[2] if isinstance(edge, list | tuple) and len(edge) == 3 else None
                is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
                if (
                    not isinstance(edge, list | tuple)
                    or len(edge) not in (2, 3)
                    or (len(edge) == 3 and not is_number)
                ):
                    expected = f"edge {number} to be names of a source and a target, and perhaps a number as the weight"
                    raise ValueError(f"Expected {expected} (got {edge!r})")
                rows.append(
                    (f"edge {number}", edge[0], edge[1], None if weight is None else float(weight))
                )
        return cls._from_rows(origin, rows, label_names)

    @classmethod
    def _from_rows(
        cls,
        origin: str,
        rows: list[tuple[str, str, str, float | None]],
        label_names: Sequence[str] | None,
    ) -> LabelGraph:
        found = dict.fromkeys(end for row in rows for end in row[1:3])
        names = check_label_names(list(found) if label_names is None else label_names)
        position = {name: index for index, name in enumerate(names)}
        for where, *ends, _ in rows:
            if lost := [end for end in ends if end not in position]:
                hint = nearest(lost[0], names) or "; add it, or name the columns in the first line"
                raise ValueError(
                    f"Expected {where} to hold two of 'label_names' (got {lost[0]!r}){hint}"
                )
        weights = [row[3] for row in rows if row[3] is not None]
        if weights and len(weights) < len(rows):
            raise ValueError(
                f"Expected all edges or none to have a weight (got {len(weights)} of {len(rows)})"
            )
        index = (
            torch.tensor([[position[j], position[i]] for _, j, i, _ in rows], dtype=torch.long)
            .view(-1, 2)
            .t()
        )
        weight = torch.tensor(weights) if weights else None
        return cls(
            index,
            edge_weight=weight,
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
        """Reads the edges of a file by the names of labels: a table, a GraphML file (``.graphml``), an OBO ontology
        (``.obo``, an edge from each term to those below it), or what :meth:`save` wrote (``.safetensors``).

        Args:
            path (str or Path): The file; tables are divided as :meth:`from_edges` says, or by white space.
            label_names (list of str, optional): The labels in their order, those without an edge too; terms of an OBO
                file go by identifiers if one of these is an identifier, else by names. (default: :obj:`None`, as they
                appear)
            columns (tuple of str, optional): The columns of source and target; without the default ones, those that
                mean the same. (default: :obj:`("source", "target")`)
            weight (str, optional): The column, or the attribute in GraphML, of weights; whole numbers up to 1000 in
                a table, as STRING writes scores, become 0 to 1, unless they are of a column that is named here and is
                not called a score. (default: :obj:`None`, the one that is called so, if any)

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If the file is of another form, or names no label.
        """
        suffix = Path(path).suffix.lower()
        if suffix == ".safetensors":
            graph = cls.load(path)
            if None not in (label_names, graph.label_names) and label_names != graph.label_names:
                raise ValueError(
                    f"Expected '{path}' to have the labels of 'label_names', in this order (got others)"
                )
            return graph
        if suffix == ".obo":
            parents = read_parents(path, "obo")
            if label_names is None or not {*label_names} & {child for child, _ in parents}:
                parents = read_parents(path, "obo", names=True)
            names = None if label_names is None else as_names(label_names)
            terms = to_label_edges(parents, names)
            return cls(kind="tree", parent_index=terms.edge_index, **terms._asdict())
        if suffix == ".graphml":
            import networkx as nx

            network = nx.read_graphml(path)
            called = {
                node: str(data.get("name", data.get("label", node)))
                for node, data in network.nodes(data=True)
            }
            found: Iterable[tuple[Any, Any, Any]] = network.to_directed().edges(
                data=weight or "weight"
            )
            edges = [
                (called[j], called[i], *([] if value is None else [value])) for j, i, value in found
            ]
            return cls.from_edges(
                edges, list(called.values()) if label_names is None else label_names
            )
        origin, rows = read_edges(path, columns, weight)
        weights = [row[3] for row in rows if row[3] is not None]
        is_score = weight is None or "score" in weight
        if (
            is_score
            and weights
            and 1 < max(weights) <= MAX_SCORE
            and all(value % 1 == 0 for value in weights)
        ):
            rows = [(*row[:3], None if row[3] is None else row[3] / MAX_SCORE) for row in rows]
        return cls._from_rows(origin, rows, label_names)

    def _set_edges(self, edge_index: Tensor, edge_weight: Tensor | None) -> None:
        edge_index = to_list(edge_index)
        check_edge_index(edge_index, self.num_labels, self.num_labels)
        if edge_weight is not None:
            got = (
                tuple(edge_weight.shape)
                if isinstance(edge_weight, Tensor)
                else type(edge_weight).__name__
            )
            if got != (num_edges := edge_index.size(1),):
                expected = f"'edge_weight' to be a tensor of shape [{num_edges}], one per edge"
                raise ValueError(f"Expected {expected} (got {got})")
            edge_weight = edge_weight if edge_weight.is_floating_point() else edge_weight.float()
            if not torch.isfinite(edge_weight).all():
                raise ValueError("Expected 'edge_weight' to be finite (got NaN or infinity)")
        # One call for both cases: without weights 'coalesce' hands back a None in their place.
        edge_index, edge_weight = coalesce(
            edge_index, edge_weight, self.num_labels, reduce="max", sort_by_row=False
        )
        self.edge_index = edge_index.contiguous()
        if edge_weight is not None:
            self["edge_weight"] = edge_weight

    def _with_edges(self, edge_index: Tensor, edge_weight: Tensor | None) -> LabelGraph:
        return type(self)(
            **{**self.to_dict(), "edge_index": edge_index, "edge_weight": edge_weight}
        )

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
        """Pairs of parent and child :math:`(2, P)` in a hierarchy, whatever the edges are, or :obj:`None`."""
        return self["parent_index"] if "parent_index" in self._store else None

    @property
    def density(self) -> float:
        r"""The share :math:`|\mathcal{E}| / L^2` of ordered pairs, self-loops included, that are edges."""
        return float(self.num_edges) / max(self.num_labels**2, 1)

    @property
    def is_hierarchy(self) -> bool:
        """Whether labels have parents, as those of :func:`~tg_mlc.graphs.tree` do."""
        # Earlier versions saved no parents.
        return self.parent_index is not None or self.kind == "tree"

    def add_self_loops(self, fill_value: float = 1.0, *, only_isolated: bool = False) -> LabelGraph:
        """Returns the graph in which every label attends to itself too or, with :obj:`only_isolated`, labels that would
        receive nothing at all; :obj:`fill_value` is the weight of a new loop, if edges have weights.
        """
        edge_index, edge_weight = add_remaining_self_loops(
            self.edge_index, self.edge_weight, fill_value=fill_value, num_nodes=self.num_labels
        )
        if only_isolated:
            receives = torch.bincount(self.edge_index[1], minlength=self.num_labels) > 0
            new = (edge_index[0] == edge_index[1]) & ~receives[edge_index[1]]
            edge_index = torch.cat([self.edge_index, edge_index[:, new]], dim=1)
            if self.edge_weight is not None:
                edge_weight = torch.cat([self.edge_weight, edge_weight[new]])
        return self._with_edges(edge_index, edge_weight)

    def remove_self_loops(self) -> LabelGraph:
        """Returns the graph in which no label attends to itself."""
        return self._with_edges(*remove_self_loops(self.edge_index, self.edge_weight))

    def to_undirected(self, reduce: str = "max") -> LabelGraph:
        """Returns the graph with every edge in both directions; :obj:`reduce`, as in PyG, makes one weight of two."""
        if self.edge_weight is None:
            return self._with_edges(to_undirected(self.edge_index, num_nodes=self.num_labels), None)
        loops = self.edge_index[0] == self.edge_index[1]
        # A loop is its own opposite: let it in once, or "add" would double its weight.
        pairs = to_undirected(
            self.edge_index[:, ~loops], self.edge_weight[~loops], self.num_labels, reduce=reduce
        )
        edge_index = torch.cat([pairs[0], self.edge_index[:, loops]], dim=1)
        return self._with_edges(edge_index, torch.cat([pairs[1], self.edge_weight[loops]]))

    def permute(self, perm: Tensor | Sequence[int]) -> LabelGraph:
        """Returns the graph with label :obj:`perm[i]` in place :obj:`i`, an order of labels as in :obj:`y[:, perm]`."""
        index = torch.as_tensor(perm)
        index = index if index.numel() else index.long()  # an empty list comes as floats
        if (
            index.dim() != 1
            or index.is_floating_point()
            or sorted(index.tolist()) != list(range(self.num_labels))
        ):
            expected = f"'perm' to hold each of 0 to {self.num_labels - 1} once"
            raise ValueError(f"Expected {expected} (got {index.tolist()[:10]}...)")
        index = index.long().to(self.edge_index.device)
        position = torch.empty_like(index).scatter_(
            0, index, torch.arange(index.numel(), device=index.device)
        )
        out = self._with_edges(position[self.edge_index], self.edge_weight)
        if self.parent_index is not None:
            out["parent_index"] = position[self.parent_index]
        for key in filter(self.is_node_attr, set(self.keys()) - {"parent_index"}):
            out[key] = (
                self[key][index]
                if isinstance(self[key], Tensor)
                else [self[key][i] for i in index.tolist()]
            )
        return out

    def locality_order(self, method: Order = "rcm") -> Tensor:
        r"""Returns an order of the labels in which neighbours stand close to each other, for :meth:`permute`.

        On a very large and sparse graph, attention waits for memory, and finds neighbours that are close by in a cache.

        .. code-block:: python

            order = label_graph.locality_order()
            label_graph, y = label_graph.permute(order), y[:, order]

        Args:
            method (str, optional): :obj:`"rcm"` for the order of the `"Reducing the Bandwidth of Sparse Symmetric
                Matrices" <https://doi.org/10.1145/800195.805928>`_ paper, reversed; :obj:`"tree"` for depth-first
                order, which keeps the branches of a tree together. (default: :obj:`"rcm"`)

        Shapes:
            - **output:** the old label at every new place :math:`(L)`
        """
        check_choice("method", method, get_args(Order))
        directed = csr_array(
            to_scipy_sparse_matrix(self.edge_index.cpu(), num_nodes=self.num_labels)
        )
        adjacency = (directed + directed.T).tocsr()
        if method == "rcm":
            from scipy.sparse.csgraph import reverse_cuthill_mckee  # takes long to import

            return torch.from_numpy(
                reverse_cuthill_mckee(adjacency, symmetric_mode=True).copy()
            ).long()
        import networkx as nx

        # each component from its first label
        forest = nx.dfs_preorder_nodes(nx.from_scipy_sparse_array(adjacency))
        return torch.tensor(list(forest), dtype=torch.long)

    def validate(self, raise_on_error: bool = True) -> bool:
        """Tells whether the graph is still as the constructor made it: in range, unique, sorted by target, named."""
        try:
            super().validate(raise_on_error=True)
            rebuilt = self._with_edges(self.edge_index, self.edge_weight)
            if not torch.equal(rebuilt.edge_index, self.edge_index):
                raise ValueError(
                    "Expected 'edge_index' to be unique and sorted by target, then source (got other)"
                )
        except (TypeError, ValueError):
            if raise_on_error:
                raise
            return False
        return True

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the graph, of tensors and plain data, to a :obj:`safetensors` file with the latter in its header."""
        attributes = {**self.to_dict(), "num_nodes": self.num_labels}
        tensors = {
            key: value.contiguous()
            for key, value in attributes.items()
            if isinstance(value, Tensor)
        }
        rest = {key: value for key, value in attributes.items() if key not in tensors}
        try:
            header = {"format": FORMAT, "attributes": json.dumps(rest)}
        except TypeError as error:
            expected = "the graph to hold tensors and plain data only"
            raise ValueError(
                f"Expected {expected} (got other data: {error}); remove that attribute"
            ) from error
        with replace_when_done(path) as unfinished:
            save_file(tensors, unfinished, metadata=header)

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
            raise ValueError(
                f"Expected '{path}' to be of format {FORMAT!r} (got {header.get('format')!r})"
            )
        try:
            return cls(**json.loads(header["attributes"]), **tensors)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            expected, hint = (
                f"'{path}' to hold a label graph as LabelGraph.save wrote it",
                "save the graph again",
            )
            raise ValueError(
                f"Expected {expected} (got {error!r}); the file is damaged, {hint}"
            ) from error

    def to_networkx(self, *, by_name: bool = False) -> nx.DiGraph[Any]:
        r"""Returns the graph as a :class:`networkx.DiGraph` from source to target, with the node attribute :obj:`name`
        and the edge attribute :obj:`weight` where it has them; nodes are indices, or names if :obj:`by_name` is set.
        """
        import networkx as nx

        if by_name and self.label_names is None:
            raise ValueError(
                "Expected a graph with 'label_names' for 'by_name' (got None); name its labels first"
            )
        weighted = self.edge_weight is not None
        out: nx.DiGraph[Any] = to_networkx(
            self, edge_attrs=["edge_weight"] if weighted else None, graph_attrs=["kind", "source"]
        )
        if weighted:
            nx.set_edge_attributes(
                out, {edge: out.edges[edge].pop("edge_weight") for edge in out.edges}, "weight"
            )
        if self.label_names is not None:
            names = dict(enumerate(self.label_names))
            nx.set_node_attributes(out, names, "name")
            out = nx.relabel_nodes(out, names) if by_name else out
        return out

    def to_frame(self) -> Any:
        """Returns the edges as a :class:`pandas.DataFrame` of :obj:`source`, :obj:`target` and, if there are any,
        :obj:`weight`, by the names of labels if they have some; ``to_csv`` writes what :meth:`read` reads.
        """
        names = self.label_names or range(self.num_labels)
        ends = [[names[label] for label in labels] for labels in self.edge_index.tolist()]
        columns: dict[str, list[Any]] = dict(zip(DEFAULT_COLUMNS, ends, strict=True))
        columns |= {} if self.edge_weight is None else {"weight": self.edge_weight.tolist()}
        return require("pandas", extra="data").DataFrame(columns)

    def plot(
        self, ax: Any = None, path: str | os.PathLike[str] | None = None, **kwargs: Any
    ) -> Any:
        """Draws the graph with :mod:`matplotlib`; see :func:`tg_mlc.graphs.plot.plot_label_graph`."""
        return plot_label_graph(self, ax, path, **kwargs)

    def __repr__(self) -> str:
        if isinstance(self, Batch) or self.edge_index is None:
            return str(super().__repr__())
        parts = [
            f"num_labels={self.num_labels}",
            f"num_edges={self.num_edges}",
            f"density={self.density:.3f}",
        ]
        parts += [f"{key}={self[key]!r}" for key in ("kind", "source") if self[key]]
        shown = {"num_nodes", "edge_index", "kind", "source"}
        parts += [size_repr(key, self[key]) for key in sorted(set(self._store) - shown)]
        return f"{type(self).__name__}({', '.join(parts)})"


# PyG lets torch.load(weights_only=True) read a Data, but not the private parts that it is made of.
torch.serialization.add_safe_globals([LabelGraph, GlobalStorage, DataEdgeAttr, DataTensorAttr])


def as_names(label_names: Sequence[str]) -> list[str]:
    """Returns the names as a list; a string is one name, not a list of them."""
    if isinstance(label_names, str | bytes) or not isinstance(label_names, Iterable):
        raise ValueError(f"Expected 'label_names' to be a list of names (got {label_names!r})")
    return list(label_names)


def check_label_names(label_names: Sequence[str], num_labels: int | None = None) -> list[str]:
    """Returns the names as a list, one unique string per label."""
    names = as_names(label_names)
    strange = [name for name in names if not isinstance(name, str)]
    if strange:
        raise ValueError(
            f"Expected 'label_names' to hold strings only (got {strange[0]!r}); convert with 'str'"
        )
    check_names(names, len(names) if num_labels is None else num_labels, "label_names", of="labels")
    return names


def check_keys(name: str, keys: Iterable[str], labels: Iterable[str]) -> None:
    """Refuses keys of a dictionary that are no labels."""
    if strange := sorted(set(keys).difference(labels)):
        raise ValueError(
            f"Expected the keys of '{name}' to be labels (got {strange[:5]}, not in 'label_names')"
        )
