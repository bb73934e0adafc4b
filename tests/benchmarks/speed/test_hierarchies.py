import pytest

from benchmarks.speed.hierarchies import measure, synthetic


@pytest.mark.slow
def test_a_hierarchy_and_a_dense_head_are_timed():
    row = measure(120, 1)
    assert row["num_edges"] == 120 + 2 * 119
    assert row["num_pairs"] == 119 + 109 + 9
    times = ("train_ms", "inference_ms", "shortlist_ms", "dense_head_ms")
    assert min(row[key] for key in times) > 0
    assert synthetic(3).parent_index.tolist() == [[0, 0], [1, 2]]
