import math

import numpy as np
import pytest

from tg_mlc.metrics import LabelCounts

NAN = float("nan")
# Labels: animal, pet, dog (an animal and a pet), never.
Y = [[1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, NAN], [0, 1, 0, 0], [NAN] * 4]
PAIRS = [[0, 1], [2, 2]]


def test_information_is_that_of_a_label_where_its_ancestors_apply():
    counts = LabelCounts.of(Y, PAIRS)
    assert counts.num_samples == 4
    assert counts.positive.tolist() == [3, 3, 1, 0]
    # One is added to all counts; two samples have both parents of the third label.
    expected = [math.log2(5 / 4), math.log2(5 / 4), math.log2(3 / 2), math.log2(4)]
    assert counts.information.tolist() == pytest.approx(expected)
    assert LabelCounts.of(Y).information is None


def test_propensities_are_those_of_the_paper():
    counts = LabelCounts(1000, np.array([0, 10, 1000]))
    c = (math.log(1000) - 1) * 2.5**0.55
    expected = [1 / (1 + c * math.exp(-0.55 * math.log(n + 1.5))) for n in (0, 10, 1000)]
    assert counts.propensities().tolist() == pytest.approx(expected)
    assert LabelCounts(2, np.array([1])).propensities().tolist() == [1]


def test_counts_are_restored_for_the_same_number_of_labels():
    counts = LabelCounts.of(Y, PAIRS)
    restored = LabelCounts.from_state(counts.state_dict(), 4)
    np.testing.assert_array_equal(restored.information, counts.information)
    assert restored.positive.dtype == np.int64
    with pytest.raises(ValueError, match=r"'positive' of the counts to be of 5 labels \(got \[4\]"):
        LabelCounts.from_state(counts.state_dict(), 5)
