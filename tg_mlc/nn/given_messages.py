"""Layers that change base logits by the values of given labels."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch_geometric.data import Data
from typing_extensions import Self

# The scale of autoencoder scores is large, because the weights of tg_mlc.stacking.given shrink it.
_SCALE = 10.0
# Added to the variance of a label, because otherwise rare labels would outweigh all others.
_LEAST_VARIANCE = 0.01
# The weight of label frequencies in averages over neighbours: few neighbours may all agree.
_PRIOR_SHARE = 0.02


class LabelAutoencoder(nn.Module):
    r"""A variant of the linear autoencoder from the `"Embarrassingly Shallow Autoencoders for
    Sparse Data" <https://arxiv.org/abs/1905.03375>`_ paper, over base logits: labels are centred,
    so that labels outside the given labels :math:`\mathcal{G}` count as their frequencies.

    .. math::
        \mathbf{P} = \Big( \frac{1}{N} (\mathbf{Y} - \bar{\mathbf{y}})^{\top} (\mathbf{Y} -
        \bar{\mathbf{y}}) + \lambda \mathbf{I} \Big)^{-1}, \qquad
        z_i = b_i - 10 \sum_{j \in \mathcal{G} \setminus i} (y_j - \bar{y}_j) \frac{P_{ji}}{P_{ii}}

    With only present labels given, residual messages add up to too much, unlike an autoencoder's.
    """

    covariance: Tensor
    frequency: Tensor
    weight: Tensor

    def __init__(self, label_graph: Data) -> None:
        super().__init__()
        num_labels = int(label_graph.num_nodes or 0)
        self.register_buffer("frequency", torch.zeros(num_labels))
        self.register_buffer("weight", torch.zeros(num_labels, num_labels))

    def start_from_labels(self, y: Tensor) -> Self:
        """Counts the labels of training samples :math:`(N, L)`: 0, 1, or NaN for unknown."""
        self.frequency = y.nanmean(dim=0).nan_to_num(0.0)
        centred = (y - self.frequency).nan_to_num(0.0)
        self.covariance = centred.t() @ centred / len(y)
        return self

    def damp(self, penalty: float) -> Self:
        r"""Sets :math:`\lambda`."""
        inverse = torch.linalg.inv(self.covariance + penalty * torch.eye(len(self.covariance)))
        self.weight = (-_SCALE * inverse / inverse.diagonal()).fill_diagonal_(0.0)
        return self

    def forward(self, base_logits: Tensor, given: Tensor) -> Tensor:
        """Returns logits :math:`(B, L)`."""
        return base_logits + (given - self.frequency).nan_to_num(0.0) @ self.weight


class LabelNeighbours(nn.Module):
    r"""Averages the labels :math:`\mathbf{y}_n` of training samples, weighted by agreement with the
    given labels :math:`\mathcal{G}` and by similarity of base logits :math:`\mathbf{b}_n`: messages
    between samples.

    .. math::
        w_n = \operatorname{softmax}_n \big( \alpha \cos(\tilde{\mathbf{y}}_{\mathcal{G}},
        \tilde{\mathbf{y}}_{n, \mathcal{G}}) + \beta \cos(\mathbf{b} - \bar{\mathbf{b}},
        \mathbf{b}_n - \bar{\mathbf{b}}) \big), \qquad
        z_i = \operatorname{logit} \big( 0.98 \, \textstyle\sum_n w_n y_{ni} + 0.02 \, \bar{y}_i
        \big)

    with standardised labels :math:`\tilde{\mathbf{y}}`. Whole label sets express dependencies among
    more than two labels. A given label keeps its base logit.
    """

    frequency: Tensor
    y: Tensor
    base_logits: Tensor

    def __init__(self, label_graph: Data) -> None:
        super().__init__()
        self.register_buffer("frequency", torch.zeros(int(label_graph.num_nodes or 0)))
        for name in ("y", "base_logits"):
            self.register_buffer(name, torch.zeros(0, int(label_graph.num_nodes or 0)))
        self.register_buffer("sharpness", torch.zeros(2))

    def start_from_samples(self, base_logits: Tensor, y: Tensor) -> Self:
        """Stores held-out logits and targets; unknown targets become predicted probabilities."""
        self.frequency = y.nanmean(dim=0).nan_to_num(0.5)
        self.base_logits, self.y = base_logits, torch.where(y.isnan(), base_logits.sigmoid(), y)
        return self

    def sharpen(self, agreement: float, likeness: float) -> Self:
        r"""Sets :math:`\alpha` and :math:`\beta`."""
        self.sharpness = torch.tensor([agreement, likeness])
        return self

    def forward(self, base_logits: Tensor, given: Tensor) -> Tensor:
        """Returns logits :math:`(B, L)`."""
        std = (self.frequency * (1 - self.frequency) + _LEAST_VARIANCE).sqrt()
        query = (given - self.frequency).nan_to_num(0.0) / std
        keys = (self.y - self.frequency) / std
        # Only the given labels count in the lengths of vectors.
        lengths = ((~given.isnan()).float() @ keys.square().t()).sqrt()
        lengths = query.norm(dim=1, keepdim=True) * lengths
        centre = self.base_logits.mean(dim=0)
        b, b_n = (normalize(x - centre, dim=1) for x in (base_logits, self.base_logits))
        agreement, likeness = query @ keys.t() / lengths.clamp(min=1e-6), b @ b_n.t()
        weight = (self.sharpness[0] * agreement + self.sharpness[1] * likeness).softmax(dim=-1)
        logits = torch.lerp(weight @ self.y, self.frequency, _PRIOR_SHARE).logit(eps=1e-4)
        # Neighbours are chosen by the values of given labels.
        return torch.where(given.isnan(), logits, base_logits)
