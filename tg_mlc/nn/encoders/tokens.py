"""Text: the words of a document, in order or as a bag."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.sparse.linalg import svds
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.index import ptr2index

from tg_mlc.nn.encoders.components import Components, ptr_of
from tg_mlc.ops.dropout import dropout

if TYPE_CHECKING:
    import scipy.sparse as sp


class BagEncoder(nn.Module):
    r"""Embeds the words that are present in a document, without their order.

    Args:
        num_tokens (int): The size of the vocabulary.
        channels (int): Size :math:`d` of a state.
        dropout (float, optional): Dropout on whole words. (default: :obj:`0.0`)
        normalized (bool, optional): If set to :obj:`True`, the weights of a document's words are taken to have a sum of
            squares of one, as TF-IDF has it, and scaled to a mean square of one, whatever the number :math:`n` of words
            (:math:`\sqrt{n}`). (default: :obj:`False`)

    Shapes:
        - **input:** a batch with the present words :obj:`x` of shape :math:`(N)` or :math:`(N, 1)`, and, if the words
          carry weights such as TF-IDF, :obj:`weight` of shape :math:`(N)`; a known graph among them, if there is
          one, as :obj:`edge_index`
        - **output:** :class:`~tg_mlc.nn.encoders.Components` with states :math:`(N, d)`

    Raises:
        ValueError: If the words are of another shape or type.
    """

    edge_dim: int | None = None

    def __init__(self, num_tokens: int, channels: int, *, dropout: float = 0.0, normalized: bool = False) -> None:
        super().__init__()
        self.channels = channels
        self.dropout = dropout
        self.normalized = normalized
        self.embedding = nn.Embedding(num_tokens, channels)

    @torch.no_grad()
    def start_from_documents(self, documents: sp.sparray, seed: int = 0) -> None:
        r"""Starts words that occur in the same documents alike, as the `"Indexing by Latent Semantic Analysis"
        <https://doi.org/10.1002/(SICI)1097-4571(199009)41:6%3C391::AID-ASI1%3E3.0.CO;2-9>`_ paper does.

        .. math::
            \mathbf{X} \approx \mathbf{U} \mathbf{\Sigma} \mathbf{V}^{\top}, \qquad
            \mathbf{e}_w = \sqrt{d} \, \frac{\mathbf{R} \mathbf{\Sigma} \mathbf{v}_w}
            {\lVert \mathbf{\Sigma} \mathbf{v}_w \rVert}

        with a random rotation :math:`\mathbf{R}`, as no channel is to be more than another. A word of no document
        starts at zero.

        Args:
            documents (scipy.sparse.sparray): Weights of words in training documents, *e.g.* TF-IDF, :math:`(N, V)`.
            seed (int, optional): Seed of the rotation. (default: :obj:`0`)

        Raises:
            ValueError: If the documents have another vocabulary, there are fewer than two of them or of words, or all
                are empty.
        """
        num_words, channels = self.embedding.weight.shape
        if documents.ndim != 2 or documents.shape[1] != num_words or min(documents.shape) < 2:
            raise ValueError(
                f"Expected 'documents' of shape [N, {num_words}] with at least 2 rows and columns (got "
                f"{list(documents.shape)})"
            )
        present = torch.from_numpy(np.asarray(abs(documents).sum(axis=0)).ravel() > 0)
        if not present.any():
            raise ValueError("Expected 'documents' with words (got zeros only)")
        rng = np.random.default_rng(seed)
        rank = min(channels, min(documents.shape) - 1)
        start = rng.standard_normal(min(documents.shape))
        _, sizes, directions = svds(documents.astype(np.float64), k=rank, v0=start)
        rotation = np.linalg.qr(rng.standard_normal((channels, channels)))[0][:rank]
        words = torch.from_numpy((directions.T * sizes) @ rotation).to(self.embedding.weight)
        words = channels**0.5 * nn.functional.normalize(words)
        self.embedding.weight.copy_(torch.where(present.unsqueeze(-1).to(words.device), words, 0.0))

    def forward(self, data: Data) -> Components:
        ptr, x = ptr_of(data), self.embedding(_tokens(data, self.embedding.num_embeddings))
        weight = self._weight(data, ptr)
        return Components(x if weight is None else x * weight.view(-1, 1), ptr, data.get("edge_index"))

    def _weight(self, data: Data, ptr: Tensor) -> Tensor | None:
        weight: Tensor | None = data.get("weight")
        if weight is not None and self.normalized:
            lengths = ptr.diff()
            weight = weight * lengths.to(weight.dtype).sqrt().repeat_interleave(lengths, output_size=weight.numel())
        if not self.training or self.dropout == 0.0:
            return weight
        ones = torch.ones(data.x.numel(), device=ptr.device) if weight is None else weight
        return dropout(ones, self.dropout, self.training)


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
        ValueError: If the words are of another shape or type, or a sequence is longer than the given table.
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
        x: Tensor = self.embedding(_tokens(data, self.embedding.num_embeddings))
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


def _tokens(data: Data, num_tokens: int) -> Tensor:
    tokens: Tensor = data.x
    if tokens.dim() != 1 and (tokens.dim() != 2 or tokens.size(1) != 1):
        raise ValueError(
            f"Expected words 'x' of shape [N] or [N, 1], those of all samples one after another (got "
            f"{list(tokens.shape)}); of padded rows, make a sample of each without its padding and batch these"
        )
    if tokens.is_floating_point():
        raise ValueError(
            f"Expected words 'x' to be the numbers of words (got {tokens.dtype}); vectors are for VectorEncoder"
        )
    if tokens.dtype not in (torch.long, torch.int):
        raise ValueError(
            f"Expected words 'x' to be torch.long (got {tokens.dtype}); the letters of DNA are for DNAEncoder, numbers "
            f"of words may be cast with '.long()'"
        )
    # On a GPU, a look would wait for all work before it.
    if not torch.compiler.is_compiling() and tokens.device.type == "cpu" and tokens.numel() > 0:
        lowest, highest = (int(value) for value in tokens.aminmax())
        if lowest < 0 or highest >= num_tokens:
            raise ValueError(f"Expected words 'x' from 0 to {num_tokens - 1} (got {lowest} to {highest})")
    return tokens.flatten()


def sinusoid(position: Tensor, channels: int) -> Tensor:
    """Sines in the even and cosines in the odd channels, computed in double precision.

    Args:
        position (torch.Tensor): Positions of any shape.
        channels (int): The number :math:`d` of channels.

    Shapes:
        - **output:** :math:`(*, d)`
    """
    channel = torch.arange(channels, device=position.device)
    exponent = (channel - channel % 2).double() / channels
    angle = position.double().unsqueeze(-1) / torch.pow(10000.0, exponent)
    return torch.where(channel % 2 == 0, angle.sin(), angle.cos()).float()
