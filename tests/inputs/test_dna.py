import numpy as np
import pytest

from tests.inputs.test_kinds import LETTERS, fitted
from tg_mlc.inputs import DNA
from tg_mlc.inputs.dna import kmer_numbers


def test_letters_get_their_codes():
    dna = fitted(DNA(), LETTERS)
    samples = dna.transform(["acGTu", "NNry A"])
    assert [data.x.tolist() for data in samples] == [[0, 1, 2, 3, 3], [4, 4, 4, 4, 0]]
    assert [dna.components(data) for data in samples] == [["ACGT", "T"], ["NNNN", "A"]]
    assert DNA.encoder(LETTERS, 8)(samples[0]).ptr.tolist() == [0, 2]
    for text in ("AC5", ""):
        with pytest.raises(ValueError, match="letters of DNA"):
            dna.transform([text])
        with pytest.raises(ValueError, match="letters of DNA"):
            DNA.check(text)


def test_kmers_of_both_strands_are_counted():
    letters = np.array([0, 0, 0, 0, 0, 1])  # The other strand of AAAAAC is GTTTTT.
    # The last letter, C, counts 4**4 in AAAAC and 4**5 in AAAAAC. Indices of 6-mers begin at 4**5.
    forward = {0, 4**4, 4**5 + 4**5}
    numbers = kmer_numbers(letters)
    assert len(numbers) == 2 * 2 + 2 * 1
    assert forward <= set(numbers.tolist())
    assert sorted(kmer_numbers(3 - letters[::-1])) == sorted(numbers)
    assert len(kmer_numbers(np.array([0, 0, 4, 0, 0, 0]))) == 0  # All k-mers hold N.


def test_the_view_weighs_kmers_and_is_restored():
    samples = fitted(DNA(), LETTERS).transform(["ACGTACGT", "TTTTTTTT", "GGGGCCCC"])
    view = DNA.views["kmers"]().fit(samples)
    matrix = view.matrix(samples)
    assert matrix.shape == (3, 4**5 + 4**6)
    np.testing.assert_allclose(np.square(matrix.toarray()).sum(axis=1), 1, rtol=1e-5)
    restored = DNA.views["kmers"]().load_state_dict(view.state_dict())
    assert (restored.matrix(samples) != matrix).nnz == 0
