"""Objectives of energy networks."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Batch

from tg_mlc._options import check_number
from tg_mlc.losses import masked_bce
from tg_mlc.papers.spen import InfNet
from tg_mlc.training import Objective
from tg_mlc.training.objectives import SigmoidScores


@dataclass(frozen=True)
class UnrolledObjective(SigmoidScores, Objective):
    r"""Learning through the steps of inference, from the `"End-to-End Learning for Structured Prediction Energy
    Networks" <https://arxiv.org/abs/1703.05667>`_ paper.

    .. math::
        \mathcal{L} = \frac{1}{\sum_t w_t} \sum_{t=0}^{T} w_t \, \textrm{BCE}(\mathbf{z}_t, \mathbf{y}), \qquad
        w_t = \frac{1}{T - t + 1}

    so that good label sets are found early, and best at the end. Unknown labels are left out.
    """

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Returns the weighted loss of all steps."""
        output = model(batch, return_intermediate=True)
        found = [*output.intermediate, output.logits]
        weights = [1.0 / (len(found) - t) for t in range(len(found))]
        losses = [weight * masked_bce(z, batch.y) for weight, z in zip(weights, found, strict=True)]
        return torch.stack(losses).sum() / sum(weights)

    def check_model(self, model: nn.Module) -> None:
        """Refuses a model whose steps cannot be seen."""
        if "return_intermediate" not in inspect.signature(model.forward).parameters:
            raise ValueError(
                f"Expected a model whose forward takes 'return_intermediate', such as SPEN (got {type(model).__name__})"
            )


@dataclass(frozen=True)
class InferenceNetworkObjective(SigmoidScores, Objective):
    r"""Margin learning of an energy and of its inference networks, from the `"Learning Approximate Inference Networks
    for Structured Prediction" <https://arxiv.org/abs/1803.03376>`_ paper.

    .. math::
        \min_{\Theta} \max_{\Phi} \; \big[ \Delta(\mathbf{A}_{\Phi}(\mathbf{x}), \mathbf{y}) -
        E_{\Theta}(\mathbf{x}, \mathbf{A}_{\Phi}(\mathbf{x})) + E_{\Theta}(\mathbf{x}, \mathbf{y}) \big]_+, \qquad
        \min_{\Psi} E_{\Theta}(\mathbf{x}, \mathbf{A}_{\Psi}(\mathbf{x}))

    with :math:`\Delta(\mathbf{a}, \mathbf{y}) = \lVert \mathbf{a} - \mathbf{y} \rVert^2`, all relative to the number of
    labels. As in the paper, cross-entropy and entropy keep both networks stable. It pretrains the local energy, and
    tunes :math:`\Psi` when all else is done; here all are trained at once, :math:`\Phi` without the hinge, and the
    local energy also with cross-entropy. An unknown label counts as the network's own score.

    Args:
        local_weight (float, optional): Weight of the cross-entropies. (default: :obj:`1.0`)
        entropy_weight (float, optional): Weight of the entropy of what the networks say. (default: :obj:`1.0`, that of
            :class:`~tg_mlc.papers.SPEN`)

    Raises:
        ValueError: If an option is out of range.
    """

    local_weight: float = 1.0
    entropy_weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("local_weight", self.local_weight)
        check_number("entropy_weight", self.entropy_weight)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Returns the sum of what all networks minimise."""
        model = cast(InfNet, model)
        networks = model.networks(batch)
        wrong, right = networks.augmented.sigmoid(), networks.inference.sigmoid()
        y = torch.where(batch.y.isnan(), wrong.detach(), batch.y)
        fixed = wrong.detach()
        margin = _distance(fixed, y) - model.energy(fixed, networks.local) + model.energy(y, networks.local)
        augmented = model.energy(wrong, networks.local, frozen=True) - _distance(wrong, y)
        inference = model.energy(right, networks.local, frozen=True)
        entropy = _entropy(networks.augmented) + _entropy(networks.inference)
        total = margin.relu() + augmented + inference - self.entropy_weight * entropy
        local = sum((masked_bce(logits, batch.y) for logits in networks), torch.zeros_like(total[0]))
        return total.mean() / y.size(1) + self.local_weight * local

    def check_model(self, model: nn.Module) -> None:
        """Refuses any other model than :class:`~tg_mlc.papers.InfNet`."""
        if not isinstance(model, InfNet):
            raise ValueError(f"Expected an InfNet (got {type(model).__name__})")


def _distance(a: Tensor, y: Tensor) -> Tensor:
    return (a - y).square().sum(dim=-1)


def _entropy(logits: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(logits, logits.sigmoid(), reduction="none").sum(dim=-1)
