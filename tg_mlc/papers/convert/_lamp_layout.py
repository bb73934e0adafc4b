"""Layout of a released LaMP model: its sizes, read off its state dict, and where each of its tensors goes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

State = Mapping[str, Tensor]

#: Parts of the released code that have no counterpart here, by the names that give them away.
UNSUPPORTED = {
    "encoder.brnn.": "the recurrent encoder ('-encoder rnn')",
    "encoder.conv.": "the convolution over one-hot DNA ('-onehot')",
    "encoder.conv1.": "the convolutions over one-hot DNA ('-onehot')",
    "decoder.rnn_layer_stack.": "the recurrent decoder ('-decoder rnn_m')",
    "decoder.linear1.": "the decoder without label nodes ('-decoder mlp')",
}
#: Present in every checkpoint, or in some, and read by no forward pass.
IGNORED = frozenset({"tgt_word_proj.weight", "tgt_word_proj_copy.linear.weight", "tgt_word_proj_copy.linear.bias"})
EMBEDDING = "decoder.tgt_word_emb.weight"
TOKENS = "encoder.src_word_emb.weight"
POSITIONS = "encoder.position_enc.weight"
VECTORS = "encoder.linear1.weight"
READOUT = "tgt_word_proj.linear.weight"
CROSS = "decoder.layer_stack.0.enc_attn"
AMONG = "decoder.layer_stack.0.slf_attn"
MLP = "decoder.layer_stack.0.pos_ffn1.w_1.weight"


#: How names become ours, one rule after the other.
RULES = {
    r"^encoder\.layer_stack\.(\d+)": r"features.convs.\1",
    r"^decoder\.layer_stack\.(\d+)\.(?=enc_attn|pos_ffn1)": r"labels.feature_to_label.\1.",
    r"^decoder\.layer_stack\.(\d+)\.(?=slf_attn|pos_ffn2)": r"labels.label_to_label.\1.",
    r"\.\w+_attn\.(fc|w_qs|w_ks|w_vs|layer_norm)\.": r".\1.",
    r"\.pos_ffn\d?\.layer_norm\.": ".mlp_norm.",
    r"\.pos_ffn\d?\.w_1\.": ".mlp.0.",
    r"\.pos_ffn\d?\.w_2\.": ".mlp.2.",
    r"\.layer_norm\.": ".attention_norm.",
    r"\.w_qs\.": ".lin_query.",
    r"\.w_ks\.": ".lin_key.",
    r"\.w_vs\.": ".lin_value.",
    r"\.fc\.": ".lin_out.",
    r"^decoder\.tgt_word_emb\.": "labels.embedding.",
    r"^tgt_word_proj\.linear\.weight$": "readout.own_weight",
    r"^tgt_word_proj\.linear\.bias$": "readout.bias",
    r"^encoder\.linear1\.": "encoder.lin.",
    r"^encoder\.src_word_emb\.": "encoder.embedding.",
    r"^encoder\.position_enc\.weight$": "encoder.positions",
}


@dataclass(frozen=True)
class Layout:
    """The sizes of a released LaMP model."""

    num_labels: int
    channels: int
    num_steps: int
    num_feature_layers: int
    heads: int
    label_heads: int
    head_channels: int
    value_channels: int
    mlp_channels: int
    num_inputs: int  #: words of the vocabulary, or size of the input vector
    num_positions: int | None  #: rows of the table of positions, if there is one
    takes_vectors: bool
    has_label_attention: bool
    num_readout_rows: int  #: :obj:`1` if all labels share one readout
    has_readout_bias: bool


def renamed(state: State) -> dict[str, Tensor]:
    """The tensors that a forward pass reads, by our names."""
    return {_our_name(name): tensor for name, tensor in state.items() if name not in IGNORED}


def _our_name(name: str) -> str:
    for theirs, ours in RULES.items():
        name = re.sub(theirs, ours, name)
    return name


def infer_layout(state: State, heads: int | None, label_heads: int | None) -> Layout:
    """Reads all sizes off the shapes, except the number of heads, on which no shape depends if there are several."""
    _check_supported(state)
    takes_vectors = VECTORS in state
    needed = [EMBEDDING, READOUT, MLP, f"{CROSS}.w_qs.weight", f"{CROSS}.w_vs.weight"]
    _check_present(state, [*needed, VECTORS if takes_vectors else TOKENS])
    queries, values = state[f"{CROSS}.w_qs.weight"].size(0), state[f"{CROSS}.w_vs.weight"].size(0)
    heads = _resolve_heads(state, heads, queries, values)
    has_label_attention = any(name.startswith(f"{AMONG}.") for name in state)
    layout = Layout(
        num_labels=state[EMBEDDING].size(0),
        channels=state[EMBEDDING].size(1),
        num_steps=_count(state, "decoder.layer_stack"),
        num_feature_layers=0 if takes_vectors else _count(state, "encoder.layer_stack"),
        heads=heads,
        label_heads=_resolve_label_heads(state, label_heads, queries // heads) if has_label_attention else heads,
        head_channels=queries // heads,
        value_channels=values // heads,
        mlp_channels=state[MLP].size(0),
        num_inputs=state[VECTORS].size(1) if takes_vectors else state[TOKENS].size(0),
        num_positions=state[POSITIONS].size(0) if POSITIONS in state else None,
        takes_vectors=takes_vectors,
        has_label_attention=has_label_attention,
        num_readout_rows=state[READOUT].size(0),
        has_readout_bias="tgt_word_proj.linear.bias" in state,
    )
    _check_sizes(layout)
    return layout


def _resolve_heads(state: State, heads: int | None, queries: int, values: int) -> int:
    if f"{CROSS}.fc.weight" not in state:
        heads = 1 if heads is None else heads
        if heads != 1:
            raise ValueError(f"Expected heads=1, as '{CROSS}.fc.weight' is missing (got heads={heads})")
        return heads
    heads = 4 if heads is None else heads
    if heads < 2 or queries % heads != 0 or values % heads != 0:
        raise ValueError(
            f"Expected 'heads' to be at least 2, as there is a '{CROSS}.fc.weight', and to divide the rows of "
            f"'{CROSS}.w_qs.weight' and '{CROSS}.w_vs.weight', {queries} and {values} (got heads={heads}); "
            f"pass the '-n_head' of the training run"
        )
    return heads


def _resolve_label_heads(state: State, label_heads: int | None, head_channels: int) -> int:
    _check_present(state, [f"{AMONG}.w_qs.weight"])
    queries = state[f"{AMONG}.w_qs.weight"].size(0)
    found, rest = divmod(queries, head_channels)
    if rest != 0 or label_heads not in (None, found):
        raise ValueError(
            f"Expected 'heads' and 'heads2' to split the rows of '{CROSS}.w_qs.weight' and '{AMONG}.w_qs.weight' "
            f"into heads of one size (got {head_channels} for the first, {queries} rows and heads2={label_heads} for "
            f"the second)"
        )
    return found


def _count(state: State, stack: str) -> int:
    indices = [int(m.group(1)) for name in state if (m := re.match(rf"{re.escape(stack)}\.(\d+)\.", name))]
    return max(indices, default=-1) + 1


def _check_supported(state: State) -> None:
    for prefix, what in UNSUPPORTED.items():
        if names := sorted(name for name in state if name.startswith(prefix)):
            raise ValueError(f"Expected a model of the graph decoder, not {what}: it is not supported ({_join(names)})")


def _check_present(state: State, names: list[str]) -> None:
    if missing := [name for name in names if name not in state]:
        raise ValueError(f"Expected the state dict of a released LaMP model, but it lacks {_join(missing)}")


def _check_sizes(layout: Layout) -> None:
    if 1 in (layout.heads, layout.label_heads) and layout.value_channels != layout.channels:
        raise ValueError(
            f"Expected the values of a single head, which are not projected, to be as wide as a state, "
            f"{layout.channels} (got {layout.value_channels})"
        )
    if layout.num_readout_rows not in (1, layout.num_labels):
        raise ValueError(f"Expected '{READOUT}' to have 1 or {layout.num_labels} rows (got {layout.num_readout_rows})")


def _join(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
