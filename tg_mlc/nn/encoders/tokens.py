"""Encoders of text: the words of a document, in order or as a bag."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.sparse.linalg import svds
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.index import ptr2index
from torch_geometric.utils import segment, subgraph

from tg_mlc.nn.encoders.components import Components, ptr_of, read_symbols
from tg_mlc.ops.dropout import dropout

if TYPE_CHECKING:
    import scipy.sparse as sp


class BagEncoder(nn.Module):
    r"""Embeds the distinct words of a document, without order.

    Args:
        num_tokens (int): The size of the vocabulary.
        channels (int): Size :math:`d` of a state.
        dropout (float, optional): Dropout on whole words. (default: :obj:`0.0`)
        normalized (bool, optional): If set to :obj:`True`, the weights of a document's words are
            scaled to a mean square of one. (default: :obj:`False`)
        kept (torch.Tensor, optional): A mask :math:`(V)` of words in the vocabulary to use. Other
            words are removed from every document. (default: :obj:`None`)

    Shapes:
        - **input:** a batch with the present words :obj:`x` of shape :math:`(N)` or :math:`(N, 1)`,
          optional weights of words such as TF-IDF, :obj:`weight` of shape :math:`(N)`; and an
          optional graph of words, :obj:`edge_index`
        - **output:** :class:`~tg_mlc.nn.encoders.components.Components` with states :math:`(N, d)`

    Raises:
        ValueError: If words have another shape or type, or :obj:`kept` is not a mask :math:`(V)`.
    """

    edge_dim: int | None = None

    def __init__(
        self,
        num_tokens: int,
        channels: int,
        *,
        dropout: float = 0.0,
        normalized: bool = False,
        kept: Tensor | None = None,
    ) -> None:
        super().__init__()
        if kept is not None and (kept.shape != (num_tokens,) or kept.dtype != torch.bool):
            got = f"{kept.dtype} of shape {list(kept.shape)}"
            raise ValueError(f"Expected 'kept' to be a mask of shape [{num_tokens}] (got {got})")
        self.channels = channels
        self.dropout = dropout
        self.normalized = normalized
        self.embedding = nn.Embedding(num_tokens, channels)
        self.register_buffer("kept", kept)
        self.kept: Tensor | None

    @torch.no_grad()
    def start_from_documents(self, documents: sp.sparray, seed: int = 0) -> None:
        r"""Embeds co-occurring words alike, as in the `"Indexing by Latent Semantic Analysis"
        <https://doi.org/10.1002/(SICI)1097-4571(199009)41:6%3C391::AID-ASI1%3E3.0.CO;2-9>`_ paper.

        .. math::
            \mathbf{X} \approx \mathbf{U} \mathbf{\Sigma} \mathbf{V}^{\top}, \qquad
            \mathbf{e}_w = \frac{c}{\sqrt{i_w}} \, \frac{\mathbf{R} \mathbf{\Sigma} \mathbf{v}_w}
            {\lVert \mathbf{\Sigma} \mathbf{v}_w \rVert}, \; i_w = 1 + \log \tfrac{1 + N}{1 + N_w}

        with a random rotation :math:`\mathbf{R}`, and the number :math:`N_w` of the :math:`N`
        documents that contain the word. Dividing by :math:`\sqrt{i_w}` weakens TF-IDF, because
        labels that attend to the rarest words memorise documents. The factor :math:`c` makes the
        mean norm :math:`\sqrt{d}`. Words in no document, and words not :obj:`kept`, are zero.

        Args:
            documents (scipy.sparse.sparray): Weights of words :math:`(N, V)`, *e.g.* TF-IDF.
            seed (int, optional): Seed of the rotation. (default: :obj:`0`)

        Raises:
            ValueError: If the shape differs, or all documents are empty.
        """
        num_words, channels = self.embedding.weight.shape
        if documents.ndim != 2 or documents.shape[1] != num_words or min(documents.shape) < 2:
            expected = f"'documents' of shape [N, {num_words}] with at least 2 rows and columns"
            raise ValueError(f"Expected {expected} (got {list(documents.shape)})")
        kept = np.ones(num_words, dtype=bool) if self.kept is None else self.kept.cpu().numpy()
        documents = documents * kept
        frequency = np.asarray((documents != 0).sum(axis=0)).ravel()
        if not frequency.any():
            raise ValueError("Expected 'documents' with words (got zeros only)")
        norms = (1 + np.log((1 + documents.shape[0]) / (1 + frequency))) ** -0.5
        norms *= (frequency > 0) * (channels**0.5 * frequency.sum() / (frequency @ norms))
        rng = np.random.default_rng(seed)
        rank = min(channels, min(documents.shape) - 1)
        initial = rng.standard_normal(min(documents.shape))
        _, scales, directions = svds(documents.astype(np.float64), k=rank, v0=initial)
        rotation = np.linalg.qr(rng.standard_normal((channels, channels)))[0][:rank]
        words = nn.functional.normalize(torch.from_numpy((directions.T * scales) @ rotation))
        self.embedding.weight.copy_(words * torch.from_numpy(norms).unsqueeze(-1))

    def forward(self, data: Data) -> Components:
        """Encodes the tokens of a batch, without order."""
        tokens, ptr = _tokens(data, self.embedding.num_embeddings), ptr_of(data)
        weight, edge_index = data.get("weight"), data.get("edge_index")
        if self.kept is not None:
            kept = self.kept[tokens]
            if edge_index is not None:
                edge_index, _ = subgraph(kept, edge_index, relabel_nodes=True)
            ptr = nn.functional.pad(kept.cumsum(0), (1, 0))[ptr]
            tokens, weight = tokens[kept], None if weight is None else weight[kept]
        x = self.embedding(tokens)
        if weight is not None and self.normalized:
            rms: Tensor = segment(weight.square(), ptr, reduce="mean").sqrt()
            rms = rms.repeat_interleave(ptr.diff(), output_size=weight.numel())
            weight = weight * rms.clamp_min(torch.finfo(weight.dtype).tiny).reciprocal()
        if self.training and self.dropout > 0.0:
            weight = torch.ones_like(x[:, 0]) if weight is None else weight
            weight = dropout(weight, self.dropout)
        return Components(x if weight is None else x * weight.view(-1, 1), ptr, edge_index)


class SequenceEncoder(nn.Module):
    r"""Embeds the words of a document in order, by adding the sinusoidal positions from the
    `"Attention Is All You Need" <https://arxiv.org/abs/1706.03762>`_ paper, counted from one.

    Args:
        num_tokens (int): The size of the vocabulary.
        channels (int): Size :math:`d` of a state.
        positions (torch.Tensor, optional): A table :math:`(P, d)`. (default: :obj:`None`)

    Shapes:
        - **input, output:** As in :class:`BagEncoder`, without weights.

    Raises:
        ValueError: If words are of another shape or type, or a sequence is longer than the table.
    """

    edge_dim: int | None = None

    def __init__(self, num_tokens: int, channels: int, positions: Tensor | None = None) -> None:
        super().__init__()
        self.channels = channels
        self.embedding = nn.Embedding(num_tokens, channels)
        self.register_buffer("positions", positions)
        self.positions: Tensor | None

    def forward(self, data: Data) -> Components:
        """Encodes the tokens of a batch, with their positions."""
        ptr = ptr_of(data)
        x: Tensor = self.embedding(_tokens(data, self.embedding.num_embeddings))
        sample = ptr2index(ptr, output_size=x.size(0))
        position = torch.arange(x.size(0), device=x.device) - ptr[sample]
        if self.positions is None:
            channel = torch.arange(self.channels, device=x.device)
            exponent = (channel - channel % 2).double() / self.channels
            angle = (position + 1).double().unsqueeze(-1) / torch.pow(10000.0, exponent)
            states = torch.where(channel % 2 == 0, angle.sin(), angle.cos()).float()
        else:
            size, is_empty = len(self.positions), position.numel() == 0
            if not (torch.compiler.is_compiling() or is_empty) and int(position.max()) >= size:
                expected = f"sequences of at most {size} words, as the table of positions has"
                raise ValueError(f"Expected {expected} (got {int(position.max()) + 1})")
            states = self.positions[position]
        return Components(x + states.to(x.dtype), ptr, data.get("edge_index"))


def _tokens(data: Data, num_tokens: int) -> Tensor:
    cure = "vectors are for VectorEncoder, letters of DNA for DNAEncoder; or cast with '.long()'"
    return read_symbols(data, "words", (torch.long, torch.int), num_tokens - 1, cure)
