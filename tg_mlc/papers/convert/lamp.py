"""Checkpoints of the authors' released LaMP code, https://github.com/QData/LaMP."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from tg_mlc._options import check_choice
from tg_mlc.graphs import LabelGraph, edgeless, fully_connected
from tg_mlc.nn.encoders import BagEncoder, SequenceEncoder, VectorEncoder
from tg_mlc.papers.convert._checkpoint import read_released
from tg_mlc.papers.convert._lamp_layout import EMBEDDING, POSITIONS, Layout, State, infer_layout, renamed
from tg_mlc.papers.convert.released import ReleasedLaMP

LabelMask = Literal["none", "inveye", "eye", "prior"]
EncTransform = Literal["", "mean", "sum"]


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

    What no shape tells is taken from the arguments, then from the settings if the training script saved them, then
    from the defaults.

    Args:
        state_dict (dict or path-like): The state dict, the dict that the training script saves, or the path of such a
            file, which is read without unpickling anything but tensors and plain settings.
        label_mask (str, optional): The label graph: :obj:`"none"` (fully connected), :obj:`"inveye"` (each label
            attends to itself only), :obj:`"eye"` (to all but itself) or :obj:`"prior"` (to those that
            :obj:`label_adj` gives). (default: :obj:`"prior"` with :obj:`label_adj`, else :obj:`"none"`)
        label_adj (torch.Tensor, optional): The prior graph; label :math:`i` attends to the labels :math:`j` with
            :math:`A_{ij} \neq 0`. As in the released code, a row that sums to less than 1 gets a self-loop.
            (default: :obj:`None`)
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
    state, settings = read_released(state_dict)
    heads = settings.get("n_head") if heads is None else heads
    enc_transform = settings.get("enc_transform", "") if enc_transform is None else enc_transform
    if enc_transform not in get_args(EncTransform):
        raise ValueError(f"Expected 'enc_transform' to be '', 'mean' or 'sum' (got '{enc_transform}')")
    layout = infer_layout(state, heads, heads2)
    if label_mask is None:
        label_mask = _default_mask(settings, label_adj)
    label_graph = _label_graph(layout.num_labels, label_mask, label_adj, label_names)
    model = _build(layout, _encoder(layout, state), label_graph, enc_transform, dropout, backend)
    try:
        model.to(state[EMBEDDING].dtype).load_state_dict({**_absent(model, layout), **_converted(state, layout)})
    except RuntimeError as error:
        expected = (
            f"the tensors of a model with {layout.num_feature_layers} encoder and {layout.num_steps} decoder layers"
        )
        hint = "check 'heads' if sizes of an attention's projections differ"
        raise ValueError(f"Expected {expected} (got, by our names, {error}); {hint}") from error
    return model.eval()


def _build(
    layout: Layout, encoder: nn.Module, label_graph: LabelGraph, enc_transform: str, dropout: float, backend: str
) -> ReleasedLaMP:
    return ReleasedLaMP(
        encoder,
        label_graph,
        num_steps=layout.num_steps,
        num_feature_layers=layout.num_feature_layers,
        label_attention=layout.has_label_attention,
        readout_bias=layout.has_readout_bias,
        pool=enc_transform or None,
        label_kwargs={"heads": layout.label_heads},
        heads=layout.heads,
        dropout=dropout,
        mlp_channels=layout.mlp_channels,
        head_channels=layout.head_channels,
        value_channels=layout.value_channels,
        backend=backend,
    )


def _encoder(layout: Layout, state: State) -> nn.Module:
    if layout.takes_vectors:
        return VectorEncoder(layout.num_inputs, layout.channels)
    if layout.num_positions is None:
        return BagEncoder(layout.num_inputs, layout.channels)
    # Row 0 of the table belongs to the padding symbol; positions count from 1.
    return SequenceEncoder(layout.num_inputs, layout.channels, positions=state[POSITIONS][1:].clone())


def _default_mask(settings: Mapping[str, Any], label_adj: Tensor | None) -> LabelMask:
    # A positive '-adj_matrix_lambda' loads a prior graph whatever the mask says.
    if label_adj is not None or settings.get("adj_matrix_lambda", 0) > 0:
        return "prior"
    mask: LabelMask = settings.get("label_mask", "none")
    return mask


def _label_graph(
    num_labels: int, label_mask: LabelMask, label_adj: Tensor | None, label_names: Sequence[str] | None
) -> LabelGraph:
    check_choice("label_mask", label_mask, get_args(LabelMask))
    if (label_mask == "prior") != (label_adj is not None):
        given = None if label_adj is None else list(label_adj.shape)
        raise ValueError(
            f"Expected 'label_adj' exactly beside label_mask='prior' (got label_mask='{label_mask}' and label_adj of "
            f"shape {given}); it is not part of a checkpoint"
        )
    if label_names is not None and len(label_names) != num_labels:
        raise ValueError(f"Expected 'label_names' to hold {num_labels} names (got {len(label_names)})")
    if label_adj is not None:
        return _prior_graph(num_labels, label_adj, label_names)
    labels = num_labels if label_names is None else label_names
    return edgeless(labels) if label_mask == "inveye" else fully_connected(labels, self_loops=label_mask == "none")


def _prior_graph(num_labels: int, label_adj: Tensor, label_names: Sequence[str] | None) -> LabelGraph:
    adj = torch.as_tensor(label_adj).detach().cpu()
    if adj.shape != (num_labels, num_labels):
        raise ValueError(f"Expected 'label_adj' of shape [{num_labels}, {num_labels}] (got {list(adj.shape)})")
    lonely = adj.sum(dim=1) < 1
    target, source = ((adj != 0) | torch.diag(lonely)).nonzero().t()
    edge_index = torch.stack([source, target])
    return LabelGraph(edge_index, num_nodes=num_labels, label_names=label_names, kind="prior", source="label_adj")


def _converted(state: State, layout: Layout) -> dict[str, Tensor]:
    converted = renamed(state)
    for name, tensor in converted.items():
        if tensor.dim() == 3:  # the MLPs are convolutions of width 1
            converted[name] = tensor.squeeze(-1)
    if layout.num_positions is not None:
        converted["encoder.positions"] = state[POSITIONS][1:]
    for name in ("readout.own_weight", "readout.bias"):
        if name in converted:  # one readout for all labels is repeated for each
            converted[name] = converted[name].expand(layout.num_labels, *converted[name].shape[1:])
    return converted


def _absent(model: ReleasedLaMP, layout: Layout) -> dict[str, Tensor]:
    """Entries that ours has and a released model lacks: the projections of single heads, and the label graph."""
    own: dict[str, Tensor] = model.state_dict()
    projections = [name for name in own if name.endswith(".lin_out.weight")]
    single = [name for name in projections if (layout.label_heads if "label_to_label" in name else layout.heads) == 1]
    return {**dict.fromkeys(single, torch.eye(layout.channels)), "labels._extra_state": own["labels._extra_state"]}
