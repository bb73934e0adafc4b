"""Factory of label message passing over DNA, as we recommend it."""

from __future__ import annotations

from typing import Any

from torch_geometric.data import Data

from tg_mlc.data import MultiLabelDataset
from tg_mlc.models._compose import compose
from tg_mlc.models.builders import builder
from tg_mlc.models.lamp import LaMP
from tg_mlc.nn.encoders import DNAEncoder


@builder
def dna_lamp(
    train: MultiLabelDataset,
    label_graph: Data,
    node_messages: bool = True,
    *,
    channels: int = 64,
    kernel_size: int = 16,
    pool: int = 4,
    **kwargs: Any,
) -> LaMP:
    r"""Builds a :class:`~tg_mlc.models.LaMP` whose components are pieces of DNA under a convolution.

    Args:
        train, label_graph: As in :func:`table_lamp`.
        node_messages, channels (optional): As there. (default: :obj:`True` and :obj:`64`)
        kernel_size (int, optional): The number of letters that a convolution sees. (default: :obj:`16`)
        pool (int, optional): The number of letters that become one component. (default: :obj:`4`)
        **kwargs (optional): Additional arguments of :class:`~tg_mlc.models.LaMP`.
    """
    inputs = DNAEncoder(channels, kernel_size, pool, both_strands=True)
    return compose(inputs, train, label_graph, node_messages, **kwargs)
