"""Components, the output of encoders, and encoders that join or relate components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch_geometric.data import Data
from torch_geometric.index import ptr2index
from torch_geometric.utils import cumsum
from typing_extensions import Unpack

from tg_mlc._options import check_count
from tg_mlc.nn._batch import to_dense, to_ptr
from tg_mlc.nn.attention import BlockOptions
from tg_mlc.nn.feature import FeatureMessagePassing
from tg_mlc.ops.patterns import shape_error


class Components(NamedTuple):
    """Components of a batch of inputs: states that labels can attend to."""

    x: Tensor  #: ``[N, channels]``, states of all samples, concatenated
    ptr: Tensor  #: ``[B + 1]``, bounds of samples in :obj:`x`
    edge_index: Tensor | None = None  #: edges of a known graph of components, if any
    edge_attr: Tensor | None = None  #: ``[num_edges, channels]``, states of these edges
    #: ``[N]``, the only label that attends to each component; all labels if None
    to_label: Tensor | None = None


def check_columns(x: Tensor, num_columns: int, name: str) -> None:
    """Raises unless :obj:`x` has :obj:`num_columns` columns; -1 stands for any number."""
    if x.dim() != 2 or (num_columns != -1 and x.size(1) != num_columns):
        raise shape_error(name, f"[N, {'F' if num_columns == -1 else num_columns}]", x)


def read_symbols(
    data: Data, called: str, dtypes: tuple[torch.dtype, ...], highest: int, hint: str
) -> Tensor:
    """Returns the words or letters ``x`` of a batch as ``[N]`` numbers from 0 to ``highest``."""
    x: Tensor = data.x
    if x.dim() != 1 and (x.dim() != 2 or x.size(1) != 1):
        shape = "[N] or [N, 1], those of all samples one after another"
        cure = "; make a sample of each padded row without its padding and batch these"
        raise shape_error(f"{called} 'x'", shape, x, cure)
    if x.dtype not in dtypes:
        names = " or ".join(map(str, dtypes))
        message = f"Expected {called} 'x' to be whole numbers, {names} (got {x.dtype}); {hint}"
        raise ValueError(message)
    # On a GPU, this check would wait for all queued work.
    if not torch.compiler.is_compiling() and x.device.type == "cpu" and x.numel() > 0:
        low, high = (int(value) for value in x.aminmax())
        if low < 0 or high > highest:
            message = f"Expected {called} 'x' from 0 to {highest} (got {low} to {high}); {hint}"
            raise ValueError(message)
    return x.flatten().long()


def ptr_of(data: Data) -> Tensor:
    """Returns the bounds of each sample's nodes in a batch."""
    ptr: Tensor | None = data.get("ptr")
    batch: Tensor | None = data.get("batch") if ptr is None else None
    # The last samples may be empty; only a Batch knows the number of samples.
    return to_ptr(data.x, batch, ptr, getattr(data, "num_graphs", None))


class JointEncoder(nn.Module):
    r"""Joins the components of several encoders in each sample.

    Edges connect only components of the same encoder; at most one encoder may have edges. A layer
    normalisation brings all components to one scale.

    Args:
        encoders (list of torch.nn.Module): Encoders with equal :obj:`channels`.

    Shapes:
        - **input:** a batch that all encoders accept
        - **output:** :class:`~tg_mlc.nn.encoders.components.Components` with states
          :math:`(N_1 + \ldots + N_n, d)`

    Raises:
        ValueError: If channels differ, several encoders have edges, or one uses ``to_label``.
    """

    def __init__(self, encoders: Sequence[nn.Module]) -> None:
        super().__init__()
        channels = {cast(int, encoder.channels) for encoder in encoders}
        if len(channels) != 1:
            message = f"Expected 'encoders' to share their 'channels' (got {sorted(channels)})"
            raise ValueError(message)
        self.encoders = nn.ModuleList(encoders)
        self.channels = channels.pop()
        sizes = [cast("int | None", encoder.edge_dim) for encoder in encoders]
        edge_dims = [size for size in sizes if size is not None]
        if len(edge_dims) > 1:
            message = f"Expected at most one of 'encoders' to have edges (got {len(edge_dims)})"
            raise ValueError(message)
        self.edge_dim = edge_dims[0] if edge_dims else None
        self.norm = nn.LayerNorm(self.channels)

    def forward(self, data: Data) -> Components:
        """Encodes a batch with every encoder and joins the components of each sample."""
        joined = join([encoder(data) for encoder in self.encoders])
        return joined._replace(x=self.norm(joined.x))


def join(parts: list[Components]) -> Components:
    """Returns the components of all parts, concatenated in each sample in the order of parts."""
    if any(part.to_label is not None for part in parts):
        expected = "components that all labels attend to"
        raise ValueError(f"Expected {expected} (got 'to_label'); encode them alone")
    x = torch.cat([part.x for part in parts])
    samples = torch.cat([ptr2index(part.ptr, output_size=part.x.size(0)) for part in parts])
    # A stable sort keeps the order of each encoder's components within a sample.
    samples, order = torch.sort(samples, stable=True)
    ptr = torch.stack([part.ptr for part in parts]).sum(dim=0)
    rows = torch.arange(order.numel(), device=order.device)
    new_index = torch.empty_like(order).index_copy(0, order, rows)
    edges, states, offset = list[Tensor](), list[Tensor](), 0
    for part in parts:
        if part.edge_index is not None:
            edges.append(new_index[part.edge_index + offset])
            states += [] if part.edge_attr is None else [part.edge_attr]
        offset += part.x.size(0)
    if states and len(states) < len(edges):
        expected = "states of the edges of all encoders, or of none"
        raise ValueError(f"Expected {expected} (got those of {len(states)} of {len(edges)})")
    edge_index = torch.cat(edges, dim=1) if edges else None
    return Components(x[order], ptr, edge_index, torch.cat(states) if states else None)


class GivenComponents(nn.Module):
    r"""Adds a component for each known label to the components of an encoder.

    .. math::
        \mathbf{z} = \textrm{encoder}(\mathbf{x}) \, \Vert \, \{ \mathbf{s}_{i, k_i} : k_i \textrm{
        is known} \}

    Every model that uses components can thus use given labels (see
    :class:`~tg_mlc.nn.GivenLabels` for models with a state of every label).

    Args:
        encoder (torch.nn.Module): The encoder of the input.
        num_labels (int): The number of labels :math:`L`.

    Shapes:
        - **input:** a batch, with or without known labels :obj:`given` :math:`(B, L)`
        - **output:** :class:`~tg_mlc.nn.encoders.components.Components`

    Raises:
        ValueError: If :obj:`given` has another shape.
    """

    takes_given_labels = True

    def __init__(self, encoder: nn.Module, num_labels: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.channels = cast(int, encoder.channels)
        self.edge_dim = cast("int | None", encoder.edge_dim)
        self.num_labels = num_labels
        self.embedding = nn.Embedding(2 * num_labels, self.channels)

    def forward(self, data: Data) -> Components:
        """Encodes a batch and its given labels."""
        components: Components = self.encoder(data)
        given: Tensor | None = data.get("given")
        if given is None:
            return components
        expected = [components.ptr.numel() - 1, self.num_labels]
        if list(given.shape) != expected:
            raise shape_error("'given'", expected, given)
        is_known = ~given.isnan()
        sample, label = is_known.nonzero(as_tuple=True)
        states = self.embedding(label + self.num_labels * given[sample, label].long())
        return join([components, Components(states, cumsum(is_known.sum(dim=1)))])


class MessageEncoder(nn.Module):
    r"""Applies :class:`~tg_mlc.nn.FeatureMessagePassing` to the components of an encoder.

    Args:
        encoder (torch.nn.Module): The encoder of the input, of :obj:`channels` channels.
        num_layers (int, optional): Number of blocks. (default: :obj:`2`)
        **block (optional): Options of the blocks (see :class:`~tg_mlc.nn.AttentionConv`).

    Shapes:
        - **input:** a batch that :obj:`encoder` accepts
        - **output:** :class:`~tg_mlc.nn.encoders.components.Components` with states :math:`(N, d)`

    Raises:
        ValueError: If :obj:`num_layers` is less than 1, or an option of blocks is invalid.
    """

    def __init__(self, encoder: Any, num_layers: int = 2, **block: Unpack[BlockOptions]) -> None:
        super().__init__()
        self.channels: int = encoder.channels
        self.encoder = encoder
        edge_dim = encoder.edge_dim
        self.features = FeatureMessagePassing(self.channels, num_layers, edge_dim=edge_dim, **block)

    def forward(self, data: Data) -> Components:
        """Encodes a batch."""
        x, ptr, edge_index, edge_attr, _ = self.encoder(data)
        x = self.features(x, ptr=ptr, edge_index=edge_index, edge_attr=edge_attr)
        return Components(x, ptr)


class RecurrentEncoder(nn.Module):
    r"""Applies a bidirectional GRU to the ordered components of an encoder.

    .. math::
        \mathbf{z}_j = [\overrightarrow{\textrm{GRU}}(\mathbf{x}_1, \ldots, \mathbf{x}_j),
        \overleftarrow{\textrm{GRU}}(\mathbf{x}_S, \ldots, \mathbf{x}_j)]

    Args:
        encoder (torch.nn.Module): The encoder of the input, with an even number of channels.
        num_layers (int, optional): Number of layers. (default: :obj:`1`)
        dropout (float, optional): Dropout between layers. (default: :obj:`0.0`)

    Shapes:
        - **input, output:** As in :class:`MessageEncoder`.

    Raises:
        ValueError: If the number of channels is odd, or :obj:`num_layers` is less than 1.
    """

    def __init__(self, encoder: Any, num_layers: int = 1, *, dropout: float = 0.0) -> None:
        super().__init__()
        check_count("num_layers", num_layers)
        self.channels: int = encoder.channels
        if self.channels % 2 != 0:
            expected = "an even number of 'channels', half for each direction"
            raise ValueError(f"Expected {expected} (got {self.channels})")
        self.encoder = encoder
        options: Any = {"bidirectional": True, "batch_first": True}
        options["dropout"] = dropout if num_layers > 1 else 0.0
        self.gru = nn.GRU(self.channels, self.channels // 2, num_layers, **options)

    def forward(self, data: Data) -> Components:
        """Encodes a batch."""
        x, ptr, *_ = self.encoder(data)
        padded, mask = to_dense(x, ptr)
        lengths = ptr.diff().clamp(min=1).cpu()  # PyTorch cannot pack empty sequences.
        options = {"batch_first": True}
        packed = pack_padded_sequence(padded, lengths, enforce_sorted=False, **options)
        out, _ = self.gru(packed)
        states, _ = pad_packed_sequence(out, total_length=padded.size(1), **options)
        return Components(states[mask], ptr)
