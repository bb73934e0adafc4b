from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

from tg_mlc.data import TfIdf, from_arrays

COUNTS = np.array([[1, 0, 2, 0], [0, 3, 1, 0], [4, 1, 1, 0]])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_it_is_what_scikit_learn_does_where_all_words_are_known(form):
    known = COUNTS[:, :3]
    reference = TfidfTransformer(sublinear_tf=True).fit(known).transform(known)
    weighted = TfIdf.fit(form(known)).transform(form(known))
    np.testing.assert_allclose(weighted.toarray(), reference.toarray(), atol=1e-6)


def test_new_documents_are_weighed_one_by_one_from_what_is_kept():
    again = TfIdf(TfIdf.fit(COUNTS).idf)
    together = again.transform(COUNTS).toarray()
    for counts, weights in zip(COUNTS, together, strict=True):
        np.testing.assert_array_equal(again.transform(counts[None]).toarray()[0], weights)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)


def test_words_of_no_training_document_weigh_nothing():
    weigh = TfIdf.fit(COUNTS)
    with_new = weigh.transform([[1, 0, 2, 7]])
    np.testing.assert_array_equal(with_new.toarray(), weigh.transform([[1, 0, 2, 0]]).toarray())
    assert with_new.indices.tolist() == [0, 2]
    assert weigh.transform([[0, 0, 0, 7]]).nnz == 0


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="'counts' of 4 words"):
        TfIdf.fit(COUNTS).transform(COUNTS[:, :3])
    with pytest.raises(ValueError, match="at least one document"):
        TfIdf.fit(COUNTS[:0])
    with pytest.raises(ValueError, match=r"'counts' to be a matrix \(got ArrayDataset\); take"):
        TfIdf.fit(from_arrays(COUNTS, COUNTS > 0, kind="bag"))


@pytest.mark.parametrize("counts", [COUNTS * 0.5, -COUNTS, COUNTS.astype(float) + 0.1])
def test_weights_are_not_taken_for_counts(counts):
    with pytest.raises(ValueError, match=r"whole numbers.*have weights already are only to be scaled"):
        TfIdf.fit(counts)
    with pytest.raises(ValueError, match="whole numbers"):
        TfIdf.fit(COUNTS).transform(counts)
