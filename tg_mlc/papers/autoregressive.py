"""Factories of models that predict one label after another."""

from __future__ import annotations

from typing import Any, Literal

from torch import nn
from torch_geometric.data import Data

from tg_mlc.data import MultiLabelDataset
from tg_mlc.inputs.encoders import check_encoder, pop_input_encoder
from tg_mlc.models import builder
from tg_mlc.nn.encoders import MessageEncoder, RecurrentEncoder
from tg_mlc.papers.decoders import AttentionDecoder, LabelOrder, RecurrentDecoder, label_ranks
from tg_mlc.papers.label_sequences import LabelSequenceModel


@builder
def mped_autoregressive(
    train: MultiLabelDataset,
    label_graph: Data | None = None,
    encoder: Literal["fmp", "emb"] = "fmp",
    *,
    channels: int = 64,
    encoder_steps: int = 3,
    decoder_steps: int = 3,
    heads: int = 4,
    mlp_channels: int | None = None,
    dropout: float = 0.2,
    label_order: LabelOrder = "frequency",
    **kwargs: Any,
) -> LabelSequenceModel:
    r"""Builds the autoregressive form of :func:`~tg_mlc.papers.mped`, in which each label attends to the components
    and to the labels before it (see :class:`~tg_mlc.papers.decoders.AttentionDecoder`).

    Args:
        train (MultiLabelDataset): The training samples, which say what kind they are, and give the order of labels and
            their largest number.
        label_graph (LabelGraph, optional): Any, as other factories of the family take one: labels attend to those
            before them. (default: :obj:`None`)
        encoder (str, optional): :obj:`"fmp"` for feature message passing among the components, :obj:`"emb"` for none.
            (default: :obj:`"fmp"`)
        channels (int, optional): Size :math:`d` of all states; the papers take 512. (default: :obj:`64`)
        encoder_steps (int, optional): Number of blocks among components. (default: :obj:`3`)
        decoder_steps (int, optional): Number of steps of the decoder. (default: :obj:`3`)
        heads (int, optional): Number of attention heads. (default: :obj:`4`)
        mlp_channels (int, optional): Hidden size of MLPs, :math:`2 d` if :obj:`None`. (default: :obj:`None`)
        dropout (float, optional): Dropout of all blocks. (default: :obj:`0.2`)
        label_order (str, optional): Order of labels in training (see :func:`~tg_mlc.papers.decoders.label_ranks`).
            (default: :obj:`"frequency"`)
        **kwargs (optional): Additional arguments of :func:`~tg_mlc.inputs.input_encoder`.

    Raises:
        TypeError: If an option is unknown.
        ValueError: If :obj:`encoder` or :obj:`label_order` is unknown, or there is no encoder for samples of this kind.
    """
    check_encoder(encoder)
    inputs = pop_input_encoder(train, channels, kwargs)
    mlp_channels = 2 * channels if mlp_channels is None else mlp_channels
    if encoder == "fmp":
        inputs = MessageEncoder(inputs, encoder_steps, heads=heads, mlp_channels=mlp_channels, dropout=dropout)
    decoder = AttentionDecoder(
        channels, train.y.size(1), decoder_steps, heads=heads, mlp_channels=mlp_channels, dropout=dropout, **kwargs
    )
    return _sequence_model(train, inputs, decoder, label_order)


@builder
def graph2graph_autoregressive(
    train: MultiLabelDataset,
    label_graph: Data | None = None,
    encoder: Literal["fmp", "emb"] = "fmp",
    *,
    channels: int = 64,
    **kwargs: Any,
) -> LabelSequenceModel:
    r"""Builds the autoregressive form of :func:`~tg_mlc.papers.graph2graph`:
    :func:`~tg_mlc.papers.mped_autoregressive` with MLPs of hidden size :math:`d`.

    Args:
        train, label_graph, encoder, channels, **kwargs: As there.
    """
    options = {"mlp_channels": channels, **kwargs}
    return mped_autoregressive(train, label_graph, encoder, channels=channels, **options)


@builder
def seq2seq(
    train: MultiLabelDataset,
    label_graph: Data | None = None,
    encoder: Literal["fmp", "emb"] = "fmp",
    *,
    channels: int = 64,
    num_layers: int = 3,
    dropout: float = 0.2,
    label_order: LabelOrder = "frequency",
    **kwargs: Any,
) -> LabelSequenceModel:
    r"""Builds the recurrent classifier chain of the `"Maximizing Subset Accuracy with Recurrent Neural Networks in
    Multi-label Classification"
    <https://papers.nips.cc/paper/2017/hash/2eb5657d37f474e4c4cf01e4882b8962-Abstract.html>`_ paper: a bidirectional GRU
    over the components, and a GRU with attention over the labels (see
    :class:`~tg_mlc.papers.decoders.RecurrentDecoder`).

    Args:
        train, label_graph, label_order, **kwargs: As in :func:`~tg_mlc.papers.mped_autoregressive`.
        encoder (str, optional): :obj:`"fmp"` for a GRU over the components, in place of feature message passing,
            :obj:`"emb"` for none. (default: :obj:`"fmp"`)
        channels (int, optional): Size :math:`d` of all states, an even number; the Graph2Graph paper takes 512.
            (default: :obj:`64`)
        num_layers (int, optional): Number of layers of encoder and decoder, 1 to 3; the Graph2Graph paper takes 3.
            (default: :obj:`3`)
        dropout (float, optional): Dropout between layers and before the readout. (default: :obj:`0.2`)

    Raises:
        TypeError: If an option is unknown.
        ValueError: If :obj:`encoder` or :obj:`label_order` is unknown, :obj:`num_layers` is not among 1 to 3, or there
            is no encoder for samples of this kind.
    """
    check_encoder(encoder)
    if num_layers not in (1, 2, 3):
        raise ValueError(f"Expected 'num_layers' among 1, 2 and 3 (got {num_layers!r})")
    inputs = pop_input_encoder(train, channels, kwargs)
    if encoder == "fmp":
        inputs = RecurrentEncoder(inputs, num_layers, dropout=dropout)
    decoder = RecurrentDecoder(channels, train.y.size(1), num_layers, dropout=dropout, **kwargs)
    return _sequence_model(train, inputs, decoder, label_order)


def _sequence_model(
    train: MultiLabelDataset, encoder: nn.Module, decoder: nn.Module, label_order: LabelOrder
) -> LabelSequenceModel:
    longest = max(int(train.y.nansum(dim=1).max()), 1)
    return LabelSequenceModel(encoder, decoder, label_ranks(train.y, label_order), longest)
