"""Frequencies of labels among similar entities, and after similar labels."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

#: By how much a more similar entity counts more, in the two spaces. These, and the ridge, were chosen on validation
#: targets of Complete Journey, from 5 to 40 and from 30 to 1000.
SHARPNESS = (20.0, 40.0)
RIDGE = 100.0
#: Roots of shares below this are in the units of this one.
RAREST = 0.02


class Neighbours(nn.Module):
    r"""Three ways to say which labels go with a history, fitted in closed form to the profiles of training entities,
    the shares :math:`\mathbf{q}_j` of their training events that have each label.

    .. math::
        \mathbf{n} = \sum_{j \neq i} \textrm{softmax}_j \big( s \, \cos (\phi(\mathbf{p}), \phi(\mathbf{q}_j)) \big) \,
        \mathbf{q}_j, \qquad \mathbf{m} = \phi(\mathbf{p}) \, \mathbf{B}

    for the shares :math:`\mathbf{p}` of the events so far of entity :math:`i`. The first are those of similar entities,
    as in the `"Modeling Personalized Item Frequency Information for Next-basket Recommendation"
    <https://arxiv.org/abs/2006.00556>`_ paper (which takes the mean of the nearest): once with shares in units of their
    spread, :math:`\phi(p) = (\sqrt{p} - \sqrt{\pi}) / \sqrt[4]{\pi}` with :math:`\pi` their mean, and once as they are.
    The last is the ridge regression of each label on all others from the `"Embarrassingly Shallow Autoencoders for
    Sparse Data" <https://arxiv.org/abs/1905.03375>`_ paper.

    Args:
        profiles (torch.Tensor): The shares of training entities.

    Shapes:
        - **profiles:** :math:`(N, L)`
        - **input:** shares :math:`(B, L)`, and entities :math:`(B)`, of which :math:`N` stands for one that is new
        - **output:** the logarithm of both shares and the regression's, :math:`(B, L, 3)`
    """

    num_features = 3
    profiles: Tensor
    mean: Tensor
    between_labels: Tensor

    def __init__(self, profiles: Tensor) -> None:
        super().__init__()
        self.register_buffer("profiles", profiles)
        self.register_buffer("mean", profiles.mean(dim=0))
        self.register_buffer("between_labels", _regression(self._in_units(profiles)))

    @torch.no_grad()
    def forward(self, share: Tensor, entity: Tensor) -> Tensor:
        """Returns what the neighbours say."""
        itself = torch.arange(self.profiles.size(0), device=entity.device) == entity.unsqueeze(1)
        in_units = self._in_units(share)
        told = [
            self._similar(in_units, self._in_units(self.profiles), SHARPNESS[0], itself),
            self._similar(share, self.profiles, SHARPNESS[1], itself),
            in_units @ self.between_labels,
        ]
        return torch.stack(told, dim=-1)

    def _similar(self, query: Tensor, key: Tensor, sharpness: float, itself: Tensor) -> Tensor:
        likeness = F.normalize(query, dim=1) @ F.normalize(key, dim=1).T
        weight = (sharpness * likeness).masked_fill(itself, -torch.inf).softmax(dim=1)
        return log_share(weight.nan_to_num(0.0) @ self.profiles)  # an only entity has no neighbours

    def _in_units(self, share: Tensor) -> Tensor:
        return (share.sqrt() - self.mean.sqrt()) / self.mean.sqrt().clamp(min=RAREST).sqrt()


def log_share(share: Tensor) -> Tensor:
    """The logarithm of a share, that of one in a thousand for zero."""
    return (share + 1e-3).log()


def _regression(x: Tensor) -> Tensor:
    """The weights ``[L, L]`` of all labels but itself for each, with a ridge."""
    inverse = torch.linalg.inv(x.T @ x + RIDGE * torch.eye(x.size(1)))
    weights: Tensor = -inverse / inverse.diagonal()
    return weights.fill_diagonal_(0.0)
