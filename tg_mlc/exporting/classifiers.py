"""Base classifiers as modules of plain operators: matrix products, and steps from node to node of trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from tg_mlc.baselines import ForestBaseline, KernelRidgeBaseline, LinearBaseline, NetworkBaseline
from tg_mlc.baselines.forest import Trees
from tg_mlc.graphs.hierarchy import coherent
from tg_mlc.stacking.classifiers import CLOSEST, LARGEST, StackedClassifier

#: Numbers of the training samples of a kernel, which a program holds with all their zeros.
MAX_NUMBERS = 2**27


def as_module(name: str, stacked: StackedClassifier) -> nn.Module:
    """A base classifier as a module, from features :math:`(B, F)` to scores :math:`(B, L)`.

    Args:
        name (str): Its kind, for messages.
        stacked (StackedClassifier): The classifier.

    Raises:
        ValueError: If it cannot be exported, which the message says by its name.
    """
    classifier: Any = stacked.classifier
    if isinstance(classifier, LinearBaseline):
        return _Read(stacked, _Linear(classifier))
    if isinstance(classifier, ForestBaseline):
        return _Read(stacked, _Forest(classifier))
    if isinstance(classifier, NetworkBaseline):
        return _Read(stacked, _Network(classifier))
    if isinstance(classifier, KernelRidgeBaseline):
        if np.prod(classifier.x.shape) <= MAX_NUMBERS:
            return _Read(stacked, _KernelRidge(classifier))
        got = f"'{name}', kernel ridge regression with {classifier.x.shape[0]:,} x {classifier.x.shape[1]:,} numbers"
    else:
        got = f"'{name}', a {type(classifier).__name__}"
    raise ValueError(
        f"Expected base classifiers that can be exported (got {got}); pass base_scores='input' to export the network "
        f"alone, which then takes their scores"
    )


class _Read(nn.Module):
    """A classifier, and how :func:`~tg_mlc.stacking.classifiers.read_decisions` makes base scores of its decisions."""

    frequency: Tensor | None

    def __init__(self, stacked: StackedClassifier, classifier: nn.Module) -> None:
        super().__init__()
        self.classifier, self.reading, self.scale = classifier, stacked.reading, stacked.scale
        frequency = None if stacked.frequency is None else _numbers(stacked.frequency)
        self.register_buffer("frequency", frequency)

    def forward(self, x: Tensor) -> Tensor:
        decisions: Tensor = self.classifier(x)
        if self.reading in ("margin", "logit"):
            factor = 2.0 if self.reading == "margin" else 1.0
            decisions = (decisions * factor).clamp(-LARGEST, LARGEST)
        elif self.reading != "raw":
            p = (decisions + 1) / 2
            if self.frequency is None:
                decisions = torch.asinh(p / (2 * CLOSEST)) - torch.asinh((1 - p) / (2 * CLOSEST))
            else:
                spread = (self.frequency * (1 - self.frequency)).sqrt()
                decisions = torch.where(spread > 0, (p - self.frequency) / spread.where(spread > 0, 1.0), 0.0)
        return decisions * self.scale


class _Linear(nn.Module):
    def __init__(self, classifier: LinearBaseline) -> None:
        super().__init__()
        self.register_buffer("weight", _numbers(classifier.weight))
        self.register_buffer("bias", _numbers(classifier.bias))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.get_buffer("weight") + self.get_buffer("bias")


class _KernelRidge(nn.Module):
    """In double precision, because squared distances are small differences of large numbers."""

    def __init__(self, classifier: KernelRidgeBaseline) -> None:
        super().__init__()
        rows: Any = classifier.x
        x = _numbers(rows.toarray() if hasattr(rows, "toarray") else rows)
        self.gamma = classifier.gamma
        self.register_buffer("x", x)
        self.register_buffer("norms", x.double().square().sum(dim=1))
        self.register_buffer("dual", _numbers(classifier.dual).double())
        self.register_buffer("mean", _numbers(classifier.mean))

    def forward(self, x: Tensor) -> Tensor:
        x = x.double()
        squared = x.square().sum(dim=1, keepdim=True) - 2 * x @ self.get_buffer("x").double().T
        kernel = (-self.gamma * (squared + self.get_buffer("norms")).clamp(min=0)).exp()
        return 2 * (self.get_buffer("mean") + kernel @ self.get_buffer("dual")).float() - 1


class _Network(nn.Module):
    def __init__(self, classifier: NetworkBaseline) -> None:
        super().__init__()
        self.networks = nn.ModuleList(classifier.networks_)
        self.register_buffer("mean", classifier.mean_)
        self.register_buffer("spread", classifier.spread_)
        self.register_buffer("pairs", classifier.pairs_)

    def forward(self, x: Tensor) -> Tensor:
        inputs = (x - self.get_buffer("mean")) / self.get_buffer("spread")
        logits = torch.stack([network(inputs) for network in self.networks]).mean(dim=0)
        return logits if self.pairs is None else coherent(logits, self.get_buffer("pairs"))


class _Forest(nn.Module):
    def __init__(self, classifier: ForestBaseline) -> None:
        super().__init__()
        self.register_buffer("frequency", _numbers(classifier._frequency))
        self.forests = nn.ModuleList(map(_Trees, classifier._forests))

    def forward(self, x: Tensor) -> Tensor:
        scores = self.get_buffer("frequency").expand(x.size(0), -1)
        for trees in self.forests:
            scores = scores.index_copy(1, trees.get_buffer("labels"), trees(x))
        return 2 * scores - 1


class _Trees(nn.Module):
    """Every tree takes as many steps as the deepest has; a leaf leads to itself."""

    def __init__(self, trees: Trees) -> None:
        super().__init__()
        left, right, leaf = np.asarray(trees.left, np.int64), np.asarray(trees.right, np.int64), trees.left < 0
        itself = np.arange(len(left))
        threshold = trees.threshold.astype(np.float32)
        # Numbers in single precision are above a threshold exactly if they are above the next number below it.
        threshold = np.where(threshold > trees.threshold, np.nextafter(threshold, np.float32(-np.inf)), threshold)
        rows = trees.probability.toarray() if sp.issparse(trees.probability) else trees.probability
        arrays: dict[str, Any] = {
            "labels": trees.labels.astype(np.int64),
            "roots": trees.roots.astype(np.int64),
            "feature": np.where(leaf, 0, trees.feature).astype(np.int64),
            "threshold": threshold,
            "left": np.where(leaf, itself, left),
            "right": np.where(leaf, itself, right),
            "row": np.where(leaf, right, 0),
            "probability": rows.astype(np.float32),
        }
        for name, array in arrays.items():
            self.register_buffer(name, torch.from_numpy(np.array(array)))
        level, self.depth = arrays["roots"], 0
        while not leaf[level].all():
            inner = level[~leaf[level]]
            level, self.depth = np.concatenate([left[inner], right[inner]]), self.depth + 1

    def forward(self, x: Tensor) -> Tensor:
        roots = self.get_buffer("roots")
        node = roots.expand(x.size(0), -1)
        for _ in range(self.depth):
            above = x.gather(1, self.get_buffer("feature")[node]) > self.get_buffer("threshold")[node]
            node = torch.where(above, self.get_buffer("right")[node], self.get_buffer("left")[node])
        return self.get_buffer("probability")[self.get_buffer("row")[node]].mean(dim=1)


def _numbers(x: Any) -> Tensor:
    return torch.from_numpy(np.array(x, dtype=np.float32))
