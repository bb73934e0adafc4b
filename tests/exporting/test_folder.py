"""Folders of exported models, which hold all that it takes to use them and to check them."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import scipy.sparse as sp

import tg_mlc
from tests.fresh import run_alone
from tests.requirements import needs_export
from tg_mlc.data import from_arrays, with_hierarchy
from tg_mlc.exporting import folder as module
from tg_mlc.inference import Model
from tg_mlc.stacking import auto

#: Lets no module of these be imported.
ALONE = "import sys\nfor name in ('tg_mlc', 'torch_geometric', 'lightning', 'sklearn'): sys.modules[name] = None\n"


@pytest.fixture(scope="module")
def exported(saved, tmp_path_factory):
    return tg_mlc.export(saved("given"), tmp_path_factory.mktemp("out") / "exported")


def follow(folder):
    """The output of the code of the README, where neither this package nor PyG can be imported."""
    [code] = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    return run_alone(ALONE + code, folder=folder)


@needs_export
def test_readme_checks_the_golden_inputs_without_this_package(exported):
    assert follow(exported).startswith("the same probabilities")


@needs_export
def test_inputs_may_be_a_sparse_matrix(tmp_path, saved):
    inputs = sp.random(20, 5, 0.5, format="csr", random_state=0)
    folder = tg_mlc.export(saved("vectors"), tmp_path / "exported", inputs=inputs, given=False)
    expected = tg_mlc.load(saved("vectors")).probabilities(inputs.toarray())
    found = json.loads((folder / "golden.json").read_text())["probability"]
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vectors", "molecules"])
def test_onnx(name, tmp_path, saved):
    out = tg_mlc.export(saved(name), tmp_path / "exported", "onnx")
    assert follow(out).startswith("the same probabilities")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vectors", "dna", "molecules", "texts"])
def test_every_kind_of_saved_model(name, tmp_path, saved):
    out = tg_mlc.export(saved(name), tmp_path / "exported")
    assert follow(out).startswith("the same probabilities")


@needs_export
def test_contents(exported, saved):
    predictor = tg_mlc.load(saved("given"))
    about, golden, features = (
        json.loads((exported / f"{name}.json").read_text())
        for name in ("model", "golden", "featurize")
    )
    assert about["label_names"] == predictor.label_names
    assert about["inputs"]["given"]["shape"] == ["samples", 3]
    for metric, decision in about["decisions"].items():
        np.testing.assert_allclose(decision["thresholds"], predictor.thresholds(metric))
    given = np.array(golden["inputs"]["given"], dtype=float)
    assert 0 < np.isnan(given).mean() < 1
    scores = predictor.probabilities(golden["raw"], given=given)
    np.testing.assert_allclose(golden["probability"], scores, atol=1e-4)
    assert golden["decision"]["f1_micro"] == predictor.decide(scores).astype(int).tolist()
    assert [step["name"] for step in features["steps"]] == ["Vectors", "Scale"]
    assert features["steps"][1]["state"]["scaler"].keys() == {"mean", "spread"}


@needs_export
def test_an_exported_model_is_replaced_and_other_folders_are_kept(exported, tmp_path, saved):
    before = sorted(path.name for path in exported.iterdir())
    predictor = tg_mlc.load(saved("vectors"))
    tg_mlc.export(predictor, exported, base_scores="input", given=False)
    assert sorted(path.name for path in exported.iterdir()) == before
    assert json.loads((exported / "model.json").read_text())["inputs"].keys() == {
        "x",
        "base_scores",
    }
    assert [path for path in exported.parent.iterdir() if path != exported] == []
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="Expected 'out' to be a new folder"):
        tg_mlc.export(predictor, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@needs_export
def test_nothing_is_written_if_outputs_differ(monkeypatch, tmp_path, saved):
    monkeypatch.setattr(module, "TOLERANCE", -1.0)
    with pytest.raises(
        ValueError, match="Expected the exported program to give the probabilities of the model"
    ):
        tg_mlc.export(saved("given"), tmp_path / "exported")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "tflite"}, "'format'"),
        ({"base_scores": "none"}, "'base_scores'"),
        ({"given": "yes"}, "'given'"),
    ],
)
def test_options(options, message, tmp_path, saved):
    with pytest.raises(ValueError, match=message):
        tg_mlc.export(saved("given"), tmp_path / "exported", **options)


def test_networks_without_a_preprocessor_need_inputs(tmp_path):
    import torch

    predictor = Model.of(torch.nn.Linear(2, 1), ["a"])
    with pytest.raises(ValueError, match="Expected 'inputs'"):
        tg_mlc.export(predictor, tmp_path / "exported")


@needs_export
def test_a_hierarchy_makes_the_program_coherent(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3)).astype(np.float32)
    y = np.column_stack([x[:, 0] > -0.5, x[:, 0] > 0.5, x[:, 1] > 0]).astype(float)
    samples = with_hierarchy(
        from_arrays(x, y, ["animal", "dog", "red"]), [("dog", "animal"), ("red", None)]
    )
    predictor = auto(samples, seconds=0)
    # refuses outputs that differ from the model's
    tg_mlc.export(predictor, tmp_path / "program", inputs=x)
    golden = json.loads((tmp_path / "program" / "golden.json").read_text())
    assert all(animal >= dog for animal, dog, _ in golden["probability"])


@needs_export
def test_label_sets_of_a_coverage_are_exported(tmp_path, saved):
    predictor = tg_mlc.load(saved("given"))
    with pytest.raises(ValueError, match=r"coverage 0.8 per sample .*'conformalize'"):
        tg_mlc.export(predictor, tmp_path / "exported", coverage=0.8, coverage_per="sample")
    assert not list(tmp_path.iterdir())
    x = predictor.kind.examples(60)
    y = (np.random.default_rng(0).random((60, 3)) < predictor.probabilities(x)).astype(float)
    predictor.calibrate(x, y).conformalize(x, y)
    tg_mlc.export(predictor, tmp_path / "exported", coverage=0.8)
    about, golden = (
        json.loads((tmp_path / "exported" / f"{name}.json").read_text())
        for name in ("model", "golden")
    )
    found = about["decisions"]["coverage 0.8 per label"]
    assert (found["coverage"], found["per"]) == (0.8, "label")
    decided, known = (
        golden["decision"]["coverage 0.8 per label"],
        np.array(golden["inputs"]["given"], dtype=float),
    )
    is_open = np.isnan(known).all(axis=1)
    assert [row is not None for row in decided] == is_open.tolist()
    applies = np.array(golden["probability"])[is_open] >= found["thresholds"]
    assert [row for row in decided if row is not None] == applies.astype(int).tolist()
    raw = np.array(golden["raw"])[is_open]
    assert predictor.predict(raw, coverage=0.8)["decision"].to_numpy().tolist() == applies.tolist()
    assert sum(about["calibration"].values()) == 3
    assert follow(tmp_path / "exported").startswith("the same probabilities")
    assert "are\ncalibrated for each label" in (tmp_path / "exported" / "README.md").read_text()
