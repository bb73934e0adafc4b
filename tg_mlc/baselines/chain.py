"""Classifier chains, alone and as an ensemble: each label sees those before it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from typing_extensions import Self

from tg_mlc._options import check_count, check_share
from tg_mlc.baselines.baseline import Baseline, Features
from tg_mlc.baselines.linear import LinearBaseline, Loss, read_samples
from tg_mlc.metrics._inputs import ArrayLike, FloatArray


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
        seed (int, optional): Seed of the order of labels; :obj:`None` for that of the columns. (default: :obj:`0`)

    Attributes:
        order (numpy.ndarray): The order :math:`\pi` of the labels, after :meth:`fit`.

    Raises:
        ImportError: On use, if scikit-learn is not installed (extra ``data``).
    """

    def __init__(self, loss: Loss = "logistic", C: float = 10.0, *, seed: int | None = 0) -> None:
        self.loss: Loss = loss
        self.C = C
        self.seed = seed
        self.order: Any = None
        self._links: list[LinearBaseline] = []

    def fit(self, x: Features, y: ArrayLike) -> Self:
        """Fits one classifier after another; for the arguments and errors see :meth:`LinearBaseline.fit`."""
        x, (positive, known) = read_samples(x, y)
        num_labels = positive.shape[1]
        rng = None if self.seed is None else np.random.default_rng(self.seed)
        self.order = np.arange(num_labels) if rng is None else rng.permutation(num_labels)
        self._links = []
        for label in self.order:
            target = np.where(known[:, label], positive[:, label], np.nan)
            if np.isnan(target).all():
                target[:] = 0.0  # nobody knows it, and so it says nothing
            link = LinearBaseline(self.loss, self.C).fit(x, target[:, None])
            unknown = np.flatnonzero(np.isnan(target))
            if unknown.size:
                target[unknown] = link.predict_proba(x[unknown])[:, 0] > 0.5
            x = _beside(x, target)
            self._links.append(link)
        return self

    def predict_proba(self, x: Features) -> FloatArray:
        """Returns the scores :math:`(N, L)` along the chain.

        Raises:
            RuntimeError: If called before :meth:`fit`.
        """
        if not self._links:
            raise RuntimeError("Expected 'fit' to be called before 'predict_proba'")
        scores = np.empty((x.shape[0], len(self._links)))
        for label, link in zip(self.order, self._links, strict=True):
            scores[:, label] = link.predict_proba(x)[:, 0]
            x = _beside(x, scores[:, label] > 0.5)
        return scores


class ChainEnsemble(Baseline):
    """An ensemble of :class:`ClassifierChain`, each with its own order of labels and its own part of the samples, from
    the `"Classifier Chains for Multi-label Classification" <https://doi.org/10.1007/s10994-011-5256-5>`_ paper.

    Scores are the mean of the chains' scores; the paper takes that of their votes. Unknown labels are treated as in a
    chain.

    Args:
        num_chains (int, optional): The number of chains. (default: :obj:`10`)
        share (float, optional): The share of samples, drawn without replacement, that a chain is fitted to.
            (default: :obj:`0.63`, about that of a bootstrap sample, :math:`1 - 1 / e`)
        loss, C (optional): As in :class:`ClassifierChain`.
        seed (int, optional): Seed of orders and samples. (default: :obj:`0`)

    Raises:
        ValueError: If an option is out of range.
        ImportError: On use, if scikit-learn is not installed (extra ``data``).
    """

    def __init__(
        self, num_chains: int = 10, share: float = 0.63, loss: Loss = "logistic", C: float = 10.0, *, seed: int = 0
    ) -> None:
        check_count("num_chains", num_chains)
        check_share("share", share)
        self.num_chains = num_chains
        self.share = share
        self.loss: Loss = loss
        self.C = C
        self.seed = seed
        self.chains: list[ClassifierChain] = []

    def fit(self, x: Features, y: ArrayLike) -> Self:
        """Fits the chains; for the arguments and errors see :meth:`LinearBaseline.fit`."""
        x, (positive, known) = read_samples(x, y)
        targets = np.where(known, positive, np.nan)
        rng = np.random.default_rng(self.seed)
        self.chains = []
        for seed in rng.integers(2**31, size=self.num_chains).tolist():
            rows = np.sort(rng.permutation(len(targets))[: max(1, round(self.share * len(targets)))])
            self.chains.append(ClassifierChain(self.loss, self.C, seed=seed).fit(x[rows], targets[rows]))
        return self

    def predict_proba(self, x: Features) -> FloatArray:
        """Returns the mean scores :math:`(N, L)` of the chains.

        Raises:
            RuntimeError: If called before :meth:`fit`.
        """
        if not self.chains:
            raise RuntimeError("Expected 'fit' to be called before 'predict_proba'")
        return np.asarray(np.mean([chain.predict_proba(x) for chain in self.chains], axis=0))


def _beside(x: Features, column: Any) -> Features:
    column = np.asarray(column, dtype=x.dtype)[:, None]
    return sp.hstack([x, column], format="csr") if sp.issparse(x) else np.hstack([x, column])
