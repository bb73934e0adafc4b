"""Model and checkpoints of the authors' released LaMP code, https://github.com/QData/LaMP."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn.resolver import aggregation_resolver
from typing_extensions import Unpack

from tg_mlc._names import few
from tg_mlc._options import check_choice
from tg_mlc.graphs import LabelGraph, edgeless, fully_connected
from tg_mlc.models import LaMP
from tg_mlc.models.lamp import Encoder
from tg_mlc.nn import AttentionConv, BlockOptions, LabelHead, LabelToLabelConv
from tg_mlc.nn.encoders import BagEncoder, SequenceEncoder, VectorEncoder
from tg_mlc.nn.feature import FeatureAttention

__all__ = ["ReleasedLaMP", "load_lamp_checkpoint"]

LabelMask = Literal["none", "inveye", "eye", "prior"]
EncTransform = Literal["", "mean", "sum"]
State = Mapping[str, Tensor]

#: Parts of the released code that have no counterpart here, by the names of their tensors.
UNSUPPORTED = {
    "encoder.brnn.": "the recurrent encoder ('-encoder rnn')",
    "encoder.conv.": "the convolution over one-hot DNA ('-onehot')",
    "encoder.conv1.": "the convolutions over one-hot DNA ('-onehot')",
    "decoder.rnn_layer_stack.": "the recurrent decoder ('-decoder rnn_m')",
    "decoder.linear1.": "the decoder without label nodes ('-decoder mlp')",
}
#: Tensors of some or all checkpoints that no forward pass reads.
IGNORED = frozenset(
    {"tgt_word_proj.weight", "tgt_word_proj_copy.linear.weight", "tgt_word_proj_copy.linear.bias"}
)
EMBEDDING = "decoder.tgt_word_emb.weight"
TOKENS = "encoder.src_word_emb.weight"
POSITIONS = "encoder.position_enc.weight"
VECTORS = "encoder.linear1.weight"
READOUT = "tgt_word_proj.linear.weight"
CROSS = "decoder.layer_stack.0.enc_attn"  #: attention of labels to components
AMONG = "decoder.layer_stack.0.slf_attn"  #: attention among labels
MLP = "decoder.layer_stack.0.pos_ffn1.w_1.weight"
#: Rules that turn names of the released code into ours, in this order.
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


class _DiscardingConv(AttentionConv):
    """Block that discards its attention, and computes it only on request.

    Its MLP takes the block's input.
    """

    discards = True  #: If False, this is an ordinary block.

    def forward(
        self, x: Any, *args: Any, return_attention_weights: bool | None = None, **kwargs: Any
    ) -> Any:
        if self.discards and not return_attention_weights:
            return self.feed_forward(x)
        out = super().forward(x, *args, return_attention_weights=return_attention_weights, **kwargs)
        return (self.feed_forward(x), out[1]) if self.discards else out


class _LabelMLP(LabelToLabelConv):
    """Block among labels without attention. Labels do not exchange messages."""

    def __init__(self, channels: int, **block: Unpack[BlockOptions]) -> None:
        super().__init__(channels, **block)
        del self.lin_query, self.lin_key, self.lin_value, self.lin_out, self.attention_norm

    def forward(
        self, x: Any, *args: Any, return_attention_weights: bool | None = None, **kwargs: Any
    ) -> Any:
        return (self.feed_forward(x), None) if return_attention_weights else self.feed_forward(x)


class ReleasedLaMP(LaMP):
    r"""The model of the authors' `released code <https://github.com/QData/LaMP>`_ for the `"Neural
    Message Passing for Multi-Label Classification" <https://arxiv.org/abs/1904.08049>`_ paper.

    Its feature message passing discards the attention. Its intermediate readouts send no gradient
    to the readout's weight and have no bias.

    Args:
        encoder, label_graph, num_steps, num_feature_layers, label_kwargs: As in
            :class:`~tg_mlc.models.LaMP`.
        label_attention (bool, optional): If set to :obj:`False`, the blocks among labels consist of
            their MLP only, and a step returns one state, as with :obj:`-no_dec_self_att`.
            (default: :obj:`True`)
        readout_bias (bool, optional): If set to :obj:`True`, the readout has a bias.
            (default: :obj:`True`)
        pool (str or Aggregation, optional): Pools the components of a sample into one, *e.g.* by
            :obj:`"mean"`, before labels attend to it. (default: :obj:`None`)
        **block (optional): Options of all blocks, as in :class:`~tg_mlc.models.LaMP`.

    Shapes:
        - **input:** a batch of :math:`B` samples
        - **output:** logits :math:`(B, L)`
    """

    def __init__(
        self,
        encoder: nn.Module,
        label_graph: Data,
        *,
        num_steps: int = 2,
        num_feature_layers: int = 2,
        label_attention: bool = True,
        readout_bias: bool = True,
        pool: str | nn.Module | None = None,
        label_kwargs: BlockOptions | None = None,
        **block: Unpack[BlockOptions],
    ) -> None:
        block = {"dropout": 0.1, **block}
        steps: Any = {"num_steps": num_steps, "num_feature_layers": num_feature_layers}
        super().__init__(encoder, label_graph, **steps, label_kwargs=label_kwargs, **block)
        channels, edge_dim = self.labels.channels, cast(Encoder, encoder).edge_dim
        if self.features is not None:
            layers = range(num_feature_layers)
            self.features.convs = nn.ModuleList(
                _DiscardingConv(channels, edge_dim=edge_dim, **block) for _ in layers
            )
        if not label_attention:
            among_labels: BlockOptions = {**block, **(label_kwargs or {})}
            blocks = (_LabelMLP(channels, **among_labels) for _ in range(num_steps))
            self.labels.label_to_label = nn.ModuleList(blocks)
        self.label_attention = label_attention
        self.readout = LabelHead(self.labels, bias=readout_bias)
        self.pool = None if pool is None else aggregation_resolver(pool)

    def _read(self, intermediate: list[Tensor]) -> list[Tensor]:
        states = intermediate if self.label_attention else intermediate[1::2]
        return [(u * self.readout.weight.detach()).sum(dim=-1) for u in states]

    def _encode(
        self, data: Data, return_attention_weights: bool
    ) -> tuple[Tensor, Tensor, Tensor | None, Sequence[FeatureAttention]]:
        x, ptr, to_label, attention = super()._encode(data, return_attention_weights)
        if self.pool is not None:
            x, to_label = self.pool(x, ptr=ptr), None
            ptr = torch.arange(ptr.numel(), device=ptr.device)
        return x, ptr, to_label, attention


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
    r"""Loads a model that was trained with the authors' `released code
    <https://github.com/QData/LaMP>`_ of the `"Neural Message Passing for Multi-Label
    Classification" <https://arxiv.org/abs/1904.08049>`_ paper.

    The model is a :class:`ReleasedLaMP` in evaluation mode: its logits, intermediate readouts and
    attention weights are those of the released code, including its mistakes (it discards attention
    of the encoder, and does not tie the readout to the label embedding). Inputs are ragged batches
    without the padding symbol 0; begin and end symbols of that code are ordinary tokens.

    Options that shapes of tensors do not determine come from the arguments, then from settings that
    the training script saved, then from the defaults.

    Args:
        state_dict (dict or path-like): The state dict, the dict that the training script saves, or
            the path of such a file. Only tensors and plain settings are unpickled.
        label_mask (str, optional): The label graph: :obj:`"none"` (fully connected),
            :obj:`"inveye"` (each label attends to itself only), :obj:`"eye"` (to all but itself) or
            :obj:`"prior"` (along :obj:`label_adj`).
            (default: :obj:`"prior"` with :obj:`label_adj`, else :obj:`"none"`)
        label_adj (torch.Tensor, optional): The prior graph; label :math:`i` attends to the labels
            :math:`j` with :math:`A_{ij} \neq 0`. As in the released code, a row that sums to less
            than 1 gets a self-loop. (default: :obj:`None`)
        heads (int, optional): The number of attention heads, :obj:`-n_head`.
            (default: :obj:`1` if the heads are not projected, else :obj:`4` as in the paper)
        heads2 (int, optional): The number of heads among labels, :obj:`-n_head2`, as a check:
            :obj:`heads` and the shapes determine this number. (default: :obj:`None`)
        label_names (list of str, optional): The names of the labels. (default: :obj:`None`)
        enc_transform (str, optional): Pooling of the components of a sample into one:
            :obj:`"mean"`, :obj:`"sum"` or :obj:`""` for none. (default: :obj:`""`)
        dropout (float, optional): Dropout in further training. (default: :obj:`0.1`)
        backend (str, optional): The backend of the attention operator. (default: :obj:`"auto"`)

    Shapes:
        - **label_adj:** :math:`(L, L)`

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is damaged or holds other objects, the model has no graph decoder,
            a recurrent encoder or convolutions over DNA, or arguments contradict the checkpoint.
    """
    state, settings = _read(state_dict)
    enc_transform = settings.get("enc_transform", "") if enc_transform is None else enc_transform
    check_choice("enc_transform", enc_transform, get_args(EncTransform))
    _check_parts(state)
    heads = settings.get("n_head") if heads is None else heads
    heads, label_heads = _resolve_heads(state, heads, heads2)
    queries, values = state[f"{CROSS}.w_qs.weight"].size(0), state[f"{CROSS}.w_vs.weight"].size(0)
    num_labels, channels = state[EMBEDDING].shape
    if 1 in (heads, label_heads) and values // heads != channels:
        expected = f"values of a single head, which are not projected, of the size {channels}"
        raise ValueError(f"Expected {expected} of a state (got {values // heads})")
    if (num_rows := state[READOUT].size(0)) not in (1, num_labels):
        raise ValueError(f"Expected '{READOUT}' to have 1 or {num_labels} rows (got {num_rows})")
    label_graph = _label_graph(num_labels, label_mask, label_adj, label_names, settings)
    num_steps = _count_layers(state, "decoder.layer_stack")
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
    # Checkpoints lack output projections of single heads, and the label graph.
    tensors = {"labels._extra_state": model.state_dict()["labels._extra_state"]}
    for name in model.state_dict():
        num_heads = label_heads if "label_to_label" in name else heads
        if name.endswith(".lin_out.weight") and num_heads == 1:
            tensors[name] = torch.eye(channels)
    try:
        model.to(state[EMBEDDING].dtype).load_state_dict({**tensors, **_converted(state)})
    except RuntimeError as error:
        layers = f"{num_feature_layers} encoder and {num_steps} decoder layers"
        hint = "check 'heads' if sizes of an attention's projections differ"
        raise ValueError(
            f"Expected the tensors of a model with {layers} (got, by our names, {error}); {hint}"
        ) from error
    return model.eval()


def _check_parts(state: State) -> None:
    for prefix, part in UNSUPPORTED.items():
        if names := sorted(name for name in state if name.startswith(prefix)):
            raise ValueError(
                f"Expected a model of the graph decoder without {part} (got {few(names)})"
            )
    needed = [EMBEDDING, READOUT, MLP, f"{CROSS}.w_qs.weight", f"{CROSS}.w_vs.weight"]
    needed.append(VECTORS if VECTORS in state else TOKENS)
    if any(name.startswith(f"{AMONG}.") for name in state):
        needed.append(f"{AMONG}.w_qs.weight")
    if missing := [name for name in needed if name not in state]:
        raise ValueError(
            f"Expected the state dict of a released LaMP model (got none of {few(missing)})"
        )


def _resolve_heads(
    state: State, heads: int | None, label_heads: int | None
) -> tuple[int, int | None]:
    """Returns the numbers of heads of component attention and of label attention (or None)."""
    queries, values = state[f"{CROSS}.w_qs.weight"].size(0), state[f"{CROSS}.w_vs.weight"].size(0)
    projection = f"{CROSS}.fc.weight"
    if heads is None:
        heads = 4 if projection in state else 1
    if projection not in state and heads != 1:
        raise ValueError(f"Expected heads=1 without a '{projection}' (got heads={heads})")
    if projection in state and (heads < 2 or queries % heads or values % heads):
        raise ValueError(
            f"Expected 'heads' of at least 2 with a '{projection}', to divide the rows of "
            f"'{CROSS}.w_qs.weight' and '{CROSS}.w_vs.weight', {queries} and {values} (got "
            f"heads={heads}); pass the '-n_head' of the training run"
        )
    if f"{AMONG}.w_qs.weight" not in state:
        return heads, None
    num_rows = state[f"{AMONG}.w_qs.weight"].size(0)
    num_label_heads, remainder = divmod(num_rows, queries // heads)
    if remainder or label_heads not in (None, num_label_heads):
        raise ValueError(
            f"Expected 'heads' and 'heads2' to split the rows of '{CROSS}.w_qs.weight' and "
            f"'{AMONG}.w_qs.weight' into heads of one size (got {queries // heads} for the first, "
            f"{num_rows} rows and heads2={label_heads} for the second)"
        )
    return heads, num_label_heads


def _label_graph(
    num_labels: int,
    label_mask: LabelMask | None,
    label_adj: Tensor | None,
    label_names: Sequence[str] | None,
    settings: Mapping[str, Any],
) -> LabelGraph:
    if label_mask is None:
        # A positive '-adj_matrix_lambda' loads a prior graph for any mask.
        has_prior = label_adj is not None or settings.get("adj_matrix_lambda", 0) > 0
        label_mask = "prior" if has_prior else settings.get("label_mask", "none")
    check_choice("label_mask", label_mask, get_args(LabelMask))
    if (label_mask == "prior") != (label_adj is not None):
        shape = None if label_adj is None else list(label_adj.shape)
        raise ValueError(
            f"Expected 'label_adj' exactly with label_mask='prior' (got label_mask='{label_mask}' "
            f"and label_adj of shape {shape}); no checkpoint holds it"
        )
    if label_names is not None and len(label_names) != num_labels:
        raise ValueError(f"Expected {num_labels} 'label_names' (got {len(label_names)})")
    if label_adj is None:
        labels = num_labels if label_names is None else label_names
        if label_mask == "inveye":
            return edgeless(labels)
        return fully_connected(labels, self_loops=label_mask == "none")
    adjacency, shape = torch.as_tensor(label_adj).detach().cpu(), [num_labels, num_labels]
    if list(adjacency.shape) != shape:
        raise ValueError(f"Expected 'label_adj' of shape {shape} (got {list(adjacency.shape)})")
    target, source = ((adjacency != 0) | torch.diag(adjacency.sum(dim=1) < 1)).nonzero().t()
    options: Any = {"label_names": label_names, "kind": "prior", "source": "label_adj"}
    return LabelGraph(torch.stack([source, target]), num_nodes=num_labels, **options)


def _encoder(state: State, channels: int) -> tuple[nn.Module, int]:
    """Returns the encoder of inputs, and the number of feature layers after the encoder."""
    if VECTORS in state:
        return VectorEncoder(state[VECTORS].size(1), channels), 0
    num_tokens, num_layers = state[TOKENS].size(0), _count_layers(state, "encoder.layer_stack")
    if POSITIONS not in state:
        return BagEncoder(num_tokens, channels), num_layers
    # Row 0 of the table belongs to the padding symbol; positions count from 1.
    return SequenceEncoder(num_tokens, channels, positions=state[POSITIONS][1:].clone()), num_layers


def _count_layers(state: State, stack: str) -> int:
    pattern = re.compile(rf"{re.escape(stack)}\.(\d+)\.")
    return len({match[1] for match in map(pattern.match, state) if match})


def _converted(state: State) -> dict[str, Tensor]:
    """Returns the tensors of the forward pass by their names in this package."""
    converted = {}
    for name, tensor in state.items():
        if name not in IGNORED:
            new_name = name
            for pattern, replacement in RULES.items():
                new_name = re.sub(pattern, replacement, new_name)
            # The released MLPs are convolutions of width 1.
            converted[new_name] = tensor.squeeze(-1) if tensor.dim() == 3 else tensor
    if POSITIONS in state:
        converted["encoder.positions"] = state[POSITIONS][1:]
    num_labels = state[EMBEDDING].size(0)
    for name in ("readout.own_weight", "readout.bias"):
        if name in converted:  # Labels may share one readout, which is repeated.
            converted[name] = converted[name].expand(num_labels, *converted[name].shape[1:])
    return converted


def _read(
    source: Mapping[str, Any] | str | os.PathLike[str],
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Returns tensors by name, without DataParallel's prefix, and the saved settings."""
    content = source if isinstance(source, Mapping) else _load(source)
    settings: dict[str, Any] = {}
    if "model" in content:
        saved = content.get("settings", {})
        settings = dict(saved if isinstance(saved, Mapping) else vars(saved))
        content = content["model"]
    state = {}
    for name, value in content.items():
        tensor = torch.from_numpy(value) if isinstance(value, np.ndarray) else value
        state[str(name).removeprefix("module.")] = tensor
    if others := [name for name, tensor in state.items() if not isinstance(tensor, Tensor)]:
        expected = "'state_dict' to hold tensors, or to be a dict with a state dict under 'model'"
        raise ValueError(f"Expected {expected} (got other values for {few(others)})")
    return state, settings


def _load(path: Any) -> Mapping[str, Any]:
    expected = "'state_dict' to be a dict or the path of a checkpoint"
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"Expected {expected} (got {type(path).__name__})")
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"Expected {expected} (found no file '{path}')")
    try:
        # The settings are an argparse.Namespace, which only holds attributes.
        with torch.serialization.safe_globals([argparse.Namespace]):
            content = torch.load(path, map_location="cpu", weights_only=True)
    # Invalid bytes may raise any error; files of PyTorch before 1.6 are not archives.
    except Exception as error:
        got = f"{path.stat().st_size:,} bytes that are cut short, or of another format or object"
        raise ValueError(
            f"Expected '{path}' to be a whole checkpoint of tensors and plain settings (got {got}: "
            f"{type(error).__name__}); copy it again, or take another checkpoint"
        ) from error
    if not isinstance(content, Mapping):
        raise ValueError(f"Expected '{path}' to hold a dict (got {type(content).__name__})")
    return content
