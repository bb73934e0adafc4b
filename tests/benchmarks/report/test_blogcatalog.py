import pytest

from benchmarks.accuracy.blogcatalog import METRICS, ON_GIVEN, ROWS, SHARES, WITH_GIVEN
from benchmarks.files import describe_environment
from benchmarks.report.blogcatalog import section


def result(num_seeds):
    """Returns runs whose F1 rises with row and seed. With thresholds, F1 is 0.1 lower."""
    runs = []
    for seed in range(num_seeds):
        for share in SHARES:
            for index, row in enumerate(ROWS):
                value = 0.3 + 0.02 * index + 0.01 * seed * (1 + (row == ON_GIVEN))
                known = dict.fromkeys(METRICS, value)
                thresholds = {metric: value - 0.1 for metric, value in known.items()}
                scores = {"known": known, "thresholds": thresholds, "seconds": 1.0}
                runs.append({"model": row, "seed": seed, "share": share, **scores})
    dataset = {"sha256": "abcdef0123456789"}
    return {"runs": runs, "dataset": dataset, "environment": describe_environment()}


def test_both_tables_have_all_rows():
    lines = section(result(3))
    mean = 0.31 + 0.02 * list(ROWS).index(WITH_GIVEN)
    for less in (0.0, 0.1):
        assert f"| {WITH_GIVEN} | " + " | ".join([f"{mean - less:.3f} ± 0.010"] * 6) + " |" in lines
    assert sum("**" in line for line in lines) == 2  # The last row is the best row of both tables.
    assert any("3 random splits" in line for line in lines)
    assert any("sha256 abcdef012345;" in line for line in lines)


@pytest.mark.parametrize(("num_seeds", "gain"), [(1, "+0.020"), (3, "+0.030")])
def test_gains_of_several_seeds_are_tested(num_seeds, gain):
    lines = section(result(num_seeds))
    (line,) = (line for line in lines if "regressions and label propagation: at" in line)
    assert f"at 10% micro F1 {gain}, macro F1 {gain}" in line
    assert ("p =" in line or "p <" in line) == (num_seeds > 1)
