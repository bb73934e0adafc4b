import json

import pytest
import torch

from benchmarks.report import speed
from benchmarks.speed import exporting
from tests.requirements import needs_export


@pytest.mark.parametrize("kind", ["words", "vectors", "molecules", "DNA"])
def test_samples_are_the_same_in_every_call(kind):
    first, second = (exporting.samples(kind, 6) for _ in range(2))
    assert all(torch.equal(a.x, b.x) for a, b in zip(first, second, strict=True))


@pytest.mark.slow
@needs_export
def test_exported_and_original_models_are_timed(own_runs):
    assert exporting.main("vectors", "1,3", num_labels=4, quick=True) == 0
    result = json.loads((own_runs / "exporting-cpu.json").read_text())
    rows = [(row["kind"], row["batch_size"]) for row in result["exported"]]
    assert rows == [("vectors", 1), ("vectors", 3)]
    head, _, *lines = speed.exported(result)
    assert head == "| input | batch | tg_mlc, ms | torch.export, ms | x | difference |"
    assert lines[1].startswith("| vectors | 3 | ")
