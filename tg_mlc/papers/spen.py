"""Structured prediction energy networks, which minimise a learned energy, and their objectives."""

from __future__ import annotations

import inspect
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import MLP

from tg_mlc._options import check_choice, check_count, check_flag, check_number
from tg_mlc.data import MultiLabelDataset
from tg_mlc.inputs import input_encoder
from tg_mlc.losses import masked_bce
from tg_mlc.models import builder
from tg_mlc.nn.head import start_from_frequencies
from tg_mlc.papers.mlp import PooledComponents
from tg_mlc.training import Objective
from tg_mlc.training.objectives import SigmoidScores


class GlobalEnergy(nn.Module):
    r"""The energy of a label set, independent of the input, from the `"Structured Prediction Energy
    Networks" <https://arxiv.org/abs/1511.06350>`_ paper.

    .. math::
        E(\mathbf{y}) = \mathbf{w}^{\top} \, \textrm{softplus}(\mathbf{C} \mathbf{y})

    Energies are zero at first, as :math:`\mathbf{w} = \mathbf{0}`. Each of the :obj:`num_units`
    rows of :math:`\mathbf{C}` weights a combination of labels. The input is probabilities
    :math:`(B, L)`, the output energies :math:`(B)`.
    """

    def __init__(self, num_labels: int, num_units: int) -> None:
        super().__init__()
        check_count("num_units", num_units)
        self.combinations = nn.Linear(num_labels, num_units, bias=False)
        self.weight = nn.Parameter(torch.zeros(num_units))

    def forward(self, y: Tensor) -> Tensor:
        return F.softplus(self.combinations(y)) @ self.weight

    def slope(self, y: Tensor) -> Tensor:
        r"""Returns :math:`\partial E / \partial \mathbf{y}`, :math:`(B, L)`. Its closed form does
        not use autograd, and is differentiable.
        """
        slope: Tensor = (self.combinations(y).sigmoid() * self.weight) @ self.combinations.weight
        return slope


class SPENOutput(NamedTuple):
    """Output of :class:`SPEN` with :obj:`return_intermediate`."""

    logits: Tensor  #: ``[B, L]``, after the last step.
    intermediate: list[Tensor]  #: Logits before each step, each ``[B, L]``.


class SPEN(nn.Module):
    r"""The network from the `"Structured Prediction Energy Networks"
    <https://arxiv.org/abs/1511.06350>`_ paper, with the inference of the `"End-to-End Learning for
    Structured Prediction Energy Networks" <https://arxiv.org/abs/1703.05667>`_ paper.

    .. math::
        E(\mathbf{x}, \mathbf{y}) = - \mathbf{b}(\mathbf{x})^{\top} \mathbf{y} + \mathbf{w}^{\top}
        \, \textrm{softplus}(\mathbf{C} \mathbf{y}) - H(\mathbf{y})

    with a perceptron :math:`\mathbf{b}` over the mean of the components and the entropy :math:`H`.
    Inference takes :math:`T` steps of entropic mirror descent from the local logits, with learned
    step sizes:

    .. math::
        \mathbf{z}_0 = \mathbf{b}(\mathbf{x}), \qquad \mathbf{z}_{t + 1} = \mathbf{z}_t -
        \eta_t \, \nabla_{\mathbf{y}} E(\mathbf{x}, \sigma(\mathbf{z}_t))

    :class:`~tg_mlc.papers.UnrolledObjective` trains it through these steps.

    Args:
        encoder (torch.nn.Module): Turns a batch into components, as for
            :class:`~tg_mlc.models.LaMP`. Its :obj:`channels` are the size of the hidden layer.
        num_labels (int): The number of labels :math:`L`.
        num_units (int, optional): As in :class:`GlobalEnergy`. (default: :obj:`64`)
        num_steps (int, optional): The number of steps :math:`T`. (default: :obj:`5`)
        num_feature_layers (int, optional): Number of blocks among components, :obj:`0` for none.
            (default: :obj:`2`)
        dropout (float, optional): Dropout of blocks and of the hidden layer. (default: :obj:`0.1`)

    Shapes:
        - **input:** a batch of :math:`B` samples
        - **output:** logits :math:`(B, L)`
    """

    def __init__(
        self,
        encoder: nn.Module,
        num_labels: int,
        num_units: int = 64,
        num_steps: int = 5,
        num_feature_layers: int = 2,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        check_count("num_steps", num_steps)
        self.pooled = PooledComponents(encoder, num_feature_layers, dropout=dropout)
        sizes = [self.pooled.channels, self.pooled.channels, num_labels]
        self.local = MLP(sizes, dropout=dropout, norm=None)
        self.energy = GlobalEnergy(num_labels, num_units)
        # With the global energy linearised, a step of size 1 minimises the total energy.
        self.step_size = nn.Parameter(torch.full((num_steps,), 0.5))

    def forward(self, data: Data, *, return_intermediate: bool = False) -> Tensor | SPENOutput:
        """Infers the logits of a batch.

        Args:
            data (Data): One sample or a batch of samples.
            return_intermediate (bool, optional): If set to :obj:`True`, returns
                :class:`SPENOutput` with the logits before each step. (default: :obj:`False`)
        """
        local: Tensor = self.local(self.pooled(data))
        z = [local]
        for step_size in self.step_size:
            # The last term is the gradient of the negative entropy.
            slope = self.energy.slope(z[-1].sigmoid()) - local + z[-1]
            z.append(z[-1] - step_size * slope)
        return SPENOutput(z[-1], z[:-1]) if return_intermediate else z[-1]


class InfNetOutput(NamedTuple):
    """The logits of the networks of :class:`InfNet`, each ``[B, L]``."""

    local: Tensor  #: Logits of the local part of the energy.
    augmented: Tensor  #: Logits of the training network, which finds wrong sets of low energy.
    inference: Tensor  #: Logits of the prediction network.


class InfNet(nn.Module):
    r"""The energy network of the `"Learning Approximate Inference Networks for Structured
    Prediction" <https://arxiv.org/abs/1803.03376>`_ paper: a network replaces the minimisation.

    .. math::
        E(\mathbf{x}, \mathbf{y}) = - \mathbf{b}(\mathbf{x})^{\top} \mathbf{y} + \mathbf{w}^{\top}
        \, \textrm{softplus}(\mathbf{C} \mathbf{y})

    The local part :math:`\mathbf{b}` and both inference networks are perceptrons over the mean of
    the components, and start alike. :class:`~tg_mlc.papers.InferenceNetworkObjective` trains them.

    Args:
        encoder, num_labels, num_units, num_feature_layers, dropout: As in :class:`SPEN`.

    Shapes:
        - **input:** a batch of :math:`B` samples
        - **output:** logits :math:`(B, L)` of the inference network
    """

    def __init__(
        self,
        encoder: nn.Module,
        num_labels: int,
        num_units: int = 64,
        num_feature_layers: int = 2,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.pooled = PooledComponents(encoder, num_feature_layers, dropout=dropout)
        sizes = [self.pooled.channels, self.pooled.channels, num_labels]
        self.local = MLP(sizes, dropout=dropout, norm=None)
        self.augmented, self.inference = deepcopy(self.local), deepcopy(self.local)
        self.global_energy = GlobalEnergy(num_labels, num_units)

    def forward(self, data: Data) -> Tensor:
        return cast(Tensor, self.inference(self.pooled(data)))

    def networks(self, data: Data) -> InfNetOutput:
        """Returns the logits of all networks. Only the local part sends gradients to components."""
        x = self.pooled(data)
        detached = x.detach()
        return InfNetOutput(self.local(x), self.augmented(detached), self.inference(detached))

    def energy(self, y: Tensor, local: Tensor, *, frozen: bool = False) -> Tensor:
        r"""Returns the energies :math:`(B)` of probabilities :math:`(B, L)`, with local logits. If
        :obj:`frozen`, only :obj:`y` gets a gradient.
        """
        if not frozen:
            global_part: Tensor = self.global_energy(y)
            return global_part - (local * y).sum(dim=-1)
        parameters = {name: value.detach() for name, value in self.global_energy.named_parameters()}
        global_part = torch.func.functional_call(self.global_energy, parameters, (y,))
        return global_part - (local.detach() * y).sum(dim=-1)


@dataclass(frozen=True)
class UnrolledObjective(SigmoidScores, Objective):
    r"""Learning through the steps of inference, from the `"End-to-End Learning for Structured
    Prediction Energy Networks" <https://arxiv.org/abs/1703.05667>`_ paper.

    .. math::
        \mathcal{L} = \frac{1}{\sum_t w_t} \sum_{t=0}^{T} w_t \, \textrm{BCE}(\mathbf{z}_t,
        \mathbf{y}), \qquad w_t = \frac{1}{T - t + 1}

    The weights of later steps are larger. Unknown labels do not count.
    """

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Returns the weighted loss of all steps."""
        logits, intermediate = model(batch, return_intermediate=True)
        losses = torch.stack([masked_bce(z, batch.y) for z in (*intermediate, logits)])
        weights = 1.0 / torch.arange(len(losses), 0, -1, device=losses.device)
        return (weights * losses).sum() / weights.sum()

    def is_mean(self) -> bool:
        """Returns :obj:`True`, as each step's loss is a mean over known labels."""
        return True

    def check_model(self, model: nn.Module) -> None:
        if "return_intermediate" not in inspect.signature(model.forward).parameters:
            expected = "a model whose forward takes 'return_intermediate', such as SPEN"
            raise ValueError(f"Expected {expected} (got {type(model).__name__})")


@dataclass(frozen=True)
class InferenceNetworkObjective(SigmoidScores, Objective):
    r"""Margin learning of an energy and of its inference networks, from the `"Learning Approximate
    Inference Networks for Structured Prediction" <https://arxiv.org/abs/1803.03376>`_ paper.

    .. math::
        \min_{\Theta} \max_{\Phi} \; \big[ \Delta(\mathbf{A}_{\Phi}(\mathbf{x}), \mathbf{y}) -
        E_{\Theta}(\mathbf{x}, \mathbf{A}_{\Phi}(\mathbf{x})) + E_{\Theta}(\mathbf{x}, \mathbf{y})
        \big]_+, \qquad \min_{\Psi} E_{\Theta}(\mathbf{x}, \mathbf{A}_{\Psi}(\mathbf{x}))

    for the training network :math:`\mathbf{A}_{\Phi}`, the prediction network
    :math:`\mathbf{A}_{\Psi}` and :math:`\Delta(\mathbf{a}, \mathbf{y}) = \lVert \mathbf{a} -
    \mathbf{y} \rVert^2`, all divided by the number of labels. As in the paper, cross-entropy and
    entropy keep both networks stable. The paper pretrains the local energy, and tunes
    :math:`\Psi` last. Here all networks are trained at once: :math:`\Phi` without the hinge, and
    the local energy also with cross-entropy.
    The target of an unknown label is the score of :math:`\mathbf{A}_{\Phi}`.

    Args:
        local_weight (float, optional): Weight of the cross-entropies. (default: :obj:`1.0`)
        entropy_weight (float, optional): Weight of the entropy of the networks' outputs.
            (default: :obj:`1.0`, as in :class:`~tg_mlc.papers.SPEN`)
    """

    local_weight: float = 1.0
    entropy_weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("local_weight", self.local_weight)
        check_number("entropy_weight", self.entropy_weight)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Returns the sum of the losses of all networks."""
        model = cast(InfNet, model)
        networks = model.networks(batch)
        a_phi, a_psi = networks.augmented.sigmoid(), networks.inference.sigmoid()
        detached = a_phi.detach()
        y = torch.where(batch.y.isnan(), detached, batch.y)
        margin = _distance(detached, y) - model.energy(detached, networks.local)
        margin = margin + model.energy(y, networks.local)
        augmented = model.energy(a_phi, networks.local, frozen=True) - _distance(a_phi, y)
        inference = model.energy(a_psi, networks.local, frozen=True)
        entropy = _entropy(networks.augmented) + _entropy(networks.inference)
        total = margin.relu() + augmented + inference - self.entropy_weight * entropy
        losses = (masked_bce(logits, batch.y) for logits in networks)
        cross_entropy = sum(losses, torch.zeros_like(total[0]))
        return total.mean() / y.size(1) + self.local_weight * cross_entropy

    def check_model(self, model: nn.Module) -> None:
        if not isinstance(model, InfNet):
            raise ValueError(f"Expected an InfNet (got {type(model).__name__})")


def _distance(a: Tensor, y: Tensor) -> Tensor:
    return (a - y).square().sum(dim=-1)


def _entropy(logits: Tensor) -> Tensor:
    entropy = F.binary_cross_entropy_with_logits(logits, logits.sigmoid(), reduction="none")
    return entropy.sum(dim=-1)


_NETWORKS: dict[str, type[SPEN] | type[InfNet]] = {"steps": SPEN, "network": InfNet}


@builder
def energy_network(
    train: MultiLabelDataset,
    label_graph: Data,
    node_messages: bool = False,
    *,
    inference: Literal["steps", "network"] = "steps",
    channels: int = 64,
    num_units: int = 64,
    num_feature_layers: int = 2,
    dropout: float = 0.1,
    frequency_strength: float = 0.5,
    **inputs: Any,
) -> SPEN | InfNet:
    """Builds a :class:`SPEN` or an :class:`InfNet` for the inputs of a data set.

    Args:
        train, label_graph, node_messages, channels, frequency_strength, inputs: As in
            :func:`~tg_mlc.papers.pooled_mlp`.
        inference (str, optional): :obj:`"steps"` (:class:`SPEN`) or :obj:`"network"`
            (:class:`InfNet`). (default: :obj:`"steps"`)
        num_units, num_feature_layers, dropout (optional): As in :class:`SPEN`.
    """
    check_choice("inference", inference, _NETWORKS)
    check_flag("node_messages", node_messages)
    encoder = input_encoder(train, channels, **inputs)
    num_blocks = num_feature_layers if node_messages else 0
    options: Any = {"num_units": num_units, "num_feature_layers": num_blocks, "dropout": dropout}
    model = _NETWORKS[inference](encoder, train.num_labels, **options)
    networks = [model.local]
    networks += [model.augmented, model.inference] if isinstance(model, InfNet) else []
    for network in networks:
        start_from_frequencies(network.lins[-1].bias, train.y, frequency_strength)
    return model
