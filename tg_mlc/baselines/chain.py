"""Classifier chains, alone and as an ensemble: each label sees those before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from typing_extensions import Self

from tg_mlc._options import check_choice, check_count, check_share
from tg_mlc.baselines.baseline import Baseline, Features
from tg_mlc.baselines.linear import LinearBaseline, Loss
from tg_mlc.metrics._inputs import ArrayLike, FloatArray, IntArray


class ClassifierChain(Baseline):
    r"""A chain of linear classifiers, from the `"Classifier Chains for Multi-label Classification"
    <https://doi.org/10.1007/s10994-011-5256-5>`_ paper.

    .. math::
        s_{\pi(k)} = f_k(\mathbf{x}, y_{\pi(1)}, \ldots, y_{\pi(k - 1)})

    Each is fitted to the true labels before it, and predicts from those that were predicted. An unknown label (NaN) is
    left out where it is fitted, and for the labels after it counts as what its own classifier predicts.
    :class:`sklearn.multioutput.ClassifierChain` takes neither unknown labels nor labels of one class.

    Args:
        loss (str, optional): As in :class:`LinearBaseline`. (default: :obj:`"logistic"`)
        C (float, optional): As there. (default: :obj:`10.0`)
        order (str or Sequence[int], optional): The order :math:`\pi` of the labels: :obj:`"random"`, numbers of labels,
            or :obj:`None` for that of the columns. (default: :obj:`"random"`)
        random_state (int, optional): Seed of a random order. (default: :obj:`0`)

    Attributes:
        order_ (numpy.ndarray): The order, after :meth:`fit`.

    Raises:
        ValueError: On use, if an option is not allowed.
        ImportError: On use, if scikit-learn is not installed (extra ``data``).
    """

    order_: IntArray

    def __init__(
        self,
        loss: Loss = "logistic",
        C: float = 10.0,
        *,
        order: Literal["random"] | Sequence[int] | None = "random",
        random_state: int | None = 0,
    ) -> None:
        self.loss: Loss = loss
        self.C = C
        self.order = order
        self.random_state = random_state

    def fit(self, x: Features, y: ArrayLike) -> Self:
        """Fits one classifier after another; for the arguments and errors see :meth:`Baseline.fit`."""
        x, (positive, observed) = self._read(x, y)
        columns = np.arange(positive.shape[1])
        if isinstance(self.order, str):
            check_choice("order", self.order, ("random",))
            self.order_ = np.random.default_rng(self.random_state).permutation(columns)
        else:
            self.order_ = columns if self.order is None else np.asarray(self.order)
            if not np.array_equal(np.sort(self.order_), columns):
                raise ValueError(f"Expected 'order' to hold each of {len(columns)} labels once (got {self.order})")
        self._links = []
        for label in self.order_:
            target = np.where(observed[:, label], positive[:, label], np.nan)
            if np.isnan(target).all():
                target[:] = 0.0  # a label that is never observed tells the others nothing
            link = LinearBaseline(self.loss, self.C).fit(x, target[:, None])
            unknown = np.flatnonzero(np.isnan(target))
            if unknown.size:
                target[unknown] = link.predict_proba(x[unknown])[:, 0] > 0.5
            x = _beside(x, target)
            self._links.append(link)
        return self

    def predict_proba(self, x: Features) -> FloatArray:
        """Returns the scores :math:`(N, L)` along the chain."""
        self._check_fitted("predict_proba")
        scores = np.empty((x.shape[0], len(self._links)))
        for label, link in zip(self.order_, self._links, strict=True):
            scores[:, label] = link.predict_proba(x)[:, 0]
            x = _beside(x, scores[:, label] > 0.5)
        return scores


class ChainEnsemble(Baseline):
    """An ensemble of :class:`ClassifierChain`, each with its own order of labels and its own part of the samples, from
    the `"Classifier Chains for Multi-label Classification" <https://doi.org/10.1007/s10994-011-5256-5>`_ paper.

    Scores are the mean of the chains' scores; the paper takes that of their votes. Unknown labels are treated as in a
    chain.

    Args:
        n_estimators (int, optional): The number of chains. (default: :obj:`10`)
        max_samples (float, optional): The share of samples, drawn without replacement, that a chain is fitted to.
            (default: :obj:`0.63`, about that of a bootstrap sample, :math:`1 - 1 / e`)
        loss, C (optional): As in :class:`ClassifierChain`. (default: :obj:`"logistic"` and :obj:`10.0`)
        random_state (int, optional): Seed of orders and samples. (default: :obj:`0`)

    Attributes:
        estimators_ (list[ClassifierChain]): The chains, after :meth:`fit`.

    Raises:
        ValueError: On use, if an option is out of range.
        ImportError: On use, if scikit-learn is not installed (extra ``data``).
    """

    estimators_: list[ClassifierChain]

    def __init__(
        self,
        n_estimators: int = 10,
        max_samples: float = 0.63,
        loss: Loss = "logistic",
        C: float = 10.0,
        *,
        random_state: int | None = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.loss: Loss = loss
        self.C = C
        self.random_state = random_state

    def fit(self, x: Features, y: ArrayLike) -> Self:
        """Fits the chains; for the arguments and errors see :meth:`Baseline.fit`."""
        check_count("n_estimators", self.n_estimators)
        check_share("max_samples", self.max_samples)
        x, (positive, observed) = self._read(x, y)
        targets = np.where(observed, positive, np.nan)
        rng = np.random.default_rng(self.random_state)
        self.estimators_ = []
        for seed in rng.integers(2**31, size=self.n_estimators).tolist():
            rows = np.sort(rng.permutation(len(targets))[: max(1, round(self.max_samples * len(targets)))])
            chain = ClassifierChain(self.loss, self.C, random_state=seed)
            self.estimators_.append(chain.fit(x[rows], targets[rows]))
        return self

    def predict_proba(self, x: Features) -> FloatArray:
        """Returns the mean scores :math:`(N, L)` of the chains."""
        self._check_fitted("predict_proba")
        return np.asarray(np.mean([chain.predict_proba(x) for chain in self.estimators_], axis=0))


def _beside(x: Features, column: Any) -> Features:
    column = np.asarray(column, dtype=x.dtype)[:, None]
    return sp.hstack([x, column], format="csr") if sp.issparse(x) else np.hstack([x, column])
