"""TF-IDF: words weighted by their frequency in a document and their rarity in others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from typing_extensions import Self

from tg_mlc._optional import require
from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.data.bags import bag_of_words, with_words
from tg_mlc.inputs.preprocessor import Preprocessor

_NO_COUNTS = (
    "Expected whole numbers of words, none of them negative, as in the training documents "
    "(got others); count words, or learn from documents with weights"
)


class TfIdf(Preprocessor):
    r"""Weights the words of documents by how often they occur in them and how rare they are in
    training documents.

    .. math::
        x_w = (1 + \log n_w) \left( 1 + \log \frac{1 + N}{1 + N_w} \right)

    with :math:`n_w` occurrences in the document, and :math:`N_w` of the :math:`N` training
    documents that have the word; documents are scaled to unit length. This is
    :class:`sklearn.feature_extraction.text.TfidfTransformer` with :obj:`sublinear_tf=True`, but
    that words of no training document are left out: nothing can be learned of them, and as the
    rarest of all they would weigh down the words beside them.

    Where the words of training documents have weights already, which are not whole numbers, all
    words keep theirs, and are only scaled to unit length.

    .. code-block:: python

        weighted = TfIdf().fit_transform(dataset, split)  # bags or sequences become bags
        weighted = TfIdf().learn(counts[split.train]).weigh(counts)  # the same for matrices

    Raises:
        ImportError: On use, if scikit-learn is not installed (extra ``data``).
    """

    #: The second factor for every word, of shape :math:`(V)`, 0 for words to leave out.
    idf: np.ndarray
    counts: bool  #: Whether training documents had numbers of words, not weights.

    def fit(self, dataset: MultiLabelDataset, split: Split) -> Self:
        return self.learn(bag_of_words(dataset[split.train]))

    def transform(self, raw: MultiLabelDataset) -> MultiLabelDataset:
        return with_words(raw, self.weigh(bag_of_words(raw)))

    def unreadable(self, raw: MultiLabelDataset) -> dict[int, str]:
        if not self.counts or "weight" not in raw[0]:
            return {}
        words = bag_of_words(raw)
        is_count = _are_counts(words)
        of_entry = np.repeat(np.arange(words.shape[0]), np.diff(words.indptr))
        return dict.fromkeys(np.unique(of_entry[~is_count]).tolist(), _NO_COUNTS)

    def learn(self, words: Any) -> Self:
        """Counts the documents that have each word.

        Args:
            words (scipy.sparse matrix or numpy.ndarray): How often each word occurs in each
                training document, or its weight, :math:`(N, V)`.
        """
        words = sp.csr_matrix(words)
        if not words.shape[0]:
            raise ValueError("Expected 'words' of at least one document (got none)")
        self.counts = bool(_are_counts(words).all())
        known, idf = (words != 0).sum(axis=0).A1 > 0, 1.0
        if self.counts:
            text = require("sklearn.feature_extraction.text", extra="data")
            idf = text.TfidfTransformer(sublinear_tf=True).fit(words).idf_
        self.idf = np.where(known, idf, 0.0)
        return self

    def weigh(self, words: Any) -> sp.csr_array:
        """Weights the words of documents.

        Args:
            words (scipy.sparse matrix or numpy.ndarray): How often each word occurs in each
                document, or its weight if it had one in training documents, :math:`(N, V)`.

        Shapes:
            - **output:** :math:`(N, V)`

        Raises:
            ValueError: If the number of words is another, or words have weights where training
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
    """Whether each entry is a whole number of words."""
    return np.asarray((words.data >= 0) & (words.data == np.floor(words.data)))
