"""Scalers of vectors and weights of words, for linear layers and kernels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from typing_extensions import Self

from tg_mlc._optional import require
from tg_mlc._options import check_choice
from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.data.bags import bag_of_words, with_attribute, with_words
from tg_mlc.inputs.preprocessor import Preprocessor


class LogCounts(nn.Module):
    r"""Takes the logarithm of counts :math:`(B, F)` and scales every vector to the same length.

    .. math::
        \mathbf{x}^{\prime} = \frac{\sqrt{F}}{2} \cdot
        \frac{\log(1 + \mathbf{x})}{\lVert \log(1 + \mathbf{x}) \rVert}
    """

    def fit(self, x: Tensor) -> LogCounts:
        """Learns nothing, because each vector is scaled on its own."""
        return self

    def forward(self, x: Tensor) -> Tensor:
        unit: Tensor = nn.functional.normalize(x.log1p(), dim=-1)
        return unit * (0.5 * math.sqrt(x.size(-1)))


class StandardScaler(nn.Module):
    r"""Shifts and scales each entry of vectors :math:`(B, F)` to mean 0 and variance 1 among
    training vectors, and all vectors to a mean square length of 1. Entries that are constant in
    training are only shifted. Missing entries (NaN) raise :class:`ValueError`.

    .. math::
        x^{\prime}_f = \frac{1}{\sqrt{F}} \frac{x_f - \mu_f}{\sigma_f}
    """

    mean: Tensor
    spread: Tensor

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(in_channels))
        self.register_buffer("spread", torch.ones(in_channels))

    @torch.no_grad()
    def fit(self, x: Tensor) -> StandardScaler:
        """Computes mean and spread of training vectors :math:`(N, F)`."""
        spread, mean = torch.std_mean(_check_complete(x).double(), dim=0, correction=0)
        self.mean.copy_(mean)
        self.spread.copy_(torch.where(x.amax(dim=0) > x.amin(dim=0), spread, 1.0))
        return self

    def forward(self, x: Tensor) -> Tensor:
        return (_check_complete(x) - self.mean) / (self.spread * math.sqrt(x.size(1)))


class QuantileScaler(nn.Module):
    r"""Maps each entry to the standard normal quantile of its rank among training vectors, so that
    neither units nor outliers matter. Entries that are missing, or constant in training, become
    zero.

    .. math::
        x^{\prime}_f = \Phi^{-1} \big( \hat{F}_f(x_f) \big)

    The quantiles are buffers, which are saved with the weights of a model.

    Args:
        in_channels (int): Size :math:`F` of a vector.
        num_quantiles (int, optional): Number of quantiles of an entry. (default: :obj:`200`)

    Shapes:
        - **input:** vectors :math:`(B, F)`
        - **output:** :math:`(B, F)`
    """

    quantiles: Tensor
    varies: Tensor
    scaled: Tensor  # Normal quantiles, by the sum of the left and right rank.

    def __init__(self, in_channels: int, num_quantiles: int = 200) -> None:
        super().__init__()
        # Quantiles are NaN until they are fitted.
        self.register_buffer("quantiles", torch.full((in_channels, num_quantiles), torch.nan))
        self.register_buffer("varies", torch.zeros(in_channels, dtype=torch.bool))
        # Ranks stay half a step inside the range, where the normal quantile is finite.
        rank = (torch.arange(2 * num_quantiles + 1) / 2).clamp(0.5, num_quantiles - 0.5)
        scaled = torch.special.ndtri(rank / num_quantiles)
        self.register_buffer("scaled", scaled, persistent=False)

    @torch.no_grad()
    def fit(self, x: Tensor) -> QuantileScaler:
        """Takes the quantiles from training vectors :math:`(N, F)`."""
        num_entries, num_quantiles = self.quantiles.shape
        if x.dim() != 2 or x.size(1) != num_entries or x.size(0) == 0:
            expected = f"training vectors of shape [N, {num_entries}]"
            raise ValueError(f"Expected {expected} (got {list(x.shape)})")
        levels = torch.linspace(0, 1, num_quantiles, dtype=torch.float64, device=x.device)
        quantiles = x.double().nanquantile(levels, dim=0).t()
        self.varies.copy_(quantiles[:, -1] > quantiles[:, 0])  # False if all entries are missing.
        self.quantiles.copy_(quantiles.nan_to_num())
        return self

    def forward(self, x: Tensor) -> Tensor:
        if not torch.compiler.is_compiling() and self.quantiles[:1, :1].isnan().any():
            hint = "call its 'fit', or load weights"
            raise ValueError(f"Expected a scaler that knows quantiles (got a new one); {hint}")
        if x.dim() != 2 or x.size(1) != self.quantiles.size(0):
            expected = f"vectors to scale of shape [N, {self.quantiles.size(0)}]"
            raise ValueError(f"Expected {expected} (got {list(x.shape)})")
        # contiguous() would specialise compiled graphs on a size of 1.
        columns = x.t().clone(memory_format=torch.contiguous_format)
        left_rank = torch.searchsorted(self.quantiles, columns, right=False)
        right_rank = torch.searchsorted(self.quantiles, columns, right=True)
        is_zero = ~self.varies.unsqueeze(-1) | columns.isnan()
        return self.scaled[left_rank + right_rank].masked_fill(is_zero, 0.0).t().to(x.dtype)


def make_scaler(method: str, size: int) -> StandardScaler | QuantileScaler:
    """Returns an unfitted scaler for vectors of :obj:`size` entries."""
    return QuantileScaler(size) if method == "quantile" else StandardScaler(size)


class Scale(Preprocessor):
    """Scales vectors for linear and kernel classifiers.

    Args:
        method (str, optional): :obj:`"standard"` for :class:`StandardScaler`, or :obj:`"quantile"`
            for :class:`QuantileScaler`, which accepts missing entries. (default: :obj:`"standard"`)

    Raises:
        ValueError: If :obj:`method` is unknown; on use, if an entry is missing, unless the
            method is :obj:`"quantile"`.
    """

    scaler: StandardScaler | QuantileScaler

    def __init__(self, method: Literal["standard", "quantile"] = "standard") -> None:
        check_choice("method", method, ("standard", "quantile"))
        self.method = method

    def fit(self, dataset: MultiLabelDataset, split: Split) -> Self:
        x = dataset[split.train].rows("x")
        self.scaler = make_scaler(self.method, x.size(1)).fit(x)
        return self

    @property
    def unknown(self) -> Tensor | float:
        return math.nan if isinstance(self.scaler, QuantileScaler) else self.scaler.mean

    def transform(self, raw: MultiLabelDataset) -> MultiLabelDataset:
        return with_attribute(raw, "x", self.scaler(raw.rows("x")))

    def unreadable(self, raw: MultiLabelDataset) -> dict[int, str]:
        if self.method == "quantile" or not raw._data.x.isnan().any():
            return {}
        rows = raw.rows("x").isnan().any(dim=1).nonzero()[:, 0].tolist()
        return dict.fromkeys(rows, f"{_EXPECTED} (got NaN in this one); {_FILL}")

    def state_dict(self) -> dict[str, Any]:
        return {"method": self.method, "scaler": self.scaler.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        self.method, tensors = state["method"], state["scaler"]
        self.scaler = make_scaler(self.method, len(next(iter(tensors.values()))))
        self.scaler.load_state_dict(tensors)
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.method!r})"


_EXPECTED = "Expected vectors without NaN"
_FILL = "fill them before, or take Scale('quantile')"


def _check_complete(x: Tensor) -> Tensor:
    if missing := int(x.isnan().any(dim=1).sum()):
        raise ValueError(f"{_EXPECTED} (got NaN in {missing} of {len(x)} samples); {_FILL}")
    return x


_NO_COUNTS = (
    "Expected whole numbers of words, none of them negative, as in the training documents "
    "(got others); count words, or learn from documents with weights"
)


class TfIdf(Preprocessor):
    r"""Weights the words of documents by how often they occur in them and how rare they are in
    training documents.

    .. math::
        x_w = (1 + \log n_w) \left( 1 + \log \frac{1 + N}{1 + N_w} \right)

    with :math:`n_w` occurrences of the word in the document, and :math:`N_w` of :math:`N` training
    documents that contain it; documents are scaled to unit length. This is
    :class:`sklearn.feature_extraction.text.TfidfTransformer` with :obj:`sublinear_tf=True`, except
    that words outside all training documents are dropped: nothing can be learned about them, and
    as the rarest words they would have the largest weights of a document.

    If training documents have weights of words that are not whole numbers, the weights are used
    as they are, and documents are only scaled to unit length.

    .. code-block:: python

        weighted = TfIdf().fit_transform(dataset, split)  # bags or sequences become bags
        weighted = TfIdf().learn(counts[split.train]).weigh(counts)  # the same for matrices

    Raises:
        ImportError: On use, if scikit-learn is not installed (extra ``data``).
    """

    #: The second factor for every word, of shape :math:`(V)`; 0 drops a word.
    idf: np.ndarray
    counts: bool  #: Whether training documents had word counts instead of weights.

    def fit(self, dataset: MultiLabelDataset, split: Split) -> Self:
        return self.learn(bag_of_words(dataset[split.train]))

    def transform(self, raw: MultiLabelDataset) -> MultiLabelDataset:
        return with_words(raw, self.weigh(bag_of_words(raw)))

    def unreadable(self, raw: MultiLabelDataset) -> dict[int, str]:
        if not self.counts or "weight" not in raw[0]:
            return {}
        words = bag_of_words(raw)
        is_count = _are_counts(words)
        row = np.repeat(np.arange(words.shape[0]), np.diff(words.indptr))
        return dict.fromkeys(np.unique(row[~is_count]).tolist(), _NO_COUNTS)

    def learn(self, words: Any) -> Self:
        """Counts the documents that contain each word.

        Args:
            words (scipy.sparse matrix or numpy.ndarray): How often each word occurs in each
                training document, or its weight, :math:`(N, V)`.
        """
        words = sp.csr_matrix(words)
        if not words.shape[0]:
            raise ValueError("Expected 'words' of at least one document (got none)")
        if not words.shape[1]:
            got = f"{words.shape[0]} documents without any"
            hint = "write emoji out as words, or pass other inputs"
            raise ValueError(f"Expected training documents with words (got {got}); {hint}")
        self.counts = bool(_are_counts(words).all())
        occurs, idf = (words != 0).sum(axis=0).A1 > 0, 1.0
        if self.counts:
            text = require("sklearn.feature_extraction.text", extra="data")
            idf = text.TfidfTransformer(sublinear_tf=True).fit(words).idf_
        self.idf = np.where(occurs, idf, 0.0)
        return self

    def weigh(self, words: Any) -> sp.csr_array:
        """Weights the words of documents.

        Args:
            words (scipy.sparse matrix or numpy.ndarray): How often each word occurs in each
                document, or its weight if training documents had weights, :math:`(N, V)`.

        Shapes:
            - **output:** :math:`(N, V)`

        Raises:
            ValueError: If the number of words differs, or words have weights where training
                documents had counts: the logarithm of a weight below 1 would be negative.
        """
        words = sp.csr_matrix(words)
        if words.shape[1] != len(self.idf):
            raise ValueError(f"Expected documents of {len(self.idf)} words (got {words.shape[1]})")
        if self.counts and not _are_counts(words).all():
            raise ValueError(_NO_COUNTS)
        # The import of scikit-learn's TfidfTransformer takes longer than a prediction.
        words = words.copy()
        words.eliminate_zeros()
        if self.counts:
            dtype = np.float32 if words.dtype == np.float32 else np.float64
            values = np.log(words.data.astype(dtype)) + 1
            values *= self.idf[words.indices]
        else:
            values = words.data * self.idf[words.indices]
        row = np.repeat(np.arange(words.shape[0]), np.diff(words.indptr))
        norm = np.sqrt(np.bincount(row, np.square(values), minlength=words.shape[0]))
        values = (values / np.where(norm > 0, norm, 1.0)[row]).astype(np.float32)
        weighted = sp.csr_array((values, words.indices, words.indptr), shape=words.shape)
        weighted.eliminate_zeros()
        return weighted

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        self.idf, self.counts = np.asarray(state["idf"]), state["counts"]
        if self.idf.ndim != 1 or self.idf.dtype.kind != "f":
            got = f"{self.idf.dtype}, {self.idf.shape}"
            raise ValueError(f"Expected 'idf' to hold a number for each word (got {got})")
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _are_counts(words: Any) -> np.ndarray:
    """Tells whether each entry is a count, *i.e.* a whole number from 0."""
    return np.asarray((words.data >= 0) & (words.data == np.floor(words.data)))
