"""Memory of an entity's whole history, which gives a view and a logit of each label."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from tg_mlc._options import check_count
from tg_mlc.sequences.dataset import TREND_DAYS, NextSetDataset, Targets

#: Feature scales come from at most this number of training targets, and of (target, label) pairs.
NUM_SCALED = 512
MAX_SCALED_ENTRIES = 2**18
#: Inverse temperatures of the two similarities of :class:`Neighbours`, and its ridge penalties.
#: Chosen on validation targets of Complete Journey, in the ranges 5 to 40 and 30 to 30,000.
SHARPNESS = (20.0, 40.0)
RIDGES = (100.0, 1000.0)
NUM_FOLDS = 5  #: number of folds of entities for cross-fitted regressions
RAREST = 0.02  #: Smallest scale: square roots of mean fractions are clipped to this value.


class Neighbours(nn.Module):
    r"""Four scores per label from a history, fitted in closed form to the profiles
    :math:`\mathbf{q}_j` of training entities. A profile is the fraction of an entity's training
    events with each label.

    .. math::
        \mathbf{n} = \sum_{j \neq i} \textrm{softmax}_j
        \big( s \, \cos (\phi(\mathbf{p}), \phi(\mathbf{q}_j)) \big) \, \mathbf{q}_j, \qquad
        \mathbf{m} = \phi(\mathbf{p}) \, \mathbf{B}_{-i}

    for the label fractions :math:`\mathbf{p}` in past events of entity :math:`i`. Two scores
    average profiles of similar entities, as in the `"Modeling Personalized Item Frequency
    Information for Next-basket Recommendation" <https://arxiv.org/abs/2006.00556>`_ paper (which
    averages the nearest only): one with :math:`\phi(p) = (\sqrt{p} - \sqrt{\pi}) /
    \sqrt[4]{\pi}`, for the mean profile :math:`\pi`, one with :math:`\phi(p) = p`. Two scores are
    ridge regressions of each label on all others, as in the `"Embarrassingly Shallow Autoencoders
    for Sparse Data" <https://arxiv.org/abs/1905.03375>`_ paper, with two penalties. An entity is
    scored by regressions :math:`\mathbf{B}_{-i}` that were fitted without its fold of entities.

    Shapes:
        - **profiles:** :math:`(N, L)`
        - **input:** fractions :math:`(B, L)`, and entities :math:`(B)`, :math:`N` for a new one
        - **output:** logarithms of the average profiles, and regressions, :math:`(B, L, 4)`
    """

    num_features = len(SHARPNESS) + len(RIDGES)
    profiles: Tensor
    mean: Tensor
    keys: Tensor  #: ``[2, N, L]``, profiles with unit norm, scaled and unscaled
    between_labels: Tensor  #: ``[folds, L, ridges * L]``, regression weights fitted without a fold

    def __init__(self, profiles: Tensor) -> None:
        super().__init__()
        self.register_buffer("profiles", profiles)
        self.register_buffer("mean", profiles.mean(dim=0))
        scaled, fold_of = self._scale(profiles), torch.arange(len(profiles)) % NUM_FOLDS
        self.register_buffer("keys", F.normalize(torch.stack([scaled, profiles]), dim=2))
        regressions = []
        for fold in range(NUM_FOLDS):
            train = scaled[fold_of != fold]
            gram, eye = train.T @ train, torch.eye(train.size(1))
            inverses = [torch.linalg.inv(gram + ridge * eye) for ridge in RIDGES]
            weights = [(-inverse / inverse.diagonal()).fill_diagonal_(0.0) for inverse in inverses]
            regressions.append(torch.cat(weights, dim=1))
        self.register_buffer("between_labels", torch.stack(regressions))

    @torch.no_grad()
    def forward(self, fraction: Tensor, entity: Tensor) -> Tensor:
        is_self = torch.arange(self.profiles.size(0), device=entity.device) == entity.unsqueeze(1)
        scaled = self._scale(fraction)
        spaces = zip((scaled, fraction), self.keys, SHARPNESS, strict=True)
        log_averages = [self._log_average(*space, is_self) for space in spaces]
        regressions = scaled.new_empty(len(scaled), self.between_labels.size(2))
        for fold, weights in enumerate(self.between_labels):
            in_fold = entity % NUM_FOLDS == fold
            regressions[in_fold] = scaled[in_fold] @ weights
        return torch.stack([*log_averages, *regressions.chunk(len(RIDGES), dim=1)], dim=-1)

    def _log_average(self, query: Tensor, key: Tensor, sharpness: float, is_self: Tensor) -> Tensor:
        similarity = F.normalize(query, dim=1) @ key.T
        weight = (sharpness * similarity).masked_fill(is_self, -torch.inf).softmax(dim=1)
        # Weights are NaN if the only training entity is the entity itself.
        return log_fraction(weight.nan_to_num(0.0) @ self.profiles)

    def _scale(self, fraction: Tensor) -> Tensor:
        return (fraction.sqrt() - self.mean.sqrt()) / self.mean.sqrt().clamp(min=RAREST).sqrt()


def log_fraction(fraction: Tensor) -> Tensor:
    """Returns the logarithm of a fraction plus 0.001, which is finite for a fraction of 0."""
    return (fraction + 1e-3).log()


class PersonalMemory(nn.Module):
    r"""A view and a logit of each label from the whole history of an entity, for :class:`LANET`.

    .. math::
        \mathbf{h}_k = \textrm{MLP} \Big( \big[ \mathbf{f}_k \, \Vert \,
        \textstyle\sum_j \mathbf{f}_j \, \Vert \, \mathbf{n}_k \, \Vert \, \mathbf{t}_k \, \Vert \,
        \log \pi_k \big] \Big), \qquad
        \mathbf{e}_k = \mathbf{W} \mathbf{h}_k, \qquad y_k = b_k + \mathbf{w}^{\top} \mathbf{h}_k

    with the features :math:`\mathbf{f}_k` of the label in the history (:obj:`memory` of a batch;
    zero without occurrences), their sum over labels, scores :math:`\mathbf{n}_k` of
    :class:`Neighbours`, the recent change :math:`\mathbf{t}_k` of the label's frequency
    (:obj:`trend` of a batch), and its frequency :math:`\pi_k` in training. All labels share one
    MLP, so rare labels learn from frequent ones. Logits start at the logits of :math:`\pi_k`.
    :func:`personal_memory` builds a memory from a data set.

    Args:
        frequency (torch.Tensor): The fraction of training targets that have each label.
        num_features (int): Number :math:`F` of features; the last is the fraction of events.
        channels (int): Size :math:`C` of a view.
        profiles (torch.Tensor, optional): Profiles for :class:`Neighbours`, which stores
            :math:`3 N \cdot L + 10 L^2` numbers. (default: :obj:`None`, no neighbours)
        hidden_channels (int, optional): Size of the two hidden layers. (default: :obj:`32`)

    Shapes:
        - **frequency:** :math:`(L)`
        - **profiles:** :math:`(N, L)`
        - **input:** a batch of :math:`B` histories
        - **output:** views :math:`(B, L, C)` and logits :math:`(B, L)`
    """

    frequency: Tensor
    mean: Tensor
    std: Tensor

    def __init__(
        self,
        frequency: Tensor,
        num_features: int,
        channels: int,
        *,
        profiles: Tensor | None = None,
        hidden_channels: int = 32,
    ) -> None:
        super().__init__()
        sizes = {"num_features": num_features, "channels": channels}
        sizes["hidden_channels"] = hidden_channels
        for name, value in sizes.items():
            check_count(name, value)
        self.channels, self.num_features = channels, num_features
        #: The arguments of :meth:`of_sizes`.
        self.sizes = {**sizes, "num_entities": None if profiles is None else len(profiles)}
        self.neighbours = None if profiles is None else Neighbours(profiles)
        num_inputs = 2 * num_features + 1 + len(TREND_DAYS)
        num_inputs += 0 if profiles is None else Neighbours.num_features
        self.register_buffer("frequency", frequency.clone())
        self.register_buffer("mean", torch.zeros(num_inputs))
        self.register_buffer("std", torch.ones(num_inputs))
        first = nn.Linear(num_inputs, hidden_channels)
        second = nn.Linear(hidden_channels, hidden_channels)
        self.mlp = nn.Sequential(first, nn.ReLU(), second, nn.ReLU())
        self.to_view = nn.Linear(hidden_channels, channels)
        self.to_logit = nn.Linear(hidden_channels, 1, bias=False)
        nn.init.zeros_(self.to_logit.weight)
        self.bias = nn.Parameter(torch.logit(frequency, eps=1e-3))

    @classmethod
    def of_sizes(cls, num_labels: int, *, num_entities: int | None, **sizes: int) -> PersonalMemory:
        """Makes an empty memory that a state dict can be loaded into."""
        profiles = None if num_entities is None else torch.zeros(num_entities, num_labels)
        return cls(torch.zeros(num_labels), profiles=profiles, **sizes)

    def forward(self, data: Data) -> tuple[Tensor, Tensor]:
        hidden = self.mlp((self.features(data) - self.mean) / self.std)
        return self.to_view(hidden), self.to_logit(hidden).squeeze(-1) + self.bias

    def scale_by(self, data: Data) -> None:
        """Scales features to zero mean and unit variance over the labels of training targets."""
        std, mean = torch.std_mean(self.features(data).flatten(end_dim=1), dim=0)
        self.mean.copy_(mean)
        self.std.copy_(std.where(std > 0, 1.0))

    def features(self, data: Data) -> Tensor:
        """Returns unscaled inputs of the MLP, ``[B, L, 2 F + 4]`` (2 F + 8 with neighbours)."""
        size = (data.num_graphs, self.frequency.numel())
        row = data.memory_sample * size[1] + data.memory_label
        history = data.memory.new_zeros(size[0] * size[1], self.num_features)
        history = history.index_copy(0, row, data.memory).view(*size, -1)
        history_sum = history.sum(dim=1, keepdim=True).log1p().expand_as(history)
        log_frequency = log_fraction(self.frequency).expand(size).unsqueeze(-1)
        # There is no trend before the first event; the overall frequency replaces it.
        trend = data.trend.where(data.trend > 0, self.frequency.unsqueeze(-1))
        features = [history, history_sum, log_frequency, log_fraction(trend) - log_frequency]
        if self.neighbours is not None:
            features.append(self.neighbours(history[..., -1], data.entity))
        return torch.cat(features, dim=-1)


def personal_memory(
    dataset: NextSetDataset,
    train: Targets,
    channels: int,
    *,
    neighbours: bool = True,
    **options: Any,
) -> PersonalMemory:
    """Makes a memory, with frequencies, profiles and feature scales of training targets.

    Args:
        dataset (NextSetDataset): The events.
        train (torch.Tensor, numpy.ndarray or list): The training targets.
        channels (int): Size of a view.
        neighbours (bool, optional): Whether to use :class:`Neighbours`, whose size grows with the
            square of the number of labels. (default: :obj:`True`)
        **options (optional): Further arguments of :class:`PersonalMemory`.
    """
    targets = np.asarray(train, dtype=np.int64)
    y = dataset.y[targets]
    frequency = torch.from_numpy(np.asarray(y.mean(axis=0), dtype=np.float32).ravel())
    profiles = None
    if neighbours:  # A profile is the fraction of an entity's training targets with each label.
        entity = dataset.entity_index[dataset.entity_of[targets]]
        shape = (dataset.num_entities, len(targets))
        indicator = sp.csr_array((np.ones(len(targets)), (entity, np.arange(len(targets)))), shape)
        fraction = (indicator @ y).toarray() / indicator.sum(axis=1)[:, None].clip(min=1)
        profiles = torch.from_numpy(fraction.astype(np.float32))
    num_features = len(dataset.memory_features)
    memory = PersonalMemory(frequency, num_features, channels, profiles=profiles, **options)
    num_scaled = max(min(NUM_SCALED, MAX_SCALED_ENTRIES // dataset.num_labels), 1)
    memory.scale_by(dataset.batch(targets[:: -(-len(targets) // num_scaled)]))
    return memory
