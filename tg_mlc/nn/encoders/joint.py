"""Joint encoder: components of several kinds side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.index import ptr2index

from tg_mlc.nn.encoders.components import Components


class JointEncoder(nn.Module):
    r"""Puts the components of several encoders side by side in each sample, so that labels attend to all of them.

    Edges stay among the components of the encoder that made them; at most one encoder may have any. A layer
    normalisation brings components of all kinds to one scale.

    Args:
        encoders (list of torch.nn.Module): Encoders of the same :obj:`channels`.

    Shapes:
        - **input:** a batch that all encoders take
        - **output:** :class:`~tg_mlc.nn.encoders.Components` with states :math:`(N_1 + \ldots + N_n, d)`

    Raises:
        ValueError: If there is no encoder, their channels differ, more than one of them has edges, or components have
            one label each (``to_label``).
    """

    def __init__(self, encoders: Sequence[nn.Module]) -> None:
        super().__init__()
        channels = {cast(int, encoder.channels) for encoder in encoders}
        if len(channels) != 1:
            raise ValueError(f"Expected 'encoders' to share their 'channels' (got {sorted(channels)})")
        self.encoders = nn.ModuleList(encoders)
        self.channels = channels.pop()
        edge_dims = [cast(int, encoder.edge_dim) for encoder in encoders if encoder.edge_dim is not None]
        if len(edge_dims) > 1:
            raise ValueError(f"Expected at most one of 'encoders' to have edges (got {len(edge_dims)})")
        self.edge_dim = edge_dims[0] if edge_dims else None
        self.norm = nn.LayerNorm(self.channels)

    def forward(self, data: Data) -> Components:
        """Encodes a batch with every encoder and joins the components of each sample."""
        joined = join([encoder(data) for encoder in self.encoders])
        return joined._replace(x=self.norm(joined.x))


def join(parts: list[Components]) -> Components:
    """The components of all parts side by side in each sample, those of the first part first."""
    if any(part.to_label is not None for part in parts):
        raise ValueError("Expected components that all labels attend to (got 'to_label'); encode them alone")
    x = torch.cat([part.x for part in parts])
    samples = torch.cat([ptr2index(part.ptr, output_size=part.x.size(0)) for part in parts])
    # A stable sort keeps the order of each encoder's components within a sample.
    samples, order = torch.sort(samples, stable=True)
    ptr = torch.stack([part.ptr for part in parts]).sum(dim=0)
    return Components(x[order], ptr, *_edges(parts, order))


def _edges(parts: list[Components], order: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """The edges of the one part that has any, with its components numbered as they stand after the sort."""
    place = torch.empty_like(order).index_copy(0, order, torch.arange(order.numel(), device=order.device))
    offset = 0
    for part in parts:
        if part.edge_index is not None:
            return place[part.edge_index + offset], part.edge_attr
        offset += part.x.size(0)
    return None, None
