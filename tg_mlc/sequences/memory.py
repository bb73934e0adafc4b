"""Memory of an entity's whole history: what it says about each label, as a state and as a logit."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from tg_mlc._options import check_count

#: Added to shares before their logarithm, about that of one event in a thousand.
FLOOR = 1e-3


class Neighbours(nn.Module):
    r"""Neighbours of an entity: how often similar entities have each label, as TIFU-KNN asks in the `"Modeling
    Personalized Item Frequency Information for Next-basket Recommendation" <https://arxiv.org/abs/2006.00556>`_ paper.

    .. math::
        \mathbf{n} = \sum_j \textrm{softmax}_j \Big( s \, \frac{(\mathbf{w} \odot \mathbf{p})^{\top} (\mathbf{w} \odot
        \mathbf{q}_j)}{\Vert \mathbf{w} \odot \mathbf{p} \Vert \, \Vert \mathbf{w} \odot \mathbf{q}_j \Vert} \Big)
        \mathbf{q}_j

    with the shares :math:`\mathbf{p}` of the events so far that have each label, and those :math:`\mathbf{q}_j` of all
    training events of another entity. The paper takes the mean of the nearest by Euclidean distance; here the sharpness
    :math:`s` and the weights :math:`\mathbf{w}` of labels are learned.

    Args:
        profiles (torch.Tensor): The share of each training entity's training events that have each label.

    Shapes:
        - **profiles:** :math:`(N, L)`
        - **input:** shares :math:`(B, L)`, entities :math:`(B)`, of which :math:`N` is one that is not in training
        - **output:** shares :math:`(B, L)`
    """

    profiles: Tensor

    def __init__(self, profiles: Tensor) -> None:
        super().__init__()
        self.register_buffer("profiles", profiles)
        self.sharpness = nn.Parameter(torch.tensor(20.0))
        self.weight = nn.Parameter(torch.ones(profiles.size(1)))

    def forward(self, share: Tensor, entity: Tensor) -> Tensor:
        """Returns the shares of neighbours."""
        query, key = (nn.functional.normalize(x * self.weight, dim=1) for x in (share, self.profiles))
        itself = torch.arange(key.size(0), device=entity.device) == entity.unsqueeze(1)
        near = (self.sharpness * query @ key.T).masked_fill(itself, -torch.inf).softmax(dim=1)
        return near.nan_to_num(0.0) @ self.profiles  # an entity that is alone has no neighbours


class PersonalMemory(nn.Module):
    r"""What the whole history of an entity says about each label, for :class:`LANET`: a view and a logit.

    .. math::
        \mathbf{h}_k = \textrm{MLP} \big( [ \mathbf{f}_k \Vert \log (n_k + \epsilon) \Vert \log (\pi_k + \epsilon) ]
        \big), \qquad \mathbf{e}^{\textrm{memory}}_k = \mathbf{W} \mathbf{h}_k, \qquad
        y^{\textrm{memory}}_k = b_k + \mathbf{w}^{\top} \mathbf{h}_k

    with the features :math:`\mathbf{f}_k` of the label in the history (zero for one that the entity never had), the
    share :math:`n_k` of neighbours that have it, and its frequency :math:`\pi_k` in training. One function serves all
    labels, so that rare ones learn from frequent ones. The logit begins at that of :math:`\pi_k`.

    Args:
        frequency (torch.Tensor): The share of training targets that have each label.
        num_features (int): Number :math:`F` of features, of which the last is the share of the entity's events.
        channels (int): Size :math:`C` of a view.
        profiles (torch.Tensor, optional): What :class:`Neighbours` takes; without, there are none.
            (default: :obj:`None`)
        hidden_channels (int, optional): Size of the two hidden layers. (default: :obj:`32`)

    Shapes:
        - **frequency:** :math:`(L)`
        - **input:** a batch of :math:`B` histories
        - **output:** views :math:`(B, L, C)` and logits :math:`(B, L)`

    Raises:
        ValueError: If a size is less than 1.
    """

    frequency: Tensor

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
        for name, value in {
            "num_features": num_features,
            "channels": channels,
            "hidden_channels": hidden_channels,
        }.items():
            check_count(name, value)
        self.channels = channels
        self.num_features = num_features
        self.register_buffer("frequency", frequency)
        self.neighbours = None if profiles is None else Neighbours(profiles)
        num_inputs = num_features + 1 + int(profiles is not None)
        self.mlp = nn.Sequential(
            nn.Linear(num_inputs, hidden_channels),
            nn.ReLU(),
            nn.Linear(hidden_channels, hidden_channels),
            nn.ReLU(),
        )
        self.to_view = nn.Linear(hidden_channels, channels)
        self.to_logit = nn.Linear(hidden_channels, 1, bias=False)
        nn.init.zeros_(self.to_logit.weight)
        self.bias = nn.Parameter(torch.logit(frequency.clone(), eps=FLOOR))

    def forward(self, data: Data) -> tuple[Tensor, Tensor]:
        """Returns the views and the logits."""
        hidden = self.mlp(self.features(data))
        return self.to_view(hidden), self.to_logit(hidden).squeeze(-1) + self.bias

    def features(self, data: Data) -> Tensor:
        """The features of all labels, ``[B, L, F + 1]``, or one more with neighbours."""
        size = (data.num_graphs, self.frequency.numel())
        place = data.memory_sample * size[1] + data.memory_label
        own = data.memory.new_zeros(size[0] * size[1], self.num_features).index_copy(0, place, data.memory)
        own = own.view(*size, -1)
        shares = [self.frequency.expand(size)]
        if self.neighbours is not None:
            shares.append(self.neighbours(own[..., -1], data.entity))
        return torch.cat([own, torch.log(torch.stack(shares, dim=-1) + FLOOR)], dim=-1)
