"""Text: the words of a document, in order or as a bag."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.index import ptr2index

from tg_mlc.nn.encoders.components import Components, ptr_of


class BagEncoder(nn.Module):
    r"""Embeds the words that are present in a document, without their order.

    Args:
        num_tokens (int): The size of the vocabulary.
        channels (int): Size :math:`d` of a state.

    Shapes:
        - **input:** a batch with the present words :obj:`x` of shape :math:`(N)` or :math:`(N, 1)`, and, if the words
          carry weights such as TF-IDF, :obj:`weight` of shape :math:`(N)`; a known graph among them, if there is
          one, as :obj:`edge_index`
        - **output:** :class:`~tg_mlc.nn.encoders.Components` with states :math:`(N, d)`

    Raises:
        ValueError: If the words are of another shape.
    """

    edge_dim: int | None = None

    def __init__(self, num_tokens: int, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self.embedding = nn.Embedding(num_tokens, channels)

    def forward(self, data: Data) -> Components:
        x = self.embedding(_tokens(data))
        weight = data.get("weight")
        return Components(x if weight is None else x * weight.view(-1, 1), ptr_of(data), data.get("edge_index"))


class SequenceEncoder(nn.Module):
    r"""Embeds the words of a document in their order, by adding the sinusoidal positions of the `"Attention Is All You
    Need" <https://arxiv.org/abs/1706.03762>`_ paper, counted from one.

    Args:
        num_tokens (int): The size of the vocabulary.
        channels (int): Size :math:`d` of a state.
        positions (torch.Tensor, optional): A table of position states of shape :math:`(P, d)` to take instead.
            (default: :obj:`None`)

    Shapes:
        - **input:** a batch with words :obj:`x` of shape :math:`(N)` or :math:`(N, 1)`; a known graph among them, if
          there is one, as :obj:`edge_index`
        - **output:** :class:`~tg_mlc.nn.encoders.Components` with states :math:`(N, d)`

    Raises:
        ValueError: If the words are of another shape, or a sequence is longer than the given table.
    """

    edge_dim: int | None = None

    def __init__(self, num_tokens: int, channels: int, positions: Tensor | None = None) -> None:
        super().__init__()
        self.channels = channels
        self.embedding = nn.Embedding(num_tokens, channels)
        self.register_buffer("positions", positions)
        self.positions: Tensor | None

    def forward(self, data: Data) -> Components:
        ptr = ptr_of(data)
        x: Tensor = self.embedding(_tokens(data))
        position = torch.arange(x.size(0), device=x.device) - ptr[ptr2index(ptr, output_size=x.size(0))]
        return Components(x + self._encode(position).to(x.dtype), ptr, data.get("edge_index"))

    def _encode(self, position: Tensor) -> Tensor:
        if self.positions is None:
            return sinusoid(position + 1, self.channels)
        if not torch.compiler.is_compiling() and position.numel() > 0 and int(position.max()) >= len(self.positions):
            raise ValueError(
                f"Expected sequences of at most {len(self.positions)} words, the length of the table of positions "
                f"(got {int(position.max()) + 1})"
            )
        return self.positions[position]


def _tokens(data: Data) -> Tensor:
    tokens: Tensor = data.x
    if tokens.dim() != 1 and (tokens.dim() != 2 or tokens.size(1) != 1):
        raise ValueError(
            f"Expected words 'x' of shape [N] or [N, 1], those of all samples one after another (got "
            f"{list(tokens.shape)}); of padded rows, make a sample of each without its padding and batch these"
        )
    return tokens.flatten()


def sinusoid(position: Tensor, channels: int) -> Tensor:
    """Sines in the even and cosines in the odd channels, computed in double precision."""
    channel = torch.arange(channels, device=position.device)
    exponent = (channel - channel % 2).double() / channels
    angle = position.double().unsqueeze(-1) / torch.pow(10000.0, exponent)
    return torch.where(channel % 2 == 0, angle.sin(), angle.cos()).float()
