"""Encoder of dense vectors: one or more components for each sample."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import Linear

from tg_mlc.nn.encoders.components import Components, check_columns
from tg_mlc.ops.dropout import dropout


class VectorEncoder(nn.Module):
    r"""Maps a dense vector linearly to components, by default to a single one.

    .. math::
        \mathbf{z}_k = \mathbf{W}^{(k)} \mathbf{x} + \mathbf{b}^{(k)}, \qquad k = 1, \ldots, n

    Args:
        in_channels (int): Size of the vector, or :obj:`-1` to take it from the first input.
        channels (int): Size :math:`d` of a state.
        num_components (int, optional): The number :math:`n` of components. (default: :obj:`1`)
        key (str, optional): The attribute with the vectors. (default: :obj:`"x"`)
        scaling (torch.nn.Module, optional): Applied to the vectors first, *e.g.*
            :class:`~tg_mlc.inputs.QuantileScaler`. (default: :obj:`None`)
        dropout (float, optional): Dropout on scaled vectors. (default: :obj:`0.0`)

    Shapes:
        - **input:** a batch with vectors of shape :math:`(B, F)`
        - **output:** :class:`~tg_mlc.nn.encoders.components.Components` with states
          :math:`(B \cdot n, d)`

    Raises:
        ValueError: If vectors have another size, or are not floating-point numbers.
    """

    edge_dim: int | None = None

    def __init__(
        self,
        in_channels: int,
        channels: int,
        num_components: int = 1,
        *,
        key: str = "x",
        scaling: nn.Module | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.channels = channels
        self.num_components = num_components
        self.key = key
        self.scaling = nn.Identity() if scaling is None else scaling
        self.dropout = dropout
        self.lin = Linear(in_channels, num_components * channels)

    def vectors(self, data: Data) -> Tensor:
        """Returns the scaled vectors :math:`(B, F)` of a batch, with dropout."""
        x = data[self.key]
        if not x.is_floating_point():
            expected = f"vectors '{self.key}' of floating-point numbers"
            cure = "the numbers of words are for BagEncoder or SequenceEncoder"
            raise ValueError(f"Expected {expected} (got {x.dtype}); {cure}")
        x = self.scaling(x)
        check_columns(x, self.lin.in_channels, f"vectors '{self.key}'")
        return dropout(x, self.dropout, self.training)

    def forward(self, data: Data) -> Components:
        """Encodes the vectors of a batch."""
        vectors = self.vectors(data)
        x = self.lin(vectors).view(-1, self.channels)
        ptr = torch.arange(vectors.size(0) + 1, device=x.device) * self.num_components
        return Components(x, ptr)


class LinearPath(nn.Module):
    r"""Linear logits of dense vectors, to add to the logits of label message passing.

    .. math::
        y_i = \sum_v \mathbf{w}_i^{(v)} \cdot \mathbf{x}^{(v)}

    Linear models are strong if vectors are long and samples are few. Message passing then learns
    what the linear model misses. The weights start from zero.

    Args:
        encoders (list of VectorEncoder): The encoders that provide scaled vectors.
        num_labels (int): The number of labels :math:`L`.

    Shapes:
        - **input:** a batch that the encoders accept
        - **output:** logits :math:`(B, L)`
    """

    def __init__(self, encoders: Sequence[VectorEncoder], num_labels: int) -> None:
        super().__init__()
        self.encoders = list(encoders)  # Not submodules: the model's encoder owns them.
        sizes = [encoder.in_channels for encoder in encoders]
        self.lins = nn.ModuleList(nn.Linear(size, num_labels, bias=False) for size in sizes)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        for parameter in self.parameters():
            nn.init.zeros_(parameter)

    def forward(self, data: Data) -> Tensor:
        """Returns the logits of a batch."""
        pairs = zip(self.lins, self.encoders, strict=True)
        return torch.stack([lin(encoder.vectors(data)) for lin, encoder in pairs]).sum(dim=0)
