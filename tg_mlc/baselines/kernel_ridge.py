"""Kernel ridge regression of all labels jointly, strong if words or features interact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from torch import Tensor, nn
from typing_extensions import Self

from tg_mlc.baselines.baseline import (
    Features,
    Parts,
    Settings,
    TunableBaseline,
    check_positive,
    float_tensor,
    read_array,
)
from tg_mlc.metrics._inputs import ArrayLike, FloatArray

#: Pairs of ``gamma`` and ``alpha`` that :meth:`KernelRidgeBaseline.tuned` compares, for inputs of
#: unit length.
DEFAULT_GRID = tuple(product((0.25, 0.5, 1.0), (0.03, 0.1, 0.3, 1.0)))
#: A square matrix of this size takes 7 GB; a fit needs two, or three with correlated labels.
MAX_SAMPLES = 30_000
#: Largest number of entries of training features, including zeros, in a module.
MAX_MODULE_NUMBERS = 2**27
_CHUNK = 1024  # Number of samples per product.
_Eigen = tuple[FloatArray, FloatArray]  # Eigenvalues and eigenvectors.


@dataclass(eq=False, repr=False)
class KernelRidgeBaseline(TunableBaseline):
    r"""Ridge regression of all labels jointly, with the Gaussian kernel
    :math:`k(\mathbf{x}, \mathbf{z}) = \exp(-\gamma \lVert \mathbf{x} - \mathbf{z} \rVert^2)`.

    .. math::
        \mathbf{A} = (\mathbf{K} + \alpha \mathbf{I})^{-1} (\mathbf{Y} - \bar{\mathbf{y}}), \qquad
        \mathbf{s}(\mathbf{x}) =
        \bar{\mathbf{y}} + \sum_n k(\mathbf{x}, \mathbf{x}_n) \, \mathbf{a}_n

    A single factorisation gives the solution for all labels, and leave-one-out scores
    :math:`y_{ni} - A_{ni} / [(\mathbf{K} + \alpha \mathbf{I})^{-1}]_{nn}` of training samples
    (Rasmussen & Williams 2006, *Gaussian Processes for Machine Learning*, equation 5.12). An
    unknown label (NaN) counts as its frequency.

    With :obj:`correlated`, labels learn from the correlations :math:`\mathbf{C}` of the columns of
    :math:`\mathbf{Y}`, by Kronecker's trick (Stegle et al. 2011, *Efficient inference in
    matrix-variate Gaussian models with iid observation noise*),

    .. math::
        \mathbf{K} \mathbf{A} (\mathbf{I} + \mathbf{C}) + \alpha \mathbf{A} =
        \mathbf{Y} - \bar{\mathbf{y}}, \qquad
        \mathbf{s}(\mathbf{x}) = \bar{\mathbf{y}} + \sum_n k(\mathbf{x}, \mathbf{x}_n) \,
        (\mathbf{I} + \mathbf{C}) \, \mathbf{a}_n

    This helps most if labels are rare. Held-out scores of a part use correlations of other parts:
    otherwise, in a sample with two rare labels, one would reveal the other.

    .. code-block:: python

        ridge = KernelRidgeBaseline.tuned(x_train, y_train, x_val, y_val)
        probabilities = ridge.predict_proba(x_test)

    Args:
        gamma (float, optional): How fast the kernel falls with distance. (default: :obj:`1.0`)
        alpha (float, optional): The strength of regularisation. (default: :obj:`1.0`)
        correlated (bool, optional): Whether to use correlations of labels. (default: :obj:`False`)

    Attributes:
        x (scipy.sparse.csr_array or numpy.ndarray): The training features :math:`(N, F)`.
        dual (numpy.ndarray): :math:`\mathbf{A}`, or :math:`\mathbf{A} (\mathbf{I} + \mathbf{C})`,
            of shape :math:`(N, L)`.
        mean (numpy.ndarray): The frequencies :math:`\bar{\mathbf{y}}` of shape :math:`(L)`.

    Raises:
        ValueError: On use, if :obj:`gamma` or :obj:`alpha` is not positive.
    """

    gamma: float = 1.0
    alpha: float = 1.0
    correlated: bool = False

    @classmethod
    def _settings(cls, grid: Any, **options: Any) -> Settings:
        grid = grid or DEFAULT_GRID
        return [((gamma, alpha), {"gamma": gamma, "alpha": alpha}) for gamma, alpha in grid]

    def fit(self, x: Features, y: ArrayLike) -> Self:
        """Fits all labels, as :meth:`Baseline.fit`.

        Raises:
            ValueError: If :obj:`alpha` is too small for similar samples, or there are more samples
                than :obj:`MAX_SAMPLES`.
        """
        if self.correlated:
            kernel, centred = self._read_kernel(x, y)
            self.dual = _regress_correlated(_eigen(kernel), centred, self.alpha, centred)
        else:
            self._factorise(x, y)
        return self

    def held_out_scores(
        self, x: Features, y: ArrayLike, *, cv: Parts = 5, refit: bool = True
    ) -> FloatArray:
        """Returns held-out scores :math:`(N, L)` of training samples, as
        :meth:`Baseline.held_out_scores`. Label frequencies come from all samples.
        """
        if not self.correlated:
            values, factor = self._factorise(x, y)
            inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=True, overwrite_c=True)
            return np.asarray(2 * (values - self.dual / np.diag(inverse)[:, None]) - 1)
        kernel, centred = self._read_kernel(x, y)
        eigen, scores = _eigen(kernel), np.full(centred.shape, np.nan)
        del kernel  # The decomposition has overwritten its memory.
        for train, test in self._parts(len(centred), cv):
            errors = _regress_correlated(eigen, centred, self.alpha, centred[train], left_out=True)
            scores[test] = (self.mean + centred - errors)[test]
        if refit:
            self.dual = _regress_correlated(eigen, centred, self.alpha, centred)
        return np.asarray(2 * scores - 1)

    def _read_kernel(self, x: Features, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Returns the kernel of the samples, and centred targets :math:`(N, L)`, 0 for unknown."""
        for name in ("gamma", "alpha"):
            check_positive(name, getattr(self, name))
        x, (positive, observed) = self._read(x, y)
        if len(observed) > MAX_SAMPLES:
            expected = f"Expected at most {MAX_SAMPLES} samples, because memory grows quadratically"
            hint = "fit to fewer samples, or use LinearBaseline"
            raise ValueError(f"{expected} (got {len(observed)}); {hint}")
        self.x = sp.csr_array(x) if sp.issparse(x) else x
        self.mean = (positive & observed).sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
        return self._kernel(self.x), np.where(observed, positive - self.mean, 0.0)

    def _factorise(self, x: Features, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Fits. Returns targets :math:`(N, L)`, with means for unknown, and the Cholesky factor."""
        kernel, centred = self._read_kernel(x, y)
        kernel.flat[:: len(kernel) + 1] = 1.0 + self.alpha
        try:
            # The transpose is in Fortran order, so LAPACK can overwrite it in place.
            options = {"lower": True, "overwrite_a": True, "check_finite": False}
            factor, _ = scipy.linalg.cho_factor(kernel.T, **options)
        except np.linalg.LinAlgError as error:
            expected = "Expected a larger 'alpha' for samples that are so alike"
            raise ValueError(f"{expected} (got {self.alpha})") from error
        self.dual = np.asarray(scipy.linalg.cho_solve((factor, True), centred, check_finite=False))
        return self.mean + centred, factor

    def predict_proba(self, x: Features) -> FloatArray:
        """Returns the scores :math:`(N, L)` of the regression, clipped to :math:`[0, 1]`."""
        return np.clip(self._regress(x), 0.0, 1.0)

    def decision_function(self, x: Features) -> FloatArray:
        """Returns scores :math:`(N, L)`, near -1 for absent and near 1 for present labels."""
        return 2 * self._regress(x) - 1

    def _make_module(self) -> nn.Module:
        num_samples, num_features = self.x.shape
        if num_samples * num_features > MAX_MODULE_NUMBERS:
            expected = f"Expected at most {MAX_MODULE_NUMBERS:,} numbers of training features"
            got = f"{num_samples:,} x {num_features:,}"
            raise ValueError(f"{expected} for kernel ridge regression as a module (got {got})")
        return _KernelRidgeModule(self)

    def state_dict(self) -> dict[str, Any]:
        """Returns settings, training features and coefficients (in single precision)."""
        self._check_fitted("state_dict")
        rows = sp.csr_array(self.x)
        return {
            "gamma": self.gamma,
            "alpha": self.alpha,
            "correlated": self.correlated,
            "sparse": bool(sp.issparse(self.x)),
            "shape": list(rows.shape),
            "values": rows.data,
            "indices": rows.indices,
            "indptr": rows.indptr,
            "dual": np.asarray(self.dual, dtype=np.float32),
            "mean": np.asarray(self.mean, dtype=np.float32),
            "search": [list(row) for row in self.search],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Takes settings, training features and coefficients from :meth:`state_dict`."""
        read_array(state, "gamma")
        self.gamma, self.alpha = state["gamma"], state["alpha"]
        self.correlated = bool(state["correlated"])
        arrays = tuple(read_array(state, name, None) for name in ("values", "indices", "indptr"))
        rows = sp.csr_array(arrays, shape=tuple(state["shape"]))
        rows.check_format()  # Products do not check indices before they read memory.
        self.x = rows if state["sparse"] else rows.toarray()
        self.mean = read_array(state, "mean", None)
        self.dual = read_array(state, "dual", rows.shape[0], len(self.mean))
        self.search = [(gamma, alpha, value) for gamma, alpha, value in state["search"]]
        self.classes_ = np.arange(len(self.mean))
        return self

    def _regress(self, x: Features) -> FloatArray:
        self._check_fitted("predict_proba")
        # Chunks limit the memory of the kernel.
        regressed = np.empty((x.shape[0], len(self.mean)))
        for start in range(0, len(regressed), _CHUNK):
            rows = slice(start, start + _CHUNK)
            regressed[rows] = self._kernel(x[rows]) @ self.dual
        return np.asarray(self.mean + regressed)

    def _kernel(self, x: Features) -> FloatArray:
        """Returns the kernel :math:`(N, N_{train})`, from squared distances in double precision."""
        # scikit-learn has this function, but its import takes longer than a prediction.
        dtype = np.result_type(x.dtype, self.x.dtype, np.float32)
        kernel = np.empty((x.shape[0], self.x.shape[0]), dtype)
        x = x.astype(np.float64)
        norms = _squared_norms(x)[:, None]
        for start in range(0, self.x.shape[0], _CHUNK):
            train_x = self.x[start : start + _CHUNK].astype(np.float64)
            squared = x @ train_x.T
            squared = squared.toarray() if sp.issparse(squared) else squared
            squared *= -2
            squared += norms
            squared += _squared_norms(train_x)
            np.maximum(squared, 0.0, out=kernel[:, start : start + _CHUNK])
        kernel *= -self.gamma
        return np.asarray(np.exp(kernel, out=kernel), dtype=np.float64)


class _KernelRidgeModule(nn.Module):
    # Squared distances are small differences of large numbers, and need double precision.
    x: Tensor
    squared_norms: Tensor
    dual: Tensor
    mean: Tensor

    def __init__(self, baseline: KernelRidgeBaseline) -> None:
        super().__init__()
        x = float_tensor(baseline.x.toarray() if sp.issparse(baseline.x) else baseline.x)
        self.gamma = baseline.gamma
        self.register_buffer("x", x)
        self.register_buffer("squared_norms", x.double().square().sum(dim=1))
        self.register_buffer("dual", float_tensor(baseline.dual).double())
        self.register_buffer("mean", float_tensor(baseline.mean))

    def forward(self, x: Tensor) -> Tensor:
        x = x.double()
        distances = x.square().sum(dim=1, keepdim=True) - 2 * x @ self.x.double().T  # [N, samples]
        distances = (distances + self.squared_norms).clamp(min=0)
        kernel = (-self.gamma * distances).exp()
        regressed = self.mean + kernel @ self.dual
        return 2 * regressed.float() - 1


def _squared_norms(x: Features) -> FloatArray:
    norms = x.multiply(x).sum(axis=1) if sp.issparse(x) else np.einsum("ij,ij->i", x, x)
    return np.asarray(norms).ravel()


def _eigen(matrix: FloatArray) -> _Eigen:
    """Returns the decomposition of a positive semidefinite matrix, and overwrites the matrix."""
    values, vectors = scipy.linalg.eigh(matrix.T, overwrite_a=True, check_finite=False)
    return np.maximum(values, 0.0), vectors


def _regress_correlated(
    eigen: _Eigen, y: FloatArray, alpha: float, reference: FloatArray, *, left_out: bool = False
) -> FloatArray:
    """Returns coefficients :math:`(N, L)`, or held-out errors; ``reference`` gives correlations."""
    kernel_values, u = eigen
    z = reference - reference.mean(axis=0)
    z /= np.maximum(np.linalg.norm(z, axis=0), 1e-12)
    # The rank of the correlations is at most the number of samples.
    label_values, v = _eigen(z.T @ z if len(z) >= z.shape[1] else z @ z.T)
    if len(z) < z.shape[1]:
        label_values, v = label_values[label_values > 1e-9], z.T @ v[:, label_values > 1e-9]
        v /= np.sqrt(label_values)

    def solve(target: FloatArray, label_values: FloatArray) -> FloatArray:
        inverse = 1 / (kernel_values[:, None] * label_values + alpha)
        dual = u @ (inverse * (u.T @ target))
        return np.asarray(dual / (u**2 @ inverse) if left_out else dual * label_values)

    projected = y @ v
    dual = np.asarray(solve(projected, 1 + label_values) @ v.T)
    return dual if v.shape[0] == v.shape[1] else dual + solve(y - projected @ v.T, np.ones(1))
