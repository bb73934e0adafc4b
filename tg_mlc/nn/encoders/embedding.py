"""Embedding of categorical features: a state for each row."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tg_mlc.nn.encoders.components import check_columns


class CategoricalEmbedding(nn.Module):
    r"""The sum of one embedding for each of several categorical features.

    .. math::
        \mathbf{z}_i = \sum_f \mathbf{W}^{(f)}_{x_{if}}

    Args:
        num_categories (list of int): The number of categories of every feature.
        channels (int): Size :math:`d` of a state.

    Shapes:
        - **input:** categories :math:`(N, F)`
        - **output:** states :math:`(N, d)`

    Raises:
        ValueError: If the input has another number of features.
    """

    def __init__(self, num_categories: Sequence[int], channels: int) -> None:
        super().__init__()
        self.num_categories = list(num_categories)
        offset = torch.tensor([0, *self.num_categories[:-1]]).cumsum(0)
        self.register_buffer("offset", offset, persistent=False)
        self.weight = nn.Parameter(torch.empty(sum(self.num_categories), channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module, so that the sum has unit variance."""
        nn.init.normal_(self.weight, std=len(self.num_categories) ** -0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Embeds every row of categories."""
        check_columns(x, len(self.num_categories), "categorical features")
        # One look-up over all features, stacked; empty inputs (a molecule without bonds) are fine.
        return nn.functional.embedding_bag(x.long() + self.get_buffer("offset"), self.weight, mode="sum")
