"""Scalers: modules that bring vectors to a scale which linear layers and kernels can work with."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class LogCounts(nn.Module):
    r"""Takes the logarithm of counts and gives every vector the same length.

    .. math::
        \mathbf{x}^{\prime} = r \sqrt{F} \cdot \frac{\log(1 + \mathbf{x})}{\lVert \log(1 + \mathbf{x}) \rVert}

    Args:
        rms (float, optional): The root mean square :math:`r` of the entries of a vector. (default: :obj:`0.5`)

    Shapes:
        - **input:** counts :math:`(B, F)`
        - **output:** :math:`(B, F)`
    """

    def __init__(self, rms: float = 0.5) -> None:
        super().__init__()
        self.rms = rms

    def forward(self, x: Tensor) -> Tensor:
        unit: Tensor = nn.functional.normalize(x.log1p(), dim=-1)
        return unit * (self.rms * math.sqrt(x.size(-1)))


class QuantileScaler(nn.Module):
    r"""Maps each entry to the standard normal quantile of its rank among training vectors, so that neither units nor
    outliers matter; entries that are missing or did not vary in training become zero.

    .. math::
        x^{\prime}_f = \Phi^{-1} \big( \hat{F}_f(x_f) \big)

    The ranks are kept as buffers, so that they travel with the weights of a model.

    Args:
        in_channels (int): Size :math:`F` of a vector.
        num_quantiles (int, optional): The number of quantiles kept of each entry. (default: :obj:`200`)

    Shapes:
        - **input:** vectors :math:`(B, F)`
        - **output:** :math:`(B, F)`

    Raises:
        ValueError: If it is used before it is fitted, or the vectors are of another size.
    """

    quantiles: Tensor
    varies: Tensor

    def __init__(self, in_channels: int, num_quantiles: int = 200) -> None:
        super().__init__()
        # NaN until they are fitted.
        self.register_buffer("quantiles", torch.full((in_channels, num_quantiles), torch.nan))
        self.register_buffer("varies", torch.zeros(in_channels, dtype=torch.bool))

    @torch.no_grad()
    def fit(self, x: Tensor) -> QuantileScaler:
        """Takes the quantiles from training vectors."""
        num_entries, num_quantiles = self.quantiles.shape
        if x.dim() != 2 or x.size(1) != num_entries or x.size(0) == 0:
            raise ValueError(f"Expected training vectors of shape [N, {num_entries}] (got {list(x.shape)})")
        levels = torch.linspace(0, 1, num_quantiles, dtype=torch.float64, device=x.device)
        quantiles = x.double().nanquantile(levels, dim=0).t()
        self.varies.copy_(quantiles[:, -1] > quantiles[:, 0])  # False where all are missing
        self.quantiles.copy_(quantiles.nan_to_num())
        return self

    def forward(self, x: Tensor) -> Tensor:
        if not torch.compiler.is_compiling() and self.quantiles[:1, :1].isnan().any():
            raise ValueError("Expected a scaler that knows quantiles (got a new one); call its 'fit', or load weights")
        if x.dim() != 2 or x.size(1) != self.quantiles.size(0):
            raise ValueError(f"Expected vectors to scale of shape [N, {self.quantiles.size(0)}] (got {list(x.shape)})")
        columns = x.t().contiguous()
        below = torch.searchsorted(self.quantiles, columns, right=False)
        above = torch.searchsorted(self.quantiles, columns, right=True)
        # Half a step inside the range, where the normal quantile is finite:
        rank = ((below + above) / 2).clamp(0.5, self.quantiles.size(1) - 0.5) / self.quantiles.size(1)
        scaled: Tensor = torch.special.ndtri(rank).masked_fill(~self.varies.unsqueeze(-1) | columns.isnan(), 0.0)
        return scaled.t().to(x.dtype)
