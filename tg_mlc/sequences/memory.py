"""Memory of an entity's whole history: what it says about each label, as a view and as a logit."""

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

#: Training targets whose features say how to scale them: at most so many, and fewer of more labels.
NUM_SCALED = 512
MAX_SCALED_ENTRIES = 2**18
#: By how much a more similar entity counts more, in the two spaces. These, and the ridges, were chosen on validation
#: targets of Complete Journey, from 5 to 40 and from 30 to 30,000.
SHARPNESS = (20.0, 40.0)
RIDGES = (100.0, 1000.0)
NUM_FOLDS = 5  #: of entities, each regressed with weights that were fitted without it
#: Roots of shares below this are in the units of this one.
RAREST = 0.02


class Neighbours(nn.Module):
    r"""Four ways to say which labels go with a history, fitted in closed form to the profiles of training entities,
    the shares :math:`\mathbf{q}_j` of their training events that have each label.

    .. math::
        \mathbf{n} = \sum_{j \neq i} \textrm{softmax}_j \big( s \, \cos (\phi(\mathbf{p}), \phi(\mathbf{q}_j)) \big) \,
        \mathbf{q}_j, \qquad \mathbf{m} = \phi(\mathbf{p}) \, \mathbf{B}_{-i}

    for the shares :math:`\mathbf{p}` of the events so far of entity :math:`i`. The first are those of similar entities,
    as in the `"Modeling Personalized Item Frequency Information for Next-basket Recommendation"
    <https://arxiv.org/abs/2006.00556>`_ paper (which takes the mean of the nearest): once with shares in units of their
    spread, :math:`\phi(p) = (\sqrt{p} - \sqrt{\pi}) / \sqrt[4]{\pi}` with :math:`\pi` their mean, and once as they are.
    The last are ridge regressions of each label on all others from the `"Embarrassingly Shallow Autoencoders for
    Sparse Data" <https://arxiv.org/abs/1905.03375>`_ paper, with two ridges, fitted without the fold of the entity.

    Shapes:
        - **profiles:** :math:`(N, L)`
        - **input:** shares :math:`(B, L)`, and entities :math:`(B)`, of which :math:`N` stands for one that is new
        - **output:** the logarithm of both shares, and the regressions, :math:`(B, L, 4)`
    """

    num_features = len(SHARPNESS) + len(RIDGES)
    profiles: Tensor
    mean: Tensor
    keys: Tensor  #: ``[2, N, L]``, profiles of length 1, in units of their spread and as they are
    between_labels: Tensor  #: ``[folds, L, ridges * L]``

    def __init__(self, profiles: Tensor) -> None:
        super().__init__()
        self.register_buffer("profiles", profiles)
        self.register_buffer("mean", profiles.mean(dim=0))
        in_units, fold = self._in_units(profiles), torch.arange(len(profiles)) % NUM_FOLDS
        self.register_buffer("keys", F.normalize(torch.stack([in_units, profiles]), dim=2))
        between = []
        # the weights of all labels but itself for each, side by side for all ridges
        for part in range(NUM_FOLDS):
            others = in_units[fold != part]
            gram, eye = others.T @ others, torch.eye(others.size(1))
            inverses = [torch.linalg.inv(gram + ridge * eye) for ridge in RIDGES]
            weights = [(-inverse / inverse.diagonal()).fill_diagonal_(0.0) for inverse in inverses]
            between.append(torch.cat(weights, dim=1))
        self.register_buffer("between_labels", torch.stack(between))

    @torch.no_grad()
    def forward(self, share: Tensor, entity: Tensor) -> Tensor:
        itself = torch.arange(self.profiles.size(0), device=entity.device) == entity.unsqueeze(1)
        in_units = self._in_units(share)
        similar = [
            self._similar(*each, itself)
            for each in zip((in_units, share), self.keys, SHARPNESS, strict=True)
        ]
        regressed = in_units.new_empty(len(in_units), self.between_labels.size(2))
        for part, weights in enumerate(self.between_labels):
            in_fold = entity % NUM_FOLDS == part
            regressed[in_fold] = in_units[in_fold] @ weights
        return torch.stack([*similar, *regressed.chunk(len(RIDGES), dim=1)], dim=-1)

    def _similar(self, query: Tensor, key: Tensor, sharpness: float, itself: Tensor) -> Tensor:
        likeness = F.normalize(query, dim=1) @ key.T
        weight = (sharpness * likeness).masked_fill(itself, -torch.inf).softmax(dim=1)
        return log_share(weight.nan_to_num(0.0) @ self.profiles)  # an only entity has no neighbours

    def _in_units(self, share: Tensor) -> Tensor:
        return (share.sqrt() - self.mean.sqrt()) / self.mean.sqrt().clamp(min=RAREST).sqrt()


def log_share(share: Tensor) -> Tensor:
    """The logarithm of a share, that of one in a thousand for zero."""
    return (share + 1e-3).log()


class PersonalMemory(nn.Module):
    r"""A view and a logit of each label from the whole history of an entity, for :class:`LANET`.

    .. math::
        \mathbf{h}_k = \textrm{MLP} \Big( \big[ \mathbf{f}_k \, \Vert \, \textstyle\sum_j \mathbf{f}_j \, \Vert \,
        \mathbf{n}_k \, \Vert \, \mathbf{t}_k \, \Vert \, \log \pi_k \big] \Big), \qquad
        \mathbf{e}_k = \mathbf{W} \mathbf{h}_k, \qquad y_k = b_k + \mathbf{w}^{\top} \mathbf{h}_k

    with the features :math:`\mathbf{f}_k` of the label in the history (:obj:`memory` of a batch; zero for a label that
    the entity never had), those of the history as a whole, what :class:`Neighbours` say, the frequency :math:`\pi_k` in
    training, and by how much more frequent the label is of late among all entities (:obj:`trend` of a batch). One
    function serves all labels, so that rare ones learn from frequent ones. The logits start at those of
    :math:`\pi_k`. :func:`personal_memory` makes one of a data set.

    Args:
        frequency (torch.Tensor): The share of training targets that have each label.
        num_features (int): Number :math:`F` of features, of which the last is the share of events.
        channels (int): Size :math:`C` of a view.
        profiles (torch.Tensor, optional): Profiles for :class:`Neighbours`, in memory of :math:`3 N \cdot L + 10 L^2`;
            without, there are none. (default: :obj:`None`)
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
        sizes = {
            "num_features": num_features,
            "channels": channels,
            "hidden_channels": hidden_channels,
        }
        for name, value in sizes.items():
            check_count(name, value)
        self.channels = channels
        self.num_features = num_features
        #: The arguments of :meth:`of_sizes`.
        self.sizes = {**sizes, "num_entities": None if profiles is None else len(profiles)}
        self.neighbours = None if profiles is None else Neighbours(profiles)
        num_inputs = (
            2 * num_features
            + 1
            + len(TREND_DAYS)
            + (0 if profiles is None else Neighbours.num_features)
        )
        self.register_buffer("frequency", frequency.clone())
        self.register_buffer("mean", torch.zeros(num_inputs))
        self.register_buffer("std", torch.ones(num_inputs))
        first, second = (
            nn.Linear(num_inputs, hidden_channels),
            nn.Linear(hidden_channels, hidden_channels),
        )
        self.mlp = nn.Sequential(first, nn.ReLU(), second, nn.ReLU())
        self.to_view = nn.Linear(hidden_channels, channels)
        self.to_logit = nn.Linear(hidden_channels, 1, bias=False)
        nn.init.zeros_(self.to_logit.weight)
        self.bias = nn.Parameter(torch.logit(frequency, eps=1e-3))

    @classmethod
    def of_sizes(cls, num_labels: int, *, num_entities: int | None, **sizes: int) -> PersonalMemory:
        """Makes a memory that knows nothing yet, for a state dict."""
        profiles = None if num_entities is None else torch.zeros(num_entities, num_labels)
        return cls(torch.zeros(num_labels), profiles=profiles, **sizes)

    def forward(self, data: Data) -> tuple[Tensor, Tensor]:
        hidden = self.mlp((self.features(data) - self.mean) / self.std)
        return self.to_view(hidden), self.to_logit(hidden).squeeze(-1) + self.bias

    def scale_by(self, data: Data) -> None:
        """Scales features to zero mean and unit variance over the labels of these training targets."""
        std, mean = torch.std_mean(self.features(data).flatten(end_dim=1), dim=0)
        self.mean.copy_(mean)
        self.std.copy_(std.where(std > 0, 1.0))

    def features(self, data: Data) -> Tensor:
        """The inputs of the function of all labels, unscaled, ``[B, L, 2 F + 4]``, or 4 more with neighbours."""
        size = (data.num_graphs, self.frequency.numel())
        place = data.memory_sample * size[1] + data.memory_label
        own = data.memory.new_zeros(size[0] * size[1], self.num_features).index_copy(
            0, place, data.memory
        )
        own = own.view(*size, -1)
        whole = own.sum(dim=1, keepdim=True).log1p().expand_as(own)
        usual = log_share(self.frequency).expand(size).unsqueeze(-1)
        # Before a first event, nothing is known of late.
        of_late = data.trend.where(data.trend > 0, self.frequency.unsqueeze(-1))
        parts = [own, whole, usual, log_share(of_late) - usual]
        if self.neighbours is not None:
            parts.append(self.neighbours(own[..., -1], data.entity))
        return torch.cat(parts, dim=-1)


def personal_memory(
    dataset: NextSetDataset,
    train: Targets,
    channels: int,
    *,
    neighbours: bool = True,
    **options: Any,
) -> PersonalMemory:
    """Makes a memory with the frequencies, the profiles and the scales of training targets.

    Args:
        dataset (NextSetDataset): The events.
        train (torch.Tensor, numpy.ndarray or list): The training targets, of which every training entity has some.
        channels (int): Size of a view.
        neighbours (bool, optional): If set to :obj:`False`, leaves out neighbours, whose memory grows with the square
            of the number of labels. (default: :obj:`True`)
        **options (optional): Further arguments of :class:`PersonalMemory`.
    """
    targets = np.asarray(train, dtype=np.int64)
    y = dataset.y[targets]
    frequency = torch.from_numpy(np.asarray(y.mean(axis=0), dtype=np.float32).ravel())
    profiles = None
    if neighbours:  # the share of each training entity's targets that have each label
        entity = dataset.entity_index[dataset.entity_of[targets]]
        shape = (dataset.num_entities, len(targets))
        of_entity = sp.csr_array((np.ones(len(targets)), (entity, np.arange(len(targets)))), shape)
        share = (of_entity @ y).toarray() / of_entity.sum(axis=1)[:, None].clip(min=1)
        profiles = torch.from_numpy(share.astype(np.float32))
    memory = PersonalMemory(
        frequency, len(dataset.memory_features), channels, profiles=profiles, **options
    )
    num_scaled = max(min(NUM_SCALED, MAX_SCALED_ENTRIES // dataset.num_labels), 1)
    memory.scale_by(dataset.batch(targets[:: -(-len(targets) // num_scaled)]))
    return memory
