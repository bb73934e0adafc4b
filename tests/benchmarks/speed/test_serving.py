import json

import numpy as np
import pytest

from benchmarks.report import speed
from benchmarks.speed import serving
from tests.serving.conftest import LABELS, model_of, targets
from tg_mlc.data import from_arrays
from tg_mlc.inputs import Vectors


@pytest.mark.slow
def test_a_server_agrees_with_its_model(own_runs, tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 5))
    dataset = from_arrays(x, targets(40), LABELS, kind="vector")
    model_of(Vectors, dataset).save(tmp_path / "model")
    assert serving.main(str(tmp_path / "model"), clients=4, quick=True) == 0
    result = json.loads((own_runs / "serving-cpu-model.json").read_text())["serving"]
    assert result["agrees"]
    assert sum(result["malformed"].values()) == 60
    assert len(result["resident_bytes"]) == 11


def test_the_table_shows_medians_and_refusals(results):
    assert speed.served() == ["Not measured."]
    measured = {
        "alone_per_second": [90.0, 100.0, 110.0],
        "served_per_second": [80.0],
        "alone_processor_ms": [9.0],
        "served_processor_ms": [10.0],
        "milliseconds": {"p50": 300.0, "p99": 400.0},
        "malformed": {"422": 990, "413": 10},
        "requests": 5000,
        "resident_bytes": [6e8, 7e8, 7e8],
    }
    machine = {"cuda": None, "processor": "CPU", "versions": {"torch": "2", "torch-geometric": "2"}}
    settings = {"clients": 32, "rounds": 3, "seconds": 8.0, "threads": 1}
    model = {"kind": "AutoModel", "labels": 27}
    content = {"environment": machine, "settings": settings, "model": model, "serving": measured}
    (results / "serving-cpu-model.json").write_text(json.dumps(content))
    row = speed.served()[2]
    assert row.startswith("| AutoModel, 27 labels | 100 | 80 | 9.00 | 10.00 | 90% | 300 | 400 |")
    assert row.endswith("| 10 times 413, 990 times 422 | 700 to 700 | 5,000 |")
