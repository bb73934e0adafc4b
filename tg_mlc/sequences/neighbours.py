"""Frequencies of labels among similar entities, and after similar labels."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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

    Args:
        profiles (torch.Tensor): The shares of training entities.

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
        of_folds = [_regressions(in_units[fold != part]) for part in range(NUM_FOLDS)]
        self.register_buffer("between_labels", torch.stack(of_folds))

    @torch.no_grad()
    def forward(self, share: Tensor, entity: Tensor) -> Tensor:
        """Returns what the neighbours say."""
        itself = torch.arange(self.profiles.size(0), device=entity.device) == entity.unsqueeze(1)
        in_units = self._in_units(share)
        told = [
            *(self._similar(*each, itself) for each in zip((in_units, share), self.keys, SHARPNESS, strict=True)),
            *self._regressed(in_units, entity % NUM_FOLDS),
        ]
        return torch.stack(told, dim=-1)

    def _similar(self, query: Tensor, key: Tensor, sharpness: float, itself: Tensor) -> Tensor:
        likeness = F.normalize(query, dim=1) @ key.T
        weight = (sharpness * likeness).masked_fill(itself, -torch.inf).softmax(dim=1)
        return log_share(weight.nan_to_num(0.0) @ self.profiles)  # an only entity has no neighbours

    def _regressed(self, in_units: Tensor, fold: Tensor) -> tuple[Tensor, ...]:
        found = in_units.new_empty(len(in_units), self.between_labels.size(2))
        for part, weights in enumerate(self.between_labels):
            found[fold == part] = in_units[fold == part] @ weights
        return found.chunk(len(RIDGES), dim=1)

    def _in_units(self, share: Tensor) -> Tensor:
        return (share.sqrt() - self.mean.sqrt()) / self.mean.sqrt().clamp(min=RAREST).sqrt()


def log_share(share: Tensor) -> Tensor:
    """The logarithm of a share, that of one in a thousand for zero."""
    return (share + 1e-3).log()


def _regressions(x: Tensor) -> Tensor:
    """The weights ``[L, ridges * L]`` of all labels but itself for each, side by side for all ridges."""
    gram, eye = x.T @ x, torch.eye(x.size(1))
    return torch.cat([_without_itself(torch.linalg.inv(gram + ridge * eye)) for ridge in RIDGES], dim=1)


def _without_itself(inverse: Tensor) -> Tensor:
    weights: Tensor = -inverse / inverse.diagonal()
    return weights.fill_diagonal_(0.0)
