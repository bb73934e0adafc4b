"""Evidence of kernel ridge regression on words or vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from tg_mlc.nn.encoders.components import ptr_of
from tg_mlc.nn.evidence.evidence import Evidence

if TYPE_CHECKING:
    from typing_extensions import Self

    from tg_mlc.baselines import KernelRidgeBaseline


class KernelEvidence(Evidence):
    r"""Scores of kernel ridge regression (see :class:`~tg_mlc.baselines.KernelRidgeBaseline`).

    .. math::
        s_i = 2 \Big( \bar{y}_i + \sum_n \exp(-\gamma \lVert \mathbf{x} - \mathbf{x}_n \rVert^2) \, A_{ni} \Big) - 1

    It keeps the training samples, as such a model consists of them.

    Args:
        num_inputs (int): The size of the vocabulary, or of a vector.
        num_labels (int): The number of labels :math:`L`.
        num_samples (int): The number of training samples.
        num_entries (int): The number of all their entries that are not zero.
        key (str, optional): As in :class:`Evidence`. (default: :obj:`"evidence"`)

    Shapes:
        - **input:** as for :class:`LinearEvidence`
        - **output:** scores :math:`(B, L)`
    """

    gamma: Tensor
    ptr: Tensor
    index: Tensor
    value: Tensor
    squared: Tensor
    dual: Tensor
    mean: Tensor

    def __init__(
        self, num_inputs: int, num_labels: int, num_samples: int, num_entries: int, *, key: str = "evidence"
    ) -> None:
        super().__init__(key)
        self.num_inputs = num_inputs
        self.register_buffer("gamma", torch.ones(()))
        # Rows of a sparse matrix as plain tensors, as files of weights hold no sparse ones.
        self.register_buffer("ptr", torch.zeros(num_samples + 1, dtype=torch.long))
        self.register_buffer("index", torch.zeros(num_entries, dtype=torch.long))
        self.register_buffer("value", torch.zeros(num_entries))
        self.register_buffer("squared", torch.zeros(num_samples))
        self.register_buffer("dual", torch.zeros(num_samples, num_labels))
        self.register_buffer("mean", torch.zeros(num_labels))

    @classmethod
    def of(cls, ridge: KernelRidgeBaseline) -> Self:
        """That of a fitted regression.

        Args:
            ridge (KernelRidgeBaseline): The regression.

        Raises:
            ValueError: If it is not fitted.
        """
        if ridge.dual is None or ridge.mean is None:
            raise ValueError("Expected 'ridge' to be fitted (got one that is not); call its 'fit' first")
        rows = sp.csr_array(ridge.x)
        evidence = cls(rows.shape[1], ridge.dual.shape[1], rows.shape[0], rows.nnz)
        squared = np.asarray(rows.multiply(rows).sum(axis=1))
        values = (ridge.gamma, rows.indptr, rows.indices, rows.data, squared, ridge.dual, ridge.mean)
        for buffer, value in zip(evidence.buffers(), values, strict=True):
            buffer.copy_(torch.tensor(np.asarray(value)))
        return evidence

    def scores(self, data: Data) -> Tensor:
        x = data.x if data.x.is_floating_point() else self._dense(data)
        products = nn.functional.embedding_bag(
            self.index, x.T.contiguous(), self.ptr[:-1], mode="sum", per_sample_weights=self.value
        )
        distance = self.squared + x.square().sum(dim=1, keepdim=True) - 2 * products.T
        kernel = torch.exp(-self.gamma * distance.clamp(min=0))
        return 2 * torch.addmm(self.mean, kernel, self.dual) - 1

    def _dense(self, data: Data) -> Tensor:
        ptr = ptr_of(data)
        sample = torch.repeat_interleave(torch.arange(ptr.numel() - 1, device=ptr.device), ptr.diff())
        weight = data.get("weight")
        values = self.value.new_ones(data.x.numel()) if weight is None else weight
        dense = self.value.new_zeros(ptr.numel() - 1, self.num_inputs)
        return dense.index_put_((sample, data.x.flatten()), values, accumulate=True)
