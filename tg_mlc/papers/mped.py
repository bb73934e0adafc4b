"""Message passing encoder-decoders as presets of LaMP's blocks."""

from __future__ import annotations

from typing import Any

from tg_mlc.data import MultiLabelDataset
from tg_mlc.graphs import LabelGraph
from tg_mlc.inputs.kinds import pop_input_encoder
from tg_mlc.models import LaMP, builder
from tg_mlc.models.factories import compose


@builder
def mped(
    train: MultiLabelDataset,
    label_graph: LabelGraph,
    node_messages: bool = True,
    *,
    channels: int = 64,
    encoder_steps: int = 3,
    decoder_steps: int = 3,
    frequency_strength: float = 0.5,
    latent: bool = False,
    **kwargs: Any,
) -> LaMP:
    r"""Builds the message passing encoder-decoder network (MPED) from the `"Neural Message Passing
    for Multi-Label Classification" <https://openreview.net/forum?id=r1xYr3C5t7>`_ paper, a
    predecessor of the LaMP paper with the same title.

    MPED differs from LaMP as published in its number of steps, in MLPs of hidden size :math:`2 d`,
    and in two label graphs: labels of the complete graph do not attend to themselves, and the
    edgeless graph has no blocks among labels. Unlike in the paper, components without a known graph
    also attend to themselves, as in LaMP.

    Args:
        train, label_graph, node_messages: As in :func:`~tg_mlc.models.table_lamp`.
        channels (int, optional): Size :math:`d` of states; the paper takes 512, and 64 on SIDER.
            (default: :obj:`64`)
        encoder_steps (int, optional): Number of blocks among components; 1 on SIDER in the paper.
            (default: :obj:`3`)
        decoder_steps (int, optional): Number of label message passing steps; 1 on SIDER.
            (default: :obj:`3`)
        frequency_strength (float, optional): As in :func:`~tg_mlc.models.table_lamp`.
            (default: :obj:`0.5`)
        latent (bool, optional): If set to :obj:`True`, embeddings of words in bags and of labels
            are initialised as in :func:`~tg_mlc.models.table_lamp`. (default: :obj:`False`)
        **kwargs (optional): Additional arguments of :func:`~tg_mlc.inputs.input_encoder` and of
            :class:`~tg_mlc.models.LaMP`. The default :obj:`dropout` is :obj:`0.2`, as in the paper.
    """
    source, target = label_graph.edge_index
    options: dict[str, Any] = {"num_feature_layers": encoder_steps, "num_steps": decoder_steps}
    options |= {"mlp_channels": 2 * channels, "dropout": 0.2}
    options["label_messages"] = bool((source != target).any())
    # Given labels enter the label states, not the input encoder.
    options["given_labels"] = kwargs.pop("given_labels", False)
    inputs = pop_input_encoder(train, channels, kwargs)
    if label_graph.density == 1.0:
        label_graph = label_graph.remove_self_loops()
    options |= {"latent": latent, **kwargs}
    return compose(inputs, train, label_graph, node_messages, frequency_strength, **options)


@builder
def graph2graph(
    train: MultiLabelDataset,
    label_graph: LabelGraph,
    node_messages: bool = True,
    *,
    channels: int = 64,
    **kwargs: Any,
) -> LaMP:
    r"""Builds the network from the "Graph2Graph Networks for Multi-Label Classification" paper:
    :func:`~tg_mlc.papers.mped` with MLPs of hidden size :math:`d`.

    Args:
        train, label_graph, node_messages, channels, kwargs: As in :func:`~tg_mlc.papers.mped`.
    """
    options = {"mlp_channels": channels, **kwargs}
    return mped(train, label_graph, node_messages, channels=channels, **options)
