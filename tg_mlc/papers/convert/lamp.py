"""Checkpoints of the authors' released LaMP code, https://github.com/QData/LaMP."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from tg_mlc._options import check_choice
from tg_mlc.graphs import LabelGraph, edgeless, fully_connected
from tg_mlc.nn.encoders import BagEncoder, SequenceEncoder, VectorEncoder
from tg_mlc.papers.convert.released import ReleasedLaMP

LabelMask = Literal["none", "inveye", "eye", "prior"]
EncTransform = Literal["", "mean", "sum"]
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
IGNORED = frozenset(
    {"tgt_word_proj.weight", "tgt_word_proj_copy.linear.weight", "tgt_word_proj_copy.linear.bias"}
)
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


def load_lamp_checkpoint(
    state_dict: Mapping[str, Any] | str | os.PathLike[str],
    label_mask: LabelMask | None = None,
    label_adj: Tensor | None = None,
    heads: int | None = None,
    heads2: int | None = None,
    label_names: Sequence[str] | None = None,
    *,
    enc_transform: EncTransform | None = None,
    dropout: float = 0.1,
    backend: str = "auto",
) -> ReleasedLaMP:
    r"""Loads a model that was trained with the authors' `released code <https://github.com/QData/LaMP>`_ of the
    `"Neural Message Passing for Multi-Label Classification" <https://arxiv.org/abs/1904.08049>`_ paper.

    The model is a :class:`ReleasedLaMP`: its logits, intermediate readouts and attention weights are those of the
    released code, slips included (the encoder's attention is thrown away, the readout is not tied to the label
    embedding). It is in evaluation mode. Inputs are ragged batches without padding: the symbol 0 of the released code's
    padded batches must be left out, while its begin and end symbols are tokens like all others.

    Options that no shape tells are taken from the arguments, then from the settings if the training script saved them,
    then from the defaults.

    Args:
        state_dict (dict or path-like): The state dict, the dict that the training script saves, or the path of such a
            file, which is read without unpickling anything but tensors and plain settings.
        label_mask (str, optional): The label graph: :obj:`"none"` (fully connected), :obj:`"inveye"` (each label
            attends to itself only), :obj:`"eye"` (to all but itself) or :obj:`"prior"` (to those that
            :obj:`label_adj` gives). (default: :obj:`"prior"` with :obj:`label_adj`, else :obj:`"none"`)
        label_adj (torch.Tensor, optional): The prior graph; label :math:`i` attends to the labels :math:`j` with
            :math:`A_{ij} \neq 0`. As there, a row that sums to less than 1 gets a self-loop. (default: :obj:`None`)
        heads (int, optional): The number of attention heads, :obj:`-n_head`. (default: :obj:`1` if the heads are not
            projected, else :obj:`4` as in the paper)
        heads2 (int, optional): The number of heads among labels, :obj:`-n_head2`, which follows from :obj:`heads` and
            the shapes; given, it is checked. (default: :obj:`None`)
        label_names (list of str, optional): The names of the labels. (default: :obj:`None`)
        enc_transform (str, optional): How the components of a sample are pooled into one, :obj:`"mean"`, :obj:`"sum"`
            or :obj:`""` for not at all. (default: :obj:`""`)
        dropout (float, optional): Dropout of the model, should it be trained further. (default: :obj:`0.1`)
        backend (str, optional): The backend of the attention operator. (default: :obj:`"auto"`)

    Shapes:
        - **label_adj:** :math:`(L, L)`

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is damaged, or holds more than tensors and plain settings, the model is none with the
            graph decoder or has a recurrent encoder or convolutions over DNA, or the arguments contradict it.
    """
    state, settings = _read(state_dict)
    enc_transform = settings.get("enc_transform", "") if enc_transform is None else enc_transform
    if enc_transform not in get_args(EncTransform):
        raise ValueError(
            f"Expected 'enc_transform' to be '', 'mean' or 'sum' (got '{enc_transform}')"
        )
    _check_parts(state)
    heads, label_heads = _resolve_heads(
        state, settings.get("n_head") if heads is None else heads, heads2
    )
    queries, values = state[f"{CROSS}.w_qs.weight"].size(0), state[f"{CROSS}.w_vs.weight"].size(0)
    num_labels, channels = state[EMBEDDING].shape
    if 1 in (heads, label_heads) and values // heads != channels:
        expected = f"the values of a single head, which are not projected, to be as wide as a state, {channels}"
        raise ValueError(f"Expected {expected} (got {values // heads})")
    if (rows := state[READOUT].size(0)) not in (1, num_labels):
        raise ValueError(f"Expected '{READOUT}' to have 1 or {num_labels} rows (got {rows})")
    label_graph = _label_graph(num_labels, label_mask, label_adj, label_names, settings)
    num_steps = _count(state, "decoder.layer_stack")
    encoder, num_feature_layers = _encoder(state, channels)
    model = ReleasedLaMP(
        encoder,
        label_graph,
        num_steps=num_steps,
        num_feature_layers=num_feature_layers,
        label_attention=label_heads is not None,
        readout_bias="tgt_word_proj.linear.bias" in state,
        pool=enc_transform or None,
        label_kwargs={"heads": label_heads or heads},
        heads=heads,
        dropout=dropout,
        mlp_channels=state[MLP].size(0),
        head_channels=queries // heads,
        value_channels=values // heads,
        backend=backend,
    )
    # Ours alone has projections of single heads, and the label graph.
    tensors = {"labels._extra_state": model.state_dict()["labels._extra_state"]}
    for name in model.state_dict():
        if (
            name.endswith(".lin_out.weight")
            and (label_heads if "label_to_label" in name else heads) == 1
        ):
            tensors[name] = torch.eye(channels)
    try:
        model.to(state[EMBEDDING].dtype).load_state_dict({**tensors, **_converted(state)})
    except RuntimeError as error:
        expected = f"the tensors of a model with {num_feature_layers} encoder and {num_steps} decoder layers"
        hint = "check 'heads' if sizes of an attention's projections differ"
        raise ValueError(f"Expected {expected} (got, by our names, {error}); {hint}") from error
    return model.eval()


def _check_parts(state: State) -> None:
    for prefix, what in UNSUPPORTED.items():
        if names := sorted(name for name in state if name.startswith(prefix)):
            raise ValueError(
                f"Expected a model of the graph decoder, not {what}: it is not supported ({_join(names)})"
            )
    needed = [EMBEDDING, READOUT, MLP, f"{CROSS}.w_qs.weight", f"{CROSS}.w_vs.weight"]
    needed.append(VECTORS if VECTORS in state else TOKENS)
    if any(name.startswith(f"{AMONG}.") for name in state):
        needed.append(f"{AMONG}.w_qs.weight")
    if missing := [name for name in needed if name not in state]:
        raise ValueError(
            f"Expected the state dict of a released LaMP model, but it lacks {_join(missing)}"
        )


def _resolve_heads(
    state: State, heads: int | None, label_heads: int | None
) -> tuple[int, int | None]:
    """The numbers of heads, on which no shape depends if there are several; :obj:`None` without attention of labels."""
    queries, values = state[f"{CROSS}.w_qs.weight"].size(0), state[f"{CROSS}.w_vs.weight"].size(0)
    if f"{CROSS}.fc.weight" not in state:
        heads = 1 if heads is None else heads
        if heads != 1:
            raise ValueError(
                f"Expected heads=1, because '{CROSS}.fc.weight' is missing (got heads={heads})"
            )
    else:
        heads = 4 if heads is None else heads
        if heads < 2 or queries % heads != 0 or values % heads != 0:
            raise ValueError(
                f"Expected 'heads' to be at least 2, because there is a '{CROSS}.fc.weight', and to divide the rows of "
                f"'{CROSS}.w_qs.weight' and '{CROSS}.w_vs.weight', {queries} and {values} (got heads={heads}); "
                f"pass the '-n_head' of the training run"
            )
    if f"{AMONG}.w_qs.weight" not in state:
        return heads, None
    rows = state[f"{AMONG}.w_qs.weight"].size(0)
    found, rest = divmod(rows, queries // heads)
    if rest != 0 or label_heads not in (None, found):
        of = f"the rows of '{CROSS}.w_qs.weight' and '{AMONG}.w_qs.weight' into heads of one size"
        got = (
            f"{queries // heads} for the first, {rows} rows and heads2={label_heads} for the second"
        )
        raise ValueError(f"Expected 'heads' and 'heads2' to split {of} (got {got})")
    return heads, found


def _label_graph(
    num_labels: int,
    label_mask: LabelMask | None,
    label_adj: Tensor | None,
    label_names: Sequence[str] | None,
    settings: Mapping[str, Any],
) -> LabelGraph:
    if label_mask is None:
        # A positive '-adj_matrix_lambda' loads a prior graph whatever the mask says.
        has_prior = label_adj is not None or settings.get("adj_matrix_lambda", 0) > 0
        label_mask = "prior" if has_prior else settings.get("label_mask", "none")
    check_choice("label_mask", label_mask, get_args(LabelMask))
    if (label_mask == "prior") != (label_adj is not None):
        given = None if label_adj is None else list(label_adj.shape)
        got = f"label_mask='{label_mask}' and label_adj of shape {given}"
        raise ValueError(
            f"Expected 'label_adj' exactly beside label_mask='prior' (got {got}); no checkpoint holds it"
        )
    if label_names is not None and len(label_names) != num_labels:
        raise ValueError(
            f"Expected 'label_names' to hold {num_labels} names (got {len(label_names)})"
        )
    if label_adj is None:
        labels = num_labels if label_names is None else label_names
        return (
            edgeless(labels)
            if label_mask == "inveye"
            else fully_connected(labels, self_loops=label_mask == "none")
        )
    adj = torch.as_tensor(label_adj).detach().cpu()
    if adj.shape != (num_labels, num_labels):
        raise ValueError(
            f"Expected 'label_adj' of shape [{num_labels}, {num_labels}] (got {list(adj.shape)})"
        )
    target, source = ((adj != 0) | torch.diag(adj.sum(dim=1) < 1)).nonzero().t()
    edge_index = torch.stack([source, target])
    return LabelGraph(
        edge_index, num_nodes=num_labels, label_names=label_names, kind="prior", source="label_adj"
    )


def _encoder(state: State, channels: int) -> tuple[nn.Module, int]:
    """The encoder of inputs, and the number of layers after it."""
    if VECTORS in state:
        return VectorEncoder(state[VECTORS].size(1), channels), 0
    num_tokens, num_layers = state[TOKENS].size(0), _count(state, "encoder.layer_stack")
    if POSITIONS not in state:
        return BagEncoder(num_tokens, channels), num_layers
    # Row 0 of the table belongs to the padding symbol; positions count from 1.
    return SequenceEncoder(num_tokens, channels, positions=state[POSITIONS][1:].clone()), num_layers


def _count(state: State, stack: str) -> int:
    return len(
        {match[1] for name in state if (match := re.match(rf"{re.escape(stack)}\.(\d+)\.", name))}
    )


def _converted(state: State) -> dict[str, Tensor]:
    """The tensors that a forward pass reads, by our names."""
    converted = {}
    for name, tensor in state.items():
        if name not in IGNORED:
            ours = name
            for pattern, replacement in RULES.items():
                ours = re.sub(pattern, replacement, ours)
            # MLPs are convolutions of width 1
            converted[ours] = tensor.squeeze(-1) if tensor.dim() == 3 else tensor
    if POSITIONS in state:
        converted["encoder.positions"] = state[POSITIONS][1:]
    for name in ("readout.own_weight", "readout.bias"):
        if name in converted:  # one readout for all labels is repeated for each
            converted[name] = converted[name].expand(
                state[EMBEDDING].size(0), *converted[name].shape[1:]
            )
    return converted


def _read(
    source: Mapping[str, Any] | str | os.PathLike[str],
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors by the names of the bare model, and the settings of the run as far as they are known."""
    content = source if isinstance(source, Mapping) else _load(source)
    settings: dict[str, Any] = {}
    if "model" in content:
        found = content.get("settings", {})
        settings = dict(found if isinstance(found, Mapping) else vars(found))
        content = content["model"]
    state = {
        str(name).removeprefix("module."): torch.from_numpy(value)
        if isinstance(value, np.ndarray)
        else value
        for name, value in content.items()
    }
    if strange := [name for name, tensor in state.items() if not isinstance(tensor, Tensor)]:
        expected = "'state_dict' to hold tensors, or to be a dict with a state dict under 'model'"
        raise ValueError(f"Expected {expected} (got {', '.join(strange[:5])}, which are none)")
    return state, settings


def _load(path: Any) -> Mapping[str, Any]:
    if not isinstance(path, str | os.PathLike):
        raise ValueError(
            f"Expected 'state_dict' to be a dict or the path of a checkpoint (got {type(path).__name__})"
        )
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"Expected 'state_dict' to be the path of a checkpoint (found no file '{path}')"
        )
    try:
        # The settings are an argparse.Namespace, a plain holder of attributes; nothing else is let in beside tensors.
        with torch.serialization.safe_globals([argparse.Namespace]):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except (
        Exception
    ) as error:  # whatever comes of reading bytes as a pickle; PyTorch before 1.6 wrote no archive
        expected = f"'{path}' to be a whole checkpoint of tensors and plain settings"
        got = f"{path.stat().st_size:,} bytes that are cut short, hold other objects, or are something else"
        hint = "copy it again, or take another checkpoint"
        raise ValueError(
            f"Expected {expected} (got {got}: {type(error).__name__}); {hint}"
        ) from error
    if not isinstance(content, Mapping):
        raise ValueError(f"Expected '{path}' to hold a dict (got {type(content).__name__})")
    return content


def _join(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
