"""The equations of the released LaMP code in NumPy and double precision, on padded batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch


@dataclass(frozen=True)
class Config:
    """The options of the released code that change its state dict."""

    num_labels: int = 5
    num_inputs: int = 11
    channels: int = 8
    n_head: int = 4
    n_head2: int = 4
    d_k: int = 2
    d_v: int = 2
    d_inner_hid: int = 6
    n_layers_enc: int = 2
    n_layers_dec: int = 2
    max_length: int | None = None  #: Longest input of the table of positions.
    vectors: bool = False
    no_dec_self_att: bool = False
    share_weight: bool = True
    int_preds: bool = True


class Output(NamedTuple):
    logits: np.ndarray  # [B, L]
    intermediate: list[np.ndarray]
    encoder_attention: list[np.ndarray]  # [heads * B, S, S]
    cross_attention: list[np.ndarray]  # [heads * B, L, S]
    self_attention: list[np.ndarray]  # [heads2 * B, L, L]


def shapes(c):
    """Returns the names and shapes of the tensors in the released state dict."""
    d, hidden, rows, out = c.channels, c.d_inner_hid, c.num_labels if c.share_weight else 1, {}

    def norm(name):
        out.update({f"{name}.layer_norm.weight": (d,), f"{name}.layer_norm.bias": (d,)})

    def attention(name, heads):
        keys, values = (heads * c.d_k, d), (heads * c.d_v, d)
        out.update({f"{name}.w_qs.weight": keys, f"{name}.w_ks.weight": keys})
        out[f"{name}.w_vs.weight"] = values
        out.update({f"{name}.fc.weight": values[::-1]} if heads > 1 else {})
        norm(name)

    def mlp(name):
        out.update({f"{name}.w_1.weight": (hidden, d, 1), f"{name}.w_1.bias": (hidden,)})
        out.update({f"{name}.w_2.weight": (d, hidden, 1), f"{name}.w_2.bias": (d,)})
        norm(name)

    if c.vectors:
        out.update({"encoder.linear1.weight": (d, c.num_inputs), "encoder.linear1.bias": (d,)})
    else:
        out["encoder.src_word_emb.weight"] = (c.num_inputs, d)
        if c.max_length is not None:
            out["encoder.position_enc.weight"] = (c.max_length + 1, d)
        for i in range(c.n_layers_enc):
            attention(f"encoder.layer_stack.{i}.slf_attn", c.n_head)
            mlp(f"encoder.layer_stack.{i}.pos_ffn")
    out["decoder.tgt_word_emb.weight"] = (c.num_labels, d)
    for name in (f"decoder.layer_stack.{t}" for t in range(c.n_layers_dec)):
        attention(f"{name}.enc_attn", c.n_head)
        mlp(f"{name}.pos_ffn1")
        if not c.no_dec_self_att:
            attention(f"{name}.slf_attn", c.n_head2)
        mlp(f"{name}.pos_ffn2")
    out["tgt_word_proj.linear.weight"] = (rows, d)
    own = {"weight": (rows, d)} if c.share_weight else {"linear.bias": (rows,)}
    out.update({f"tgt_word_proj.{name}": shape for name, shape in own.items()})
    if c.int_preds:
        out["tgt_word_proj_copy.linear.weight"] = (c.num_labels, d)
    return out


def random_state(c, seed=0):
    generator = torch.Generator().manual_seed(seed)
    state = {name: torch.randn(shape, generator=generator) for name, shape in shapes(c).items()}
    if c.max_length is not None and not c.vectors:
        state["encoder.position_enc.weight"][0] = 0.0
    return state


class Released:
    """Runs a state dict the way the released code does."""

    def __init__(self, state, c, attends=None, pool=""):
        self.w = {name: tensor.double().numpy() for name, tensor in state.items()}
        self.c, self.pool = c, pool
        self.attends = attends  # [L, L]: rows attend to columns.

    def __call__(self, x):
        c = self.c
        z, present, encoder_attention = self._encode(x)
        shape = len(x), c.num_labels, c.channels
        u = np.broadcast_to(self.w["decoder.tgt_word_emb.weight"], shape)
        states, cross, among_labels = [], [], []
        for t in range(c.n_layers_dec):
            name = f"decoder.layer_stack.{t}"
            u, weights = self._attend(f"{name}.enc_attn", u, z, present, c.n_head)
            cross.append(weights)
            u = self._mlp(f"{name}.pos_ffn1", u)
            if not c.no_dec_self_att:
                states.append(u)
                u, weights = self._attend(f"{name}.slf_attn", u, u, self.attends, c.n_head2)
                among_labels.append(weights)
            u = self._mlp(f"{name}.pos_ffn2", u)
            states.append(u)
        readout = self.w["tgt_word_proj.linear.weight"]
        intermediate = [_diagonal(state @ readout.T) for state in states[:-1]]
        logits = _diagonal(u @ readout.T + self.w.get("tgt_word_proj.linear.bias", 0.0))
        return Output(logits, intermediate, encoder_attention, cross, among_labels)

    def _encode(self, x):
        if self.c.vectors:
            z = x @ self.w["encoder.linear1.weight"].T + self.w["encoder.linear1.bias"]
            return z[:, None], None, []
        present = (x > 0)[:, None, :]  # [B, 1, S]
        z = self.w["encoder.src_word_emb.weight"][x]
        if self.c.max_length is not None:
            position = np.where(x > 0, np.arange(1, x.shape[1] + 1), 0)
            z = z + self.w["encoder.position_enc.weight"][position]
        attention = []
        for i in range(self.c.n_layers_enc):
            name = f"encoder.layer_stack.{i}"
            _, weights = self._attend(f"{name}.slf_attn", z, z, present, self.c.n_head)
            attention.append(weights)
            z = self._mlp(f"{name}.pos_ffn", z)  # The output of attention is discarded.
        if self.pool == "":
            return z, present, attention
        total = z.sum(axis=1, keepdims=True)
        count = present.sum(axis=2, keepdims=True) if self.pool == "mean" else 1.0
        return total / count, None, attention

    def _attend(self, name, target, source, mask, heads):
        query, key, value = (
            np.stack([x @ head.T for head in np.split(self.w[f"{name}.{kind}.weight"], heads)])
            for kind, x in (("w_qs", target), ("w_ks", source), ("w_vs", source))
        )
        score = query @ key.swapaxes(-1, -2) / np.sqrt(self.c.d_k)  # [heads, B, L, S]
        if mask is not None:
            score = np.where(mask, score, -np.inf)
        weights = np.exp(score - score.max(axis=-1, keepdims=True))
        weights = weights / weights.sum(axis=-1, keepdims=True)
        out = np.concatenate(list(weights @ value), axis=-1)
        if heads > 1:
            out = out @ self.w[f"{name}.fc.weight"].T
        return self._norm(name, out + target), weights.reshape(-1, *weights.shape[2:])

    def _mlp(self, name, x):
        (w_1, b_1), (w_2, b_2) = (
            (self.w[f"{name}.{layer}.weight"][..., 0], self.w[f"{name}.{layer}.bias"])
            for layer in ("w_1", "w_2")
        )
        return self._norm(name, x + np.maximum(x @ w_1.T + b_1, 0.0) @ w_2.T + b_2)

    def _norm(self, name, x):
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5)
        return x * self.w[f"{name}.layer_norm.weight"] + self.w[f"{name}.layer_norm.bias"]


def _diagonal(logits):
    return np.diagonal(logits, axis1=1, axis2=2)
