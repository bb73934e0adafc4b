"""Encoders that let the components of another encoder know of each other."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch_geometric.data import Data
from typing_extensions import Unpack

from tg_mlc._options import check_count
from tg_mlc.nn._batch import to_dense
from tg_mlc.nn.attention import BlockOptions
from tg_mlc.nn.encoders.components import Components
from tg_mlc.nn.feature import FeatureMessagePassing


class MessageEncoder(nn.Module):
    r"""Another encoder with :class:`~tg_mlc.nn.FeatureMessagePassing` among its components.

    Args:
        encoder (torch.nn.Module): The encoder of the input, of :obj:`channels` channels.
        num_layers (int, optional): Number of blocks. (default: :obj:`2`)
        **block (optional): Options of the blocks (see :class:`~tg_mlc.nn.AttentionConv`).

    Shapes:
        - **input:** a batch, as :obj:`encoder` takes it
        - **output:** :class:`~tg_mlc.nn.encoders.components.Components` with states :math:`(N, d)`

    Raises:
        ValueError: If :obj:`num_layers` is less than 1, or the blocks refuse a size or an option.
    """

    def __init__(self, encoder: Any, num_layers: int = 2, **block: Unpack[BlockOptions]) -> None:
        super().__init__()
        self.channels: int = encoder.channels
        self.encoder = encoder
        self.features = FeatureMessagePassing(self.channels, num_layers, edge_dim=encoder.edge_dim, **block)

    def forward(self, data: Data) -> Components:
        """Encodes a batch."""
        x, ptr, edge_index, edge_attr, _ = self.encoder(data)
        return Components(self.features(x, ptr=ptr, edge_index=edge_index, edge_attr=edge_attr), ptr)


class RecurrentEncoder(nn.Module):
    r"""Another encoder with a bidirectional GRU over its components, in the order in which it gives them.

    .. math::
        \mathbf{z}_j = [\overrightarrow{\textrm{GRU}}(\mathbf{x}_1, \ldots, \mathbf{x}_j),
        \overleftarrow{\textrm{GRU}}(\mathbf{x}_S, \ldots, \mathbf{x}_j)]

    Args:
        encoder (torch.nn.Module): The encoder of the input, of :obj:`channels` channels, an even number.
        num_layers (int, optional): Number of layers. (default: :obj:`1`)
        dropout (float, optional): Dropout between layers. (default: :obj:`0.0`)

    Shapes:
        - **input:** a batch, as :obj:`encoder` takes it
        - **output:** :class:`~tg_mlc.nn.encoders.components.Components` with states :math:`(N, d)`

    Raises:
        ValueError: If the number of channels is odd, or :obj:`num_layers` is less than 1.
    """

    def __init__(self, encoder: Any, num_layers: int = 1, *, dropout: float = 0.0) -> None:
        super().__init__()
        check_count("num_layers", num_layers)
        self.channels: int = encoder.channels
        if self.channels % 2 != 0:
            raise ValueError(f"Expected an even number of 'channels', half for each direction (got {self.channels})")
        self.encoder = encoder
        self.gru = nn.GRU(
            self.channels,
            self.channels // 2,
            num_layers,
            dropout=dropout if num_layers > 1 else 0.0,
            bidirectional=True,
            batch_first=True,
        )

    def forward(self, data: Data) -> Components:
        """Encodes a batch."""
        x, ptr, *_ = self.encoder(data)
        return Components(self._run(x, ptr), ptr)

    def _run(self, x: Tensor, ptr: Tensor) -> Tensor:
        padded, mask = to_dense(x, ptr)
        lengths = ptr.diff().clamp(min=1).cpu()  # a GRU refuses samples without components
        out, _ = self.gru(pack_padded_sequence(padded, lengths, batch_first=True, enforce_sorted=False))
        states, _ = pad_packed_sequence(out, batch_first=True, total_length=padded.size(1))
        return states[mask]
