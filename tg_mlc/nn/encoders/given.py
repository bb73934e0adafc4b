"""Known labels as components, for models without a state of every label."""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import cumsum

from tg_mlc.nn.encoders.components import Components
from tg_mlc.nn.encoders.joint import join


class GivenComponents(nn.Module):
    r"""Puts a component for each known label beside those of an encoder.

    .. math::
        \mathbf{z} = \textrm{encoder}(\mathbf{x}) \, \Vert \, \{ \mathbf{s}_{i, k_i} : k_i \textrm{ is known} \}

    So does any model that attends to components, or pools them, take what is known of a sample's labels into account
    (see :class:`~tg_mlc.nn.GivenLabels` for models with a state of every label).

    Args:
        encoder (torch.nn.Module): The encoder of the input.
        num_labels (int): The number of labels :math:`L`.

    Shapes:
        - **input:** a batch of :math:`B` samples, with known labels as attribute :obj:`given`, :math:`(B, L)`, or
          without
        - **output:** :class:`~tg_mlc.nn.encoders.Components`

    Raises:
        ValueError: If :obj:`given` is of another shape.
    """

    takes_given_labels = True

    def __init__(self, encoder: nn.Module, num_labels: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.channels = cast(int, encoder.channels)
        self.edge_dim = cast("int | None", encoder.edge_dim)
        self.num_labels = num_labels
        self.embedding = nn.Embedding(2 * num_labels, self.channels)

    def forward(self, data: Data) -> Components:
        """Encodes a batch, and what is known of its labels."""
        components: Components = self.encoder(data)
        given: Tensor | None = data.get("given")
        if given is None:
            return components
        expected = [components.ptr.numel() - 1, self.num_labels]
        if list(given.shape) != expected:
            raise ValueError(f"Expected 'given' of shape {expected} (got {list(given.shape)})")
        is_known = ~given.isnan()
        sample, label = is_known.nonzero(as_tuple=True)
        states = self.embedding(label + self.num_labels * given[sample, label].long())
        return join([components, Components(states, cumsum(is_known.sum(dim=1)))])
