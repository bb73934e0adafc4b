"""Encoder of samples of several parts, such as a text and a molecule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import nn
from torch_geometric.utils import cumsum

from tg_mlc.nn.encoders.components import Components, join
from tg_mlc.ops.runtime import is_exporting


class MixedEncoder(nn.Module):
    r"""Encodes each part of a sample by its own encoder, and joins the components of all parts, so
    that labels attend to all of them in one set.

    .. math::
        \mathcal{Z} = \bigcup_p \{ s_p \mathbf{z} + \mathbf{t}_p : \mathbf{z} \in
        \textrm{encoder}_p(\mathbf{x}_p) \}

    with a learned scale :math:`s_p` and a learned type :math:`\mathbf{t}_p` of each part. A part
    that is missing becomes one learned component; a part that is empty becomes none.

    Args:
        encoders (dict): The encoder of each part by its name, with equal :obj:`channels`.

    Shapes:
        - **input:** a batch of :class:`~tg_mlc.data.parts.MixedData` with these parts, in order
        - **output:** :class:`~tg_mlc.nn.encoders.components.Components` with states
          :math:`(N_1 + \ldots + N_P + M, d)` for :math:`M` missing parts

    Raises:
        ValueError: If there is no encoder, or encoders differ in :obj:`channels`.
    """

    def __init__(self, encoders: Mapping[str, nn.Module]) -> None:
        super().__init__()
        channels = {cast(int, encoder.channels) for encoder in encoders.values()}
        if len(channels) != 1:
            message = f"Expected 'encoders' to share their 'channels' (got {sorted(channels)})"
            raise ValueError(message)
        self.channels = channels.pop()
        self.part_names = list(encoders)
        self.encoders = nn.ModuleList(encoders.values())
        # Edges of all parts are joined, so they have states if those of any part have some.
        has_states = any(encoder.edge_dim is not None for encoder in encoders.values())
        self.edge_dim = self.channels if has_states else None
        self.scale = nn.Parameter(torch.empty(len(encoders)))
        self.part_type = nn.Parameter(torch.empty(len(encoders), self.channels))
        self.missing = nn.Parameter(torch.empty(len(encoders), self.channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        r"""Resets scales, types and missing parts; types start small relative to states."""
        nn.init.ones_(self.scale)
        nn.init.normal_(self.part_type, std=0.1)
        nn.init.normal_(self.missing)

    def forward(self, data: Any) -> Components:
        """Encodes a batch."""
        if is_exporting():
            hint = "serve the model, or export one of classifiers alone"
            raise ValueError(f"Expected no MixedEncoder, whose parts may be missing; {hint}")
        parts, is_present = list[Components](), data.part_sizes >= 0
        for index, (name, encoder) in enumerate(zip(self.part_names, self.encoders, strict=True)):
            has_part = is_present[:, index]
            if has_part.any():
                components: Components = encoder(data.part(name, index))
                x = self.scale[index] * components.x + self.part_type[index]
                counts = has_part.long().masked_scatter(has_part, components.ptr.diff())
                parts.append(components._replace(x=x, ptr=cumsum(counts)))
            if not has_part.all():
                num_missing = int((~has_part).sum())
                state = self.missing[index].expand(num_missing, -1)
                parts.append(Components(state, cumsum((~has_part).long())))
        joined = join(parts)
        if self.edge_dim is not None and joined.edge_index is None:  # Without edges, all attend.
            edge_index = data.part_sizes.new_empty(2, 0)
            joined = joined._replace(edge_index=edge_index, edge_attr=joined.x[:0])
        return joined
