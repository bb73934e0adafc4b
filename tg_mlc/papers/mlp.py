"""Rivals without label states: multilayer perceptrons over a whole sample."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import MLP
from torch_geometric.utils import segment
from typing_extensions import Unpack

from tg_mlc._options import check_flag
from tg_mlc.data import MultiLabelDataset
from tg_mlc.inputs import input_encoder
from tg_mlc.models import builder
from tg_mlc.models.lamp import Encoder
from tg_mlc.nn import BlockOptions, FeatureMessagePassing
from tg_mlc.nn.encoders import BagEncoder, SequenceEncoder
from tg_mlc.nn.given import given_in
from tg_mlc.nn.head import start_from_frequencies


class PooledMLP(nn.Module):
    r"""A perceptron over the mean of components: the *MP BR* and *Emb + MLP* rivals of the `"Neural
    Message Passing for Multi-Label Classification" <https://arxiv.org/abs/1904.08049>`_ paper.

    .. math::
        \mathbf{y} = \textrm{MLP} \Big( \frac{1}{n} \sum_{j=1}^{n} \mathbf{z}_j \Big), \qquad
        \mathbf{z} = \textrm{FMP}(\textrm{encoder}(\mathbf{x}))

    *MP BR* has messages among components and 2 layers; *Emb + MLP* has no messages and 4 layers.

    Args:
        encoder (torch.nn.Module): Turns a batch into components, as for
            :class:`~tg_mlc.models.LaMP`. Its :obj:`channels` are the size of all hidden layers.
        num_labels (int): The number of labels :math:`L`.
        num_layers (int, optional): Number of layers of the perceptron. (default: :obj:`2`)
        num_feature_layers (int, optional): Number of blocks among components, :obj:`0` for none.
            (default: :obj:`2`)
        **block (optional): Options of the blocks (see :class:`~tg_mlc.nn.AttentionConv`). Their
            :obj:`dropout`, by default :obj:`0.1`, also applies to hidden layers.

    Shapes:
        - **input:** a batch of :math:`B` samples
        - **output:** logits :math:`(B, L)`
    """

    def __init__(
        self,
        encoder: nn.Module,
        num_labels: int,
        num_layers: int = 2,
        num_feature_layers: int = 2,
        **block: Unpack[BlockOptions],
    ) -> None:
        super().__init__()
        block = {"dropout": 0.1, **block}
        self.pooled = PooledComponents(encoder, num_feature_layers, **block)
        sizes = [self.pooled.channels] * num_layers + [num_labels]
        self.mlp = MLP(sizes, dropout=block["dropout"], norm=None)

    @property
    def bias(self) -> Tensor:
        """The bias of the logits."""
        return cast(Tensor, self.mlp.lins[-1].bias)

    def forward(self, data: Data) -> Tensor:
        return cast(Tensor, self.mlp(self.pooled(data)))


class PooledComponents(nn.Module):
    """The mean :math:`(B, d)` of a sample's components after feature message passing.

    The mean of no components is zero. The arguments are as in :class:`PooledMLP`.
    """

    def __init__(
        self, encoder: nn.Module, num_feature_layers: int = 2, **block: Unpack[BlockOptions]
    ) -> None:
        super().__init__()
        self.channels, edge_dim = cast(Encoder, encoder).channels, cast(Encoder, encoder).edge_dim
        self.encoder = encoder
        self.features = None
        if num_feature_layers > 0:
            options: Any = {"edge_dim": edge_dim, **block}
            self.features = FeatureMessagePassing(self.channels, num_feature_layers, **options)

    def forward(self, data: Data) -> Tensor:
        x, ptr, edge_index, edge_attr, _ = self.encoder(data)
        if self.features is not None:
            x = self.features(x, ptr=ptr, edge_index=edge_index, edge_attr=edge_attr)
        return cast(Tensor, segment(x, ptr, reduce="mean"))


class BinaryRelevance(nn.Module):
    r"""A classifier of each label on the raw vector of a sample: linear, or with one hidden layer
    that all labels share.

    .. math::
        \mathbf{y} = \mathbf{W} \mathbf{x} + \mathbf{b} \qquad \textrm{or} \qquad
        \mathbf{y} = \mathbf{W}^{(2)} \, \textrm{ReLU}(\mathbf{W}^{(1)} \mathbf{x}) + \mathbf{b}

    The raw vector :math:`\mathbf{x}` of a sample is the sum of its :math:`n` raw components over
    :math:`\sqrt{n}`. A vector is unchanged; a bag of words has unit length if its words have equal
    weights or its encoder is :obj:`normalized`; for a molecule, :math:`\mathbf{x}` counts atoms in
    every category. Given labels add two entries for each label, present and absent. The weights of
    the last layer start from zero.

    Args:
        encoder (torch.nn.Module): Maps raw inputs linearly to components, *e.g.*
            :class:`~tg_mlc.nn.encoders.BagEncoder`. Its :obj:`channels` are the hidden size, or, if
            linear, the number of labels.
        num_labels (int): The number of labels :math:`L`.
        linear (bool, optional): If set to :obj:`True`, there is no hidden layer.
            (default: :obj:`False`)
        dropout (float, optional): Dropout on the hidden layer. (default: :obj:`0.1`)
        given_labels (bool, optional): If set to :obj:`True`, takes the attribute :obj:`given` of a
            batch as a second input. (default: :obj:`False`)

    Shapes:
        - **input:** a batch of :math:`B` samples
        - **output:** logits :math:`(B, L)`
    """

    def __init__(
        self,
        encoder: nn.Module,
        num_labels: int,
        linear: bool = False,
        dropout: float = 0.1,
        given_labels: bool = False,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        channels = cast(Encoder, encoder).channels
        self.takes_given_labels = given_labels
        self.of_known = nn.Linear(2 * num_labels, channels, bias=False) if given_labels else None
        self.bias = nn.Parameter(torch.zeros(num_labels))
        last = nn.Linear(channels, num_labels, bias=False)
        hidden = (nn.ReLU(), nn.Dropout(dropout), last)
        self.layers = nn.Identity() if linear else nn.Sequential(*hidden)
        # Otherwise, molecules of many atoms would start with large logits.
        for parameter in self.parameters() if linear else last.parameters():
            nn.init.zeros_(parameter)

    def forward(self, data: Data) -> Tensor:
        x, ptr, *_ = self.encoder(data)
        sizes, given = ptr.diff().clamp(min=1).to(x.dtype), given_in(self, data)
        x = segment(x, ptr, reduce="sum") / sizes.sqrt().unsqueeze(-1)
        if given is not None and self.of_known is not None:
            x = x + self.of_known(torch.cat([given == 1, given == 0], dim=1).to(x))
        logits: Tensor = self.layers(x)
        return logits + self.bias


@builder
def pooled_mlp(
    train: MultiLabelDataset,
    label_graph: Data,
    node_messages: bool = True,
    *,
    channels: int = 64,
    num_feature_layers: int = 2,
    num_layers: int = 2,
    dropout: float = 0.1,
    frequency_strength: float = 0.5,
    **inputs: Any,
) -> PooledMLP:
    """Builds a :class:`PooledMLP` for the inputs of a data set.

    Args:
        train (MultiLabelDataset): The training samples. Their kind of input chooses the encoder,
            and the bias starts from their label frequencies.
        label_graph (LabelGraph): The labels; no edge is used.
        node_messages (bool, optional): If set to :obj:`False`, components do not send messages to
            each other, whatever :obj:`num_feature_layers` is. (default: :obj:`True`)
        channels (int, optional): Size of all hidden layers. (default: :obj:`64`)
        num_feature_layers, num_layers, dropout (optional): As in :class:`PooledMLP`.
        frequency_strength (float, optional): As in :func:`~tg_mlc.models.table_lamp`.
            (default: :obj:`0.5`)
        **inputs (optional): Additional arguments of :func:`~tg_mlc.inputs.input_encoder`.
    """
    check_flag("node_messages", node_messages)
    num_blocks = num_feature_layers if node_messages else 0
    encoder = input_encoder(train, channels, **inputs)
    model = PooledMLP(encoder, train.num_labels, num_layers, num_blocks, dropout=dropout)
    start_from_frequencies(model.bias, train.y, frequency_strength)
    return model


@builder
def binary_relevance(
    train: MultiLabelDataset,
    label_graph: Data,
    node_messages: bool = False,
    *,
    channels: int | None = 64,
    dropout: float = 0.1,
    frequency_strength: float = 0.5,
    given_labels: bool = False,
    **inputs: Any,
) -> BinaryRelevance:
    """Builds a :class:`BinaryRelevance` for a data set. Sequences of words are read as bags.

    Args:
        train, label_graph, frequency_strength, inputs: As in :func:`pooled_mlp`.
        node_messages (bool, optional): Ignored, as no messages are sent. (default: :obj:`False`)
        channels (int, optional): Size of the hidden layer, :obj:`None` for a linear model.
            (default: :obj:`64`)
        dropout, given_labels (optional): As in :class:`BinaryRelevance`.
    """
    size = train.num_labels if channels is None else channels
    encoder = input_encoder(train, size, **{"num_components": 1, **inputs})
    if isinstance(encoder, SequenceEncoder):  # A bag has no positions.
        input_dropout = inputs.get("input_dropout", 0.0)
        encoder = BagEncoder(encoder.embedding.num_embeddings, size, dropout=input_dropout)
    model = BinaryRelevance(encoder, train.num_labels, channels is None, dropout, given_labels)
    start_from_frequencies(model.bias, train.y, frequency_strength)
    return model
