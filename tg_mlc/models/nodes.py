"""Factory of label message passing over the nodes of graphs with features that are numbers."""

from __future__ import annotations

from typing import Any, Literal

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
    encoder: Literal["fmp", "emb"] = "emb",
    *,
    channels: int = 32,
    **kwargs: Any,
) -> LaMP:
    r"""Builds a :class:`~tg_mlc.models.LaMP` whose components are nodes with features.

    Args:
        train, label_graph: As in :func:`table_lamp`.
        encoder, channels (optional): As there. (default: :obj:`"emb"` and :obj:`32`)
        **kwargs (optional): Additional arguments of :class:`~tg_mlc.models.LaMP`.
    """
    return compose(NodeEncoder(train[0].x.size(1), channels), train, label_graph, encoder, **kwargs)
