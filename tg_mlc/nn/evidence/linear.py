"""Evidence of linear models of words or vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from tg_mlc.nn.encoders.components import ptr_of
from tg_mlc.nn.evidence.evidence import Evidence

if TYPE_CHECKING:
    from typing_extensions import Self

    from tg_mlc.baselines import LinearBaseline


class LinearEvidence(Evidence):
    r"""Scores of a linear model of words or vectors.

    .. math::
        s_i = b_i + \sum_{w} x_w W_{wi}

    Args:
        num_inputs (int): The size of the vocabulary, or of a vector.
        num_labels (int): The number of labels :math:`L`.
        key (str, optional): As in :class:`Evidence`. (default: :obj:`"evidence"`)

    Shapes:
        - **input:** a batch with words :obj:`x` of shape :math:`(N)` and, if they carry any, their values
          :obj:`weight` of shape :math:`(N)`; or vectors :obj:`x` of shape :math:`(B, F)`
        - **output:** scores :math:`(B, L)`
    """

    weight: Tensor
    bias: Tensor

    def __init__(self, num_inputs: int, num_labels: int, *, key: str = "evidence") -> None:
        super().__init__(key)
        # Buffers: neither optimisers nor weight decay may touch them.
        self.register_buffer("weight", torch.zeros(num_inputs, num_labels))
        self.register_buffer("bias", torch.zeros(num_labels))

    @classmethod
    def of(cls, linear: LinearBaseline) -> Self:
        """That of fitted classifiers.

        Args:
            linear (LinearBaseline): The classifiers.

        Raises:
            ValueError: If they are not fitted.
        """
        if linear.weight is None or linear.bias is None:
            raise ValueError("Expected 'linear' to be fitted (got one that is not); call its 'fit' first")
        evidence = cls(*linear.weight.shape)
        evidence.weight.copy_(torch.tensor(linear.weight))
        evidence.bias.copy_(torch.tensor(linear.bias))
        return evidence

    def scores(self, data: Data) -> Tensor:
        if data.x.is_floating_point():
            return torch.addmm(self.bias, data.x, self.weight)
        scores = nn.functional.embedding_bag(
            data.x.flatten(),
            self.weight,
            ptr_of(data)[:-1],
            mode="sum",
            per_sample_weights=data.get("weight"),
        )
        return scores + self.bias
