"""Multilayer perceptrons for all labels, optionally coherent with a hierarchy."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import expit
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from typing_extensions import Self

from tg_mlc._options import check_count, check_number
from tg_mlc.baselines.baseline import Features, Parts, Settings, TunableBaseline, read_array
from tg_mlc.graphs.hierarchy import coherent, coherent_loss, pairs_of
from tg_mlc.metrics._inputs import ArrayLike, FloatArray

#: Sizes of hidden layers and rates of dropout that :meth:`NetworkBaseline.tuned` compares.
DEFAULT_GRID: tuple[tuple[int, float], ...] = ((500, 0.7), (1000, 0.7), (500, 0.5))
_COUNTS = ("hidden", "epochs", "batch_size", "num_networks")
_SETTINGS = (*_COUNTS, "dropout", "learning_rate", "random_state")
_ROWS = 4096  # Number of rows per forward pass.


@dataclass(eq=False, repr=False)
class NetworkBaseline(TunableBaseline):
    r"""A perceptron of two hidden layers for all labels together, trained by Adam with dropout.

    With a hierarchy of labels, scores are coherent in training and prediction, as in the `"Coherent
    Hierarchical Multi-Label Classification Networks" <https://arxiv.org/abs/2010.10151>`_ paper
    (see :class:`~tg_mlc.nn.CoherentHead`). The paper uses batches of 4 and a learning rate of 1e-4.

    Args:
        hidden (int, optional): The size of hidden layers. (default: :obj:`500`)
        dropout (float, optional): The rate of dropout after hidden layers. (default: :obj:`0.7`)
        epochs (int, optional): The number of epochs. (default: :obj:`70`)
        learning_rate (float, optional): The learning rate of Adam. (default: :obj:`1.5e-3`)
        batch_size (int, optional): The number of samples per step. (default: :obj:`128`)
        num_networks (int, optional): Number of networks to average. (default: :obj:`1`)
        label_graph (LabelGraph, optional): The hierarchy of labels. (default: :obj:`None`)
        random_state (int, optional): Seed of weights and of training. (default: :obj:`0`)

    Attributes:
        networks_ (list[torch.nn.Sequential]): The networks, after :meth:`fit`.
        mean_, spread_ (torch.Tensor): Mean and deviation of inputs :math:`(F)`, after :meth:`fit`.
        pairs_ (torch.Tensor): Pairs :math:`(2, C)` of ancestor and descendant in a hierarchy.
    """

    hidden: int = 500
    dropout: float = 0.7
    _: KW_ONLY
    epochs: int = 70
    learning_rate: float = 1.5e-3
    batch_size: int = 128
    num_networks: int = 1
    label_graph: Any = None
    random_state: int | None = 0

    @classmethod
    def _settings(cls, grid: Any, **options: Any) -> Settings:
        grid = DEFAULT_GRID if grid is None else grid
        return [((size, rate), {"hidden": size, "dropout": rate}) for size, rate in grid]

    def fit(self, x: Features, y: ArrayLike) -> Self:
        """Trains the networks, as :meth:`Baseline.fit`."""
        inputs, target = self._prepare(x, y)
        self.networks_ = [self._train(inputs, target, i) for i in range(self.num_networks)]
        return self

    def held_out_scores(
        self, x: Features, y: ArrayLike, *, cv: Parts = 5, refit: bool = True
    ) -> FloatArray:
        """Returns held-out scores :math:`(N, L)` of training samples, as
        :meth:`Baseline.held_out_scores`. The fitted baseline averages the networks of all parts.
        """
        inputs, target = self._prepare(x, y)
        self.networks_, scores = [], np.full(target.shape, np.nan)
        for i, (train_rows, test_rows) in enumerate(self._parts(len(target), cv)):
            self.networks_.append(self._train(inputs[train_rows], target[train_rows], i))
            scores[test_rows] = self._logits(inputs[test_rows], self.networks_[-1:])
        return scores

    def seconds_per_epoch(self, x: Features, y: ArrayLike) -> float:
        """Returns the duration of an epoch over all samples, measured on a few steps."""
        inputs, target = self._prepare(x, y)
        size, before = 4 * self.batch_size, time.monotonic()
        self._train(inputs[:size], target[:size], 0, epochs=1)
        return (time.monotonic() - before) * len(target) / min(size, len(target))

    def decision_function(self, x: Features) -> FloatArray:
        """Returns logits :math:`(N, L)`."""
        self._check_fitted("decision_function")
        return self._logits(self._inputs(x), self.networks_)

    def predict_proba(self, x: Features) -> FloatArray:
        """Returns probabilities :math:`(N, L)`."""
        return np.asarray(expit(self.decision_function(x)))

    def _make_module(self) -> nn.Module:
        return _NetworkModule(self)

    def state_dict(self) -> dict[str, Any]:
        """Returns settings, the closure of the hierarchy, and weights."""
        self._check_fitted("state_dict")
        parameters = [network.parameters() for network in self.networks_]
        return {
            "settings": {name: getattr(self, name) for name in _SETTINGS},
            "search": [list(row) for row in self.search],
            "scale": [self.mean_, self.spread_],
            "pairs": None if self.pairs_ is None else self.pairs_.numpy(),
            "networks": [[weight.detach().numpy() for weight in weights] for weights in parameters],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Loads a state from :meth:`state_dict`. The label graph is not restored."""
        vars(self).update(state["settings"])
        self.search = [tuple(row) for row in state["search"]]
        self.mean_, self.spread_ = (torch.as_tensor(np.asarray(item)) for item in state["scale"])
        num_inputs, networks = len(self.mean_), state["networks"]
        num_labels = len(np.asarray(networks[0][-1]))
        self.pairs_ = None
        if state["pairs"] is not None:
            self.pairs_ = torch.from_numpy(read_array(state, "pairs", 2, None).copy())
            wrong = self.pairs_[(self.pairs_ < 0) | (self.pairs_ >= num_labels)].tolist()
            if wrong:
                raise ValueError(f"Expected 'pairs' of labels below {num_labels} (got {wrong[0]})")
        self.networks_ = []
        for weights in networks:
            network = self._make_network(num_inputs, num_labels).eval().requires_grad_(False)
            for parameter, weight in zip(network.parameters(), weights, strict=True):
                parameter.copy_(torch.as_tensor(np.asarray(weight)).view(parameter.shape))
            self.networks_.append(network)
        self.classes_, self.n_features_in_ = np.arange(num_labels), num_inputs
        return self

    def _prepare(self, x: Features, y: ArrayLike) -> tuple[Tensor, Tensor]:
        """Checks options, and returns inputs and targets (NaN for unknown)."""
        for name in _COUNTS:
            check_count(name, getattr(self, name))
        check_number("dropout", self.dropout, below=1.0)
        x, (positive, observed) = self._read(x, y)
        self.pairs_ = None if self.label_graph is None else pairs_of(self.label_graph)
        spread, self.mean_ = torch.std_mean(_dense(x), dim=0, correction=0)
        self.spread_ = torch.where(spread > 0, spread, 1.0)
        return self._inputs(x), torch.from_numpy(np.where(observed, positive, np.nan)).float()

    def _inputs(self, x: Features) -> Tensor:
        return (_dense(x) - self.mean_) / self.spread_

    def _make_network(self, num_inputs: int, num_labels: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        for size in (num_inputs, self.hidden):
            layers += [nn.Linear(size, self.hidden), nn.ReLU(), nn.Dropout(self.dropout)]
        return nn.Sequential(*layers, nn.Linear(self.hidden, num_labels))

    def _train(
        self, inputs: Tensor, target: Tensor, index: int, epochs: int | None = None
    ) -> nn.Sequential:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed((self.random_state or 0) + 1000 * index)
            network = self._make_network(inputs.size(1), target.size(1))
            parameters = network.parameters()
            optimizer = torch.optim.Adam(parameters, self.learning_rate, weight_decay=1e-5)
            for _ in range(epochs or self.epochs):
                for rows in torch.split(torch.randperm(len(inputs)), self.batch_size):
                    optimizer.zero_grad()
                    loss = self._loss(network(inputs[rows]), target[rows])
                    loss.backward()  # type: ignore[no-untyped-call]
                    optimizer.step()
        return network.eval().requires_grad_(False)

    def _loss(self, logits: Tensor, target: Tensor) -> Tensor:
        if self.pairs_ is not None:
            return coherent_loss(logits, target, self.pairs_)
        known = ~target.isnan()
        return binary_cross_entropy_with_logits(logits[known], target[known])

    @torch.inference_mode()
    def _logits(self, inputs: Tensor, networks: list[nn.Sequential]) -> FloatArray:
        chunks = torch.split(inputs, _ROWS)
        logits = torch.cat([_mean_logits(networks, chunk, self.pairs_) for chunk in chunks])
        return np.asarray(logits.double().numpy())


def _dense(x: Features) -> Tensor:
    return torch.from_numpy(np.asarray(x.toarray() if sp.issparse(x) else x, dtype=np.float32))


class _NetworkModule(nn.Module):
    mean: Tensor
    spread: Tensor
    pairs: Tensor | None

    def __init__(self, baseline: NetworkBaseline) -> None:
        super().__init__()
        self.networks = nn.ModuleList(deepcopy(baseline.networks_))
        self.register_buffer("mean", baseline.mean_.clone())
        self.register_buffer("spread", baseline.spread_.clone())
        self.register_buffer("pairs", None if baseline.pairs_ is None else baseline.pairs_.clone())

    def forward(self, x: Tensor) -> Tensor:
        return _mean_logits(self.networks, (x - self.mean) / self.spread, self.pairs)


def _mean_logits(networks: Iterable[nn.Module], inputs: Tensor, pairs: Tensor | None) -> Tensor:
    """Returns mean logits :math:`(N, L)` of networks, made coherent if there are pairs."""
    logits = torch.stack([network(inputs) for network in networks]).mean(dim=0)
    return logits if pairs is None else coherent(logits, pairs)
