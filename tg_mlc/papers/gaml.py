"""Graph attention model for multi-label learning: labels and components attend to each other."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from typing_extensions import Unpack

from tg_mlc._options import check_count, check_flag
from tg_mlc.data import MultiLabelDataset
from tg_mlc.inputs.kinds import pop_input_encoder
from tg_mlc.models import builder
from tg_mlc.models.lamp import Encoder
from tg_mlc.nn import AttentionConv, BlockOptions, FeatureMessagePassing, FeatureToLabelConv
from tg_mlc.nn.head import start_from_frequencies
from tg_mlc.ops import Blocks


class GAML(nn.Module):
    r"""A network with labels as nodes of the input's graph, after the `"Attentional Multilabel
    Learning over Graphs: A Message Passing Approach" <https://arxiv.org/abs/1804.00293>`_ paper.

    .. math::
        \mathbf{u}^t_i = \textrm{xy}^t \big( \mathbf{u}^{t-1}_i, \{ \mathbf{z}^{t-1}_j \} \big),
        \qquad \mathbf{z}^t_j = \textrm{yx}^t \big( \textrm{xx}^t (\mathbf{z}^{t-1}_j,
        \{ \mathbf{z}^{t-1}_k : k \in \mathcal{N}(j) \}), \{ \mathbf{u}^{t-1}_i \} \big)

    Every label attends to all components of its sample. Every component attends to its neighbours
    and to all labels. Labels have no edges to each other: they exchange information only through
    components. Blocks are :class:`~tg_mlc.nn.AttentionConv`; the paper has highway networks
    instead.

    Args:
        encoder (torch.nn.Module): Turns a batch into components, as for
            :class:`~tg_mlc.models.LaMP`. Its :obj:`channels` are the size :math:`d` of all states.
        num_labels (int): The number of labels :math:`L`.
        num_steps (int, optional): Number of steps. Weights are not shared between steps.
            (default: :obj:`2`)
        among_features (bool, optional): Whether components attend to each other.
            (default: :obj:`True`)
        **block (optional): Options of all blocks (see :class:`~tg_mlc.nn.AttentionConv`).

    Shapes:
        - **input:** a batch of :math:`B` samples
        - **output:** logits :math:`(B, L)`
    """

    def __init__(
        self,
        encoder: nn.Module,
        num_labels: int,
        num_steps: int = 2,
        among_features: bool = True,
        **block: Unpack[BlockOptions],
    ) -> None:
        super().__init__()
        check_count("num_labels", num_labels)
        check_count("num_steps", num_steps)
        channels, edge_dim = cast(Encoder, encoder).channels, cast(Encoder, encoder).edge_dim
        self.encoder = encoder
        self.num_labels = num_labels
        self.embedding = nn.Embedding(num_labels, channels)
        to_label = (FeatureToLabelConv(channels, **block) for _ in range(num_steps))
        self.to_label = nn.ModuleList(to_label)
        # The last step does not update components, because nothing reads them.
        other_steps = range(num_steps - 1)
        self.to_feature = nn.ModuleList(AttentionConv(channels, **block) for _ in other_steps)
        self.among_features = nn.ModuleList(
            FeatureMessagePassing(channels, 1, edge_dim=edge_dim, **block)
            for _ in (other_steps if among_features else ())
        )
        self.weight = nn.Parameter(torch.randn(num_labels, channels) * channels**-0.5)
        self.bias = nn.Parameter(torch.zeros(num_labels))

    def forward(self, data: Data) -> Tensor:
        x, ptr, edge_index, edge_attr, _ = self.encoder(data)
        num_samples, edges = ptr.numel() - 1, {"edge_index": edge_index, "edge_attr": edge_attr}
        u = self.embedding.weight.repeat(num_samples, 1)
        label_ptr = torch.arange(num_samples + 1, device=x.device) * self.num_labels
        to_label, to_feature = Blocks(label_ptr, ptr), Blocks(ptr, label_ptr)
        for step, conv in enumerate(self.to_label):
            previous, u = u, conv((x, u), to_label)
            if self.among_features and step < len(self.among_features):
                x = self.among_features[step](x, ptr=ptr, **edges)
            if step < len(self.to_feature):
                x = self.to_feature[step]((previous, x), to_feature)
        states = u.view(num_samples, self.num_labels, -1)
        return (states * self.weight).sum(dim=-1) + self.bias


@builder
def gaml(
    train: MultiLabelDataset,
    label_graph: Data,
    node_messages: bool = True,
    *,
    channels: int = 64,
    num_steps: int = 2,
    frequency_strength: float = 0.5,
    **kwargs: Any,
) -> GAML:
    """Builds a :class:`GAML` for the inputs of a data set.

    Args:
        train, label_graph, channels, frequency_strength: As in :func:`~tg_mlc.papers.pooled_mlp`.
        node_messages (bool, optional): Whether components attend to each other.
            (default: :obj:`True`)
        num_steps (int, optional): As in :class:`GAML`. (default: :obj:`2`)
        **kwargs (optional): Additional arguments of :func:`~tg_mlc.inputs.input_encoder`, and
            options of the blocks.
    """
    check_flag("node_messages", node_messages)
    encoder = pop_input_encoder(train, channels, kwargs)
    model = GAML(encoder, train.num_labels, num_steps, node_messages, **kwargs)
    start_from_frequencies(model.bias, train.y, frequency_strength)
    return model
