"""Factory of label message passing over words or vectors, as we recommend it."""

from __future__ import annotations

from typing import Any

from torch_geometric.data import Data

from tg_mlc.data import MultiLabelDataset
from tg_mlc.inputs import kind_of
from tg_mlc.models._compose import compose
from tg_mlc.models.builders import builder
from tg_mlc.models.lamp import LaMP


@builder
def table_lamp(
    train: MultiLabelDataset,
    label_graph: Data,
    node_messages: bool = False,
    *,
    channels: int = 64,
    num_components: int = 8,
    input_dropout: float = 0.2,
    frequency_strength: float = 0.5,
    latent: bool = False,
    min_df: int = 1,
    **kwargs: Any,
) -> LaMP:
    r"""Builds a :class:`~tg_mlc.models.LaMP` for bags of words, sequences of words, vectors, and any other kind of
    input, with the encoder of that kind.

    Its components are the words, or :obj:`num_components` linear images of the vector. The bias of the
    readout starts between the mean frequency of all labels and that of every label. Of samples with an attribute
    :obj:`base_scores`, scores :math:`(L, C)` of other classifiers (see :class:`~tg_mlc.stacking.StackingFeatures`),
    labels take in their own and pass them on. With :obj:`score_skip`, the model starts from logits that are fitted
    to these scores (see :meth:`~tg_mlc.nn.base_scores.SharedLogits.start_from_scores`), to which messages, unless the
    readout is tied, contribute nothing at first.

    Args:
        train (MultiLabelDataset): The training samples, from whose labels the readout starts.
        label_graph (LabelGraph): The label graph.
        node_messages (bool, optional): If set to :obj:`False`, components do not send messages to each other, whatever
            :obj:`num_feature_layers` says. (default: :obj:`False`)
        channels (int, optional): Size of all states. (default: :obj:`64`)
        num_components (int, optional): Number of components that a vector becomes. (default: :obj:`8`)
        input_dropout (float, optional): Dropout on words, or on the entries of a vector. (default: :obj:`0.2`)
        frequency_strength (float, optional): How far the readout starts from the frequency of every label (see
            :meth:`~tg_mlc.nn.LabelHead.start_from_frequencies`). (default: :obj:`0.5`)
        latent (bool, optional): If set to :obj:`True`, embeddings of the words of bags start from a latent semantic
            analysis of the training documents (see :meth:`~tg_mlc.nn.encoders.BagEncoder.start_from_documents`), and
            labels at the centres of their training documents in it, less that of all documents, with keys as queries.
            (default: :obj:`False`)
        min_df (int, optional): Number of training documents from which a word of a bag is attended to; rarer ones are
            left out. (default: :obj:`1`)
        **kwargs (optional): Additional arguments of :class:`~tg_mlc.models.LaMP`.

    Raises:
        ValueError: If the samples are of no kind that has an encoder.
    """
    options = {"num_components": num_components, "input_dropout": input_dropout, "min_df": min_df}
    inputs = kind_of(train).encoder(train, channels, **options)  # type: ignore[arg-type]
    return compose(inputs, train, label_graph, node_messages, frequency_strength, latent=latent, **kwargs)
