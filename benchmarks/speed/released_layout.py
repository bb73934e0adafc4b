"""Layout of the released LaMP code in plain PyTorch: padded, dense, repeated for every sample."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PAD = 0


class ReleasedLayout(nn.Module):
    r"""LaMP in the layout of the authors' released code, with the names of its state dict, so that
    :func:`tg_mlc.papers.convert.load_lamp_checkpoint` takes its weights.

    Scores are dense products of all heads and samples, ``[heads * B, L, L]``, whatever the label
    graph; the label embedding is repeated for every sample before the first step; and the readout
    multiplies every label state with the weights of all labels, to keep the diagonal.

    Args:
        num_tokens (int): The size of the vocabulary. Word 0 is padding.
        num_labels (int): The number of labels :math:`L`.
        channels (int): Size :math:`d` of a state.
        heads (int): Number of attention heads.
        label_mask (torch.Tensor, optional): Which labels (columns) a label (row) does **not**
            attend to. (default: :obj:`None`)
        num_layers (int, optional): Number of encoder and of decoder layers. (default: :obj:`2`)
        dropout (float, optional): Dropout on weights, and on the outputs of attention and MLP.
            (default: :obj:`0.1`)
        discard_feature_attention (bool, optional): If set to :obj:`True`, encoder layers compute an
            attention and ignore it, as the released code does. (default: :obj:`False`)

    Shapes:
        - **input:** words :math:`(B, S)`
        - **output:** logits :math:`(B, L)`
    """

    def __init__(
        self,
        num_tokens: int,
        num_labels: int,
        channels: int,
        heads: int,
        label_mask: Tensor | None = None,
        num_layers: int = 2,
        dropout: float = 0.1,
        *,
        discard_feature_attention: bool = False,
    ) -> None:
        super().__init__()
        block: dict[str, Any] = {"channels": channels, "heads": heads, "dropout": dropout}
        self.encoder = _Encoder(num_tokens, num_layers, block, discard_feature_attention)
        self.decoder = _Decoder(num_labels, num_layers, block)
        self.tgt_word_proj = nn.ModuleDict({"linear": nn.Linear(channels, num_labels, bias=False)})
        self.register_buffer("label_mask", label_mask, persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        absent = (tokens == PAD).unsqueeze(1)  # [B, 1, S]
        u = self.decoder(self.encoder(tokens, absent), absent, self.label_mask)
        logits: Tensor = self.tgt_word_proj["linear"](u)  # [B, L, L]
        return logits.diagonal(dim1=1, dim2=2)


class _Encoder(nn.Module):
    def __init__(
        self, num_tokens: int, num_layers: int, block: dict[str, Any], discard: bool
    ) -> None:
        super().__init__()
        self.discard = discard
        self.src_word_emb = nn.Embedding(num_tokens, block["channels"], padding_idx=PAD)
        names = ("slf_attn", "pos_ffn")
        self.layer_stack = nn.ModuleList()
        for _ in range(num_layers):
            modules = (_Attention(**block), _FeedForward(**block))
            self.layer_stack.append(nn.ModuleDict(dict(zip(names, modules, strict=True))))

    def forward(self, tokens: Tensor, absent: Tensor) -> Tensor:
        z: Tensor = self.src_word_emb(tokens)
        mask = absent.expand(-1, tokens.size(1), -1)  # [B, S, S]
        for layer in self.layer_stack:
            attended = layer["slf_attn"](z, z, mask)
            z = layer["pos_ffn"](z if self.discard else attended)
        return z


class _Decoder(nn.Module):
    def __init__(self, num_labels: int, num_layers: int, block: dict[str, Any]) -> None:
        super().__init__()
        self.tgt_word_emb = nn.Embedding(num_labels, block["channels"])
        self.layer_stack = nn.ModuleList(_DecoderLayer(block) for _ in range(num_layers))

    def forward(self, z: Tensor, absent: Tensor, label_mask: Tensor | None) -> Tensor:
        num_samples, num_labels = z.size(0), self.tgt_word_emb.num_embeddings
        u = self.tgt_word_emb.weight.unsqueeze(0).repeat(num_samples, 1, 1)
        absent = absent.expand(-1, num_labels, -1)  # [B, L, S]
        if label_mask is not None:
            label_mask = label_mask.unsqueeze(0).expand(num_samples, -1, -1)  # [B, L, L]
        for layer in self.layer_stack:
            u = layer(u, z, absent, label_mask)
        return u


class _DecoderLayer(nn.Module):
    def __init__(self, block: dict[str, Any]) -> None:
        super().__init__()
        self.enc_attn, self.pos_ffn1 = _Attention(**block), _FeedForward(**block)
        self.slf_attn, self.pos_ffn2 = _Attention(**block), _FeedForward(**block)

    def forward(self, u: Tensor, z: Tensor, absent: Tensor, label_mask: Tensor | None) -> Tensor:
        u = self.pos_ffn1(self.enc_attn(u, z, absent))
        out: Tensor = self.pos_ffn2(self.slf_attn(u, u, label_mask))
        return out


class _Attention(nn.Module):
    """Unfused attention: scores, softmax and weighted sums in turn, for all heads and samples."""

    def __init__(self, channels: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.w_qs, self.w_ks, self.w_vs, self.fc = (
            nn.Linear(channels, channels, bias=False) for _ in range(4)
        )
        self.layer_norm = nn.LayerNorm(channels)

    def forward(self, target: Tensor, source: Tensor, mask: Tensor | None) -> Tensor:
        projected = (self.w_qs(target), self.w_ks(source), self.w_vs(source))
        query, key, value = map(self._split, projected)
        score = torch.bmm(query, key.transpose(1, 2)) / query.size(-1) ** 0.5  # [heads * B, L, S]
        if mask is not None:
            score = score.masked_fill(mask.repeat(self.heads, 1, 1), -torch.inf)
        weight = F.dropout(score.softmax(dim=2), self.dropout, self.training)
        message = torch.bmm(weight, value).unflatten(0, (self.heads, -1))  # [heads, B, L, C]
        message = message.permute(1, 2, 0, 3).flatten(start_dim=2)
        message = F.dropout(self.fc(message), self.dropout, self.training)
        out: Tensor = self.layer_norm(target + message)
        return out

    def _split(self, x: Tensor) -> Tensor:
        """Reshapes ``[B, N, d]`` to ``[heads * B, N, C]``."""
        return x.unflatten(2, (self.heads, -1)).permute(2, 0, 1, 3).flatten(end_dim=1)


class _FeedForward(nn.Module):
    """Two convolutions of width one."""

    def __init__(self, channels: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.w_1, self.w_2 = nn.Conv1d(channels, channels, 1), nn.Conv1d(channels, channels, 1)
        self.layer_norm = nn.LayerNorm(channels)
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.w_2(F.relu(self.w_1(x.transpose(1, 2)))).transpose(1, 2)
        out: Tensor = self.layer_norm(x + F.dropout(hidden, self.dropout, self.training))
        return out
