"""Factory of label message passing over the nodes of graphs with features that are numbers."""

from __future__ import annotations

from typing import Any

from torch_geometric.data import Data

from tg_mlc.data import MultiLabelDataset
from tg_mlc.models._compose import compose
from tg_mlc.models.builders import builder
from tg_mlc.models.lamp import LaMP
from tg_mlc.nn.encoders import NodeEncoder


@builder
def node_lamp(
    train: MultiLabelDataset,
    label_graph: Data,
    node_messages: bool = False,
    *,
    channels: int = 32,
    **kwargs: Any,
) -> LaMP:
    r"""Builds a :class:`~tg_mlc.models.LaMP` whose components are nodes with features.

    Args:
        train, label_graph: As in :func:`table_lamp`.
        node_messages, channels (optional): As there. (default: :obj:`False` and :obj:`32`)
        **kwargs (optional): Additional arguments of :class:`~tg_mlc.models.LaMP`.
    """
    return compose(NodeEncoder(train[0].x.size(1), channels), train, label_graph, node_messages, **kwargs)
