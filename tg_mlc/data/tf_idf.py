"""Words weighted by how much they tell of a document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from torch.utils.data import Dataset

from tg_mlc._optional import require

if TYPE_CHECKING:
    from typing_extensions import Self


class TfIdf:
    r"""Weighs the words of documents by how often they occur in them and how rare they are in training documents.

    .. math::
        x_w = (1 + \log n_w) \left( 1 + \log \frac{1 + N}{1 + N_w} \right)

    with :math:`n_w` occurrences in the document, and :math:`N_w` of the :math:`N` training documents that have the
    word; documents are scaled to unit length. This is :class:`sklearn.feature_extraction.text.TfidfTransformer` with
    :obj:`sublinear_tf=True`, but that words of no training document are left out: nothing can be learned of them, and
    as the rarest of all they would weigh down the words beside them.

    .. code-block:: python

        weigh = TfIdf.fit(counts[split.train])
        new = weigh.transform(new_counts)

    Args:
        idf (numpy.ndarray): The second factor for every word, of shape :math:`(V)`, 0 for words to leave out; all that
            has to be kept to weigh further documents.

    Raises:
        ImportError: On use, if scikit-learn is not installed (extra ``data``).
        ValueError: On use, if something else than whole numbers is to be counted: the logarithm of a weight below 1
            would be negative.
    """

    def __init__(self, idf: np.ndarray) -> None:
        self.idf = np.asarray(idf, dtype=np.float64)

    @classmethod
    def fit(cls, counts: Any) -> Self:
        """Counts the documents that have each word.

        Args:
            counts (scipy.sparse matrix or numpy.ndarray): How often each word occurs in each training document,
                :math:`(N, V)`.

        Raises:
            ValueError: If there is no document.
        """
        counts = _matrix(counts)
        if not counts.shape[0]:
            raise ValueError("Expected 'counts' of at least one document (got none)")
        idf = _transformer().fit(counts).idf_
        return cls(np.where((counts > 0).sum(axis=0).A1 > 0, idf, 0.0))

    def transform(self, counts: Any) -> sp.csr_array:
        """Weighs documents.

        Args:
            counts (scipy.sparse matrix or numpy.ndarray): How often each word occurs in each document, :math:`(N, V)`.

        Shapes:
            - **output:** :math:`(N, V)`

        Raises:
            ValueError: If the number of words is another.
        """
        counts = _matrix(counts)
        if counts.shape[1] != len(self.idf):
            raise ValueError(f"Expected 'counts' of {len(self.idf)} words (got {counts.shape[1]})")
        transformer = _transformer()
        transformer.idf_ = self.idf
        weighted = sp.csr_array(transformer.transform(counts), dtype=np.float32)
        weighted.eliminate_zeros()
        return weighted

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.idf)} words)"


def _matrix(counts: Any) -> sp.csr_matrix:
    if isinstance(counts, Dataset):
        raise ValueError(
            f"Expected 'counts' to be a matrix (got {type(counts).__name__}); take 'bag_of_words(dataset)'"
        )
    counts = sp.csr_matrix(counts)
    if not are_counts(counts):
        raise ValueError(
            "Expected 'counts' of whole numbers, none of them negative (got others); words that have weights already "
            "are only to be scaled to unit length, as 'sklearn.preprocessing.normalize' does"
        )
    return counts


def are_counts(words: sp.csr_array | sp.csr_matrix) -> bool:
    """Whether the values of a matrix may be numbers of words, not weights."""
    return bool(((words.data >= 0) & (words.data == np.floor(words.data))).all())


def _transformer() -> Any:
    return require("sklearn.feature_extraction.text", extra="data").TfidfTransformer(sublinear_tf=True)
