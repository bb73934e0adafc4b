"""Predictors of the next label set without a network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor
from typing_extensions import Self

from tg_mlc._optional import require
from tg_mlc._options import check_count, check_number, check_share
from tg_mlc.sequences.dataset import NextSetDataset, Targets, ranges


class NextSetBaseline(ABC):
    """A predictor of the labels of target events."""

    #: The fraction of training targets that have each label, after :meth:`fit`.
    frequency: np.ndarray

    def fit(self, dataset: NextSetDataset, targets: Targets) -> Self:
        """Fits to training targets: indices of events of a data set."""
        self.frequency = np.asarray(dataset.y[np.asarray(targets)].mean(axis=0)).ravel()
        return self

    @abstractmethod
    def predict_proba(self, dataset: NextSetDataset, targets: Targets) -> np.ndarray:
        """Returns scores :math:`(N, L)` in [0, 1] of targets, which may belong to new entities."""


class GlobalFrequency(NextSetBaseline):
    """Scores every target by the fraction of training targets with each label."""

    def predict_proba(self, dataset: NextSetDataset, targets: Targets) -> np.ndarray:
        return np.tile(self.frequency, (len(targets), 1))


class LastSet(NextSetBaseline):
    """Ranks labels of the entity's last set above all others, and ties by overall frequency."""

    def predict_proba(self, dataset: NextSetDataset, targets: Targets) -> np.ndarray:
        last_sets = past_events(dataset, targets, window_size=1) @ dataset.y
        return np.asarray((last_sets.toarray() + self.frequency) / 2)


@dataclass(eq=False)
class PersonalFrequency(NextSetBaseline):
    r"""The fraction of the entity's events with each label, smoothed towards the overall frequency.

    .. math::
        s_{t,l} = \frac{\sum_{e < t} \gamma^{t - 1 - e} y_{e,l} + \kappa f_l}
        {\sum_{e < t} \gamma^{t - 1 - e} + \kappa}

    An entity without history gets the frequencies :math:`f_l` of the training targets.

    Args:
        decay (float, optional): The weight :math:`\gamma` of an event relative to the next one.
            (default: :obj:`1.0`)
        backoff (float, optional): The weight :math:`\kappa > 0` of the frequencies, in events.
            (default: :obj:`1.0`)
    """

    decay: float = 1.0
    backoff: float = 1.0

    def __post_init__(self) -> None:
        check_share("decay", self.decay)
        check_number("backoff", self.backoff)
        if self.backoff == 0:
            raise ValueError("Expected 'backoff' to be above 0 (got 0); entities may lack history")

    def predict_proba(self, dataset: NextSetDataset, targets: Targets) -> np.ndarray:
        past = past_events(dataset, targets, decay=self.decay)
        counts = (past @ dataset.y).toarray() + self.backoff * self.frequency
        return np.asarray(counts / (past.sum(axis=1)[:, None] + self.backoff))


def past_events(
    dataset: NextSetDataset, targets: Targets, window_size: int | None = None, decay: float = 1.0
) -> sp.csr_array:
    r"""Returns weights :math:`(N, E)` of the :obj:`window_size` events (all if :obj:`None`) before
    each target: 1 for the last event; for others, :obj:`decay` times the next event's weight.
    """
    target = np.asarray(targets)
    first = dataset.ptr[dataset.entity_of[target]]
    start = first if window_size is None else np.maximum(first, target - window_size)
    row, event = ranges(start, target)
    indptr = np.concatenate([[0], np.cumsum(target - start)])
    weight = decay ** (target[row] - 1.0 - event)
    return sp.csr_array((weight, event, indptr), shape=(len(target), len(dataset)))


@dataclass(eq=False)
class TIFUKNN(NextSetBaseline):
    r"""Label frequencies of the entity and of its nearest neighbours, weighted by groups of events,
    from the `"Modeling Personalized Item Frequency Information for Next-basket
    Recommendation" <https://arxiv.org/abs/2006.00556>`_ paper.

    .. math::
        \mathbf{u} = \frac{\sum_{e < t} w_e \, \mathbf{y}_e}{\sum_{e < t} w_e}, \qquad
        w_e = \frac{r_g^{g(e)} \, r_b^{j(e)}}{|\mathcal{E}_{g(e)}|}, \qquad
        \mathbf{s} = \alpha \, \mathbf{u} +
        \frac{1 - \alpha}{k} \sum_{i \in \mathcal{N}_k} \mathbf{u}_i

    Groups :math:`g`, of events :math:`\mathcal{E}_g`, and events :math:`j` of a group are counted
    backwards from the target. The paper divides by the number of groups. We divide by the sum of
    weights, so that scores of short and long histories are comparable. Neighbours are the histories
    of entities at the end of training.

    Args:
        num_neighbors (int, optional): The largest number :math:`k`. (default: :obj:`300`)
        group_size (int, optional): The number of events of a group. (default: :obj:`7`)
        within_decay (float, optional): The weight :math:`r_b` of an event relative to the next one.
            (default: :obj:`0.9`)
        group_decay (float, optional): The weight :math:`r_g` of a group relative to the next one.
            (default: :obj:`0.7`; all defaults are the paper's on Ta-Feng)
        alpha (float, optional): The weight of the entity's own history. (default: :obj:`0.7`)

    Raises:
        ImportError: On use, if scikit-learn is not installed (extra ``data``).
    """

    num_neighbors: int = 300
    group_size: int = 7
    within_decay: float = 0.9
    group_decay: float = 0.7
    alpha: float = 0.7

    def __post_init__(self) -> None:
        for name in ("num_neighbors", "group_size"):
            check_count(name, getattr(self, name))
        for name in ("within_decay", "group_decay", "alpha"):
            check_share(name, getattr(self, name))

    def fit(self, dataset: NextSetDataset, targets: Targets) -> Self:
        super().fit(dataset, targets)
        stop = np.zeros(len(dataset.ptr) - 1, dtype=np.int64)
        target = np.sort(np.asarray(targets))
        stop[dataset.entity_of[target]] = target + 1
        entity = np.flatnonzero(stop)
        self._histories = self._vectors(dataset, stop[entity], entity)
        return self

    def predict_proba(self, dataset: NextSetDataset, targets: Targets) -> np.ndarray:
        target = np.asarray(targets)
        history = self._vectors(dataset, target, dataset.entity_of[target])
        k = min(self.num_neighbors, len(self._histories))
        sklearn = require("sklearn.neighbors", extra="data")
        neighbors = sklearn.NearestNeighbors(n_neighbors=k, algorithm="brute")
        nearest = neighbors.fit(self._histories).kneighbors_graph(history)  # 1 for each neighbour
        return np.asarray(self.alpha * history + (1 - self.alpha) / k * (nearest @ self._histories))

    def _vectors(self, dataset: NextSetDataset, stop: np.ndarray, entity: np.ndarray) -> np.ndarray:
        start = dataset.ptr[entity]
        row, event = ranges(start, stop)
        group, rank = np.divmod(stop[row] - 1 - event, self.group_size)
        size = np.minimum(self.group_size, (stop - start)[row] - group * self.group_size)
        weight = self.within_decay**rank * self.group_decay**group / size
        weight /= np.bincount(row, weight, len(stop))[row]
        past = sp.csr_array((weight, (row, event)), shape=(len(stop), len(dataset)))
        return np.asarray((past @ dataset.y).toarray())


@dataclass(eq=False)
class LogisticHistory(NextSetBaseline):
    r"""Logistic regression of the next labels on square roots of label frequencies, weighted over
    the entity's last :obj:`window_size` events.

    All labels are fitted jointly by L-BFGS. The biases start at the logits of label frequencies.

    Args:
        window_size (int, optional): The number of events; :obj:`None` for all.
            (default: :obj:`None`)
        decay (float, optional): The weight of an event relative to the next one.
            (default: :obj:`0.95`)
        weight_decay (float, optional): Half of this factor times the sum of squared weights is
            added to the loss, a sum over samples and labels. (default: :obj:`3.0`)
        max_iter (int, optional): The largest number of iterations. (default: :obj:`50`)
    """

    window_size: int | None = None
    decay: float = 0.95
    weight_decay: float = 3.0
    max_iter: int = 50

    def __post_init__(self) -> None:
        check_count("window_size", self.window_size, or_none=True)
        check_share("decay", self.decay)
        check_number("weight_decay", self.weight_decay)
        check_count("max_iter", self.max_iter)

    def fit(self, dataset: NextSetDataset, targets: Targets) -> Self:
        super().fit(dataset, targets)
        x = self._features(dataset, targets)
        y = torch.from_numpy(dataset.y[np.asarray(targets)].toarray())
        weight = torch.zeros(x.shape[1], y.shape[1], requires_grad=True)
        bias = torch.logit(y.mean(dim=0), eps=1e-6).requires_grad_()
        parameters, search = [weight, bias], "strong_wolfe"
        optimizer = torch.optim.LBFGS(parameters, max_iter=self.max_iter, line_search_fn=search)

        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = F.binary_cross_entropy_with_logits(x @ weight + bias, y, reduction="sum")
            loss = (loss + self.weight_decay / 2 * weight.square().sum()) / len(y)
            loss.backward()  # type: ignore[no-untyped-call]
            return loss

        optimizer.step(closure)  # type: ignore[no-untyped-call]
        self._weight, self._bias = weight.detach(), bias.detach()
        return self

    def predict_proba(self, dataset: NextSetDataset, targets: Targets) -> np.ndarray:
        logits = self._features(dataset, targets) @ self._weight + self._bias
        return logits.sigmoid().numpy()

    def _features(self, dataset: NextSetDataset, targets: Targets) -> Tensor:
        past = past_events(dataset, targets, self.window_size, self.decay)
        total = np.maximum(past.sum(axis=1), 1.0)  # The sum is below 1 only without history.
        roots = np.sqrt((past @ dataset.y).toarray() / total[:, None])
        return torch.from_numpy(roots.astype(np.float32))
