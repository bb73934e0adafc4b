import numpy as np
import pytest
from scipy.stats import ttest_1samp

from tg_mlc.metrics.paired import corrected_difference, holm


@pytest.mark.parametrize(
    ("p", "corrected"),
    [
        # The example of R's p.adjust(c(0.01, 0.02, 0.03, 0.04), "holm"), in another order.
        ([0.03, 0.01, 0.04, 0.02], [0.06, 0.04, 0.06, 0.06]),
        ([0.6, 0.7], [1.0, 1.0]),
        ([], []),
    ],
)
def test_holms_correction_equals_that_of_r(p, corrected):
    assert holm(p) == pytest.approx(corrected)


def test_differences_without_shared_samples_equal_the_t_test():
    values = [0.1, 0.3, -0.1, 0.2]
    expected = ttest_1samp(values, 0.0)
    actual = corrected_difference(values, test_share=0.0)
    assert actual.p == pytest.approx(expected.pvalue)
    assert (actual.low, actual.high) == pytest.approx(tuple(expected.confidence_interval()))


def test_shared_samples_widen_the_interval_by_the_formula():
    values = np.array([0.1, 0.3, -0.1, 0.2])
    plain, corrected = (corrected_difference(values, share, 0.8) for share in (0.0, 0.1))
    ratio = (corrected.high - corrected.mean) / (plain.high - plain.mean)
    assert ratio == pytest.approx(np.sqrt((1 / 4 + 1 / 8) / (1 / 4)))


@pytest.mark.parametrize(
    ("values", "p"), [([0.1], None), ([0.1, 0.1], None), ([0.0, 0.0], 1.0), ([0.1, np.nan], None)]
)
def test_p_values_of_degenerate_differences_are_none_or_one(values, p):
    assert corrected_difference(values).p == p
