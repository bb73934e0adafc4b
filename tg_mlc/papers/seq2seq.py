"""Recurrent network that predicts one label after another."""

from __future__ import annotations

from typing import Any

from torch_geometric.data import Data

from tg_mlc._options import check_flag
from tg_mlc.data import MultiLabelDataset
from tg_mlc.inputs.kinds import pop_input_encoder
from tg_mlc.models import builder
from tg_mlc.nn.encoders.components import RecurrentEncoder
from tg_mlc.papers.decoders import RecurrentDecoder
from tg_mlc.papers.label_sequences import LabelOrder, LabelSequenceModel


@builder
def seq2seq(
    train: MultiLabelDataset,
    label_graph: Data | None = None,
    node_messages: bool = True,
    *,
    channels: int = 64,
    num_layers: int = 3,
    dropout: float = 0.2,
    label_order: LabelOrder = "frequency",
    **kwargs: Any,
) -> LabelSequenceModel:
    r"""Builds the recurrent classifier chain of the `"Maximizing Subset Accuracy with Recurrent
    Neural Networks in Multi-label Classification"
    <https://papers.nips.cc/paper/2017/hash/2eb5657d37f474e4c4cf01e4882b8962-Abstract.html>`_ paper:
    a bidirectional GRU over the components, and a GRU with attention over the labels
    (see :class:`~tg_mlc.papers.decoders.RecurrentDecoder`).

    Args:
        train, label_graph, label_order, kwargs: As in :func:`~tg_mlc.papers.mped_autoregressive`.
        node_messages (bool, optional): If set to :obj:`False`, there is no GRU over the components,
            which takes the place of messages. (default: :obj:`True`)
        channels (int, optional): Size :math:`d` of all states, an even number; Graph2Graph takes
            512. (default: :obj:`64`)
        num_layers (int, optional): Number of layers of encoder and decoder, 1 to 3.
            (default: :obj:`3`)
        dropout (float, optional): Dropout between layers and before the readout.
            (default: :obj:`0.2`)

    Raises:
        TypeError: If an option is unknown.
        ValueError: If :obj:`label_order` is unknown, :obj:`num_layers` is not among 1 to 3, or no
            encoder takes samples of this kind.
    """
    check_flag("node_messages", node_messages)
    if num_layers not in (1, 2, 3):
        raise ValueError(f"Expected 'num_layers' among 1, 2 and 3 (got {num_layers!r})")
    inputs = pop_input_encoder(train, channels, kwargs)
    if node_messages:
        inputs = RecurrentEncoder(inputs, num_layers, dropout=dropout)
    decoder = RecurrentDecoder(channels, train.y.size(1), num_layers, dropout=dropout, **kwargs)
    return LabelSequenceModel.of_training_samples(train, inputs, decoder, label_order)
