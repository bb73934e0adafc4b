from __future__ import annotations

from benchmarks.speed.hierarchies import measure, synthetic


def test_a_size_is_measured_beside_the_dense_definition():
    found = measure(120, 1)
    assert found["num_edges"] == 120 + 2 * 119
    assert found["num_pairs"] == 119 + 109 + 9
    times = ("train_ms", "inference_ms", "shortlist_ms", "dense_head_ms")
    assert min(found[key] for key in times) > 0
    assert synthetic(3).parent_index.tolist() == [[0, 0], [1, 2]]
