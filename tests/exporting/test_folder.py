"""Tests folders of exported models, which can be used and checked without this package."""

import json
import re
import shutil

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import tg_mlc
from tests.fresh import run_alone
from tests.requirements import needs_export
from tg_mlc.exporting import folder as module
from tg_mlc.inference import Model

#: Makes imports of these packages fail in the code that follows.
ALONE = """import sys
for name in ("tg_mlc", "torch_geometric", "lightning", "sklearn"):
    sys.modules[name] = None
"""


def check_by_readme(folder):
    """Runs the code of the README where neither this package nor PyG can be imported."""
    [code] = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    assert run_alone(ALONE + code, folder=folder).startswith("the same probabilities")


def read(folder, *names):
    return [json.loads((folder / f"{name}.json").read_text()) for name in names]


@needs_export
@pytest.mark.slow
def test_readme_checks_the_golden_inputs_without_this_package(exported):
    check_by_readme(exported("given"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vectors", "dna", "molecules", "texts"])
def test_readme_works_for_every_kind_of_model(name, exported):
    check_by_readme(exported(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vectors", "molecules"])
def test_readme_works_for_onnx(name, exported):
    check_by_readme(exported(name, "onnx"))


@needs_export
def test_files_describe_the_model(exported, saved):
    model = tg_mlc.load(saved("given"))
    description, golden, features = read(exported("given"), "model", "golden", "featurize")
    assert description["label_names"] == model.label_names
    assert description["inputs"]["given"]["shape"] == ["samples", 3]
    for metric, decision in description["decisions"].items():
        np.testing.assert_allclose(decision["thresholds"], model.thresholds(metric))
    given = np.array(golden["inputs"]["given"], dtype=float)
    assert 0 < np.isnan(given).mean() < 1
    scores = model.probabilities(golden["raw"], given=given)
    np.testing.assert_allclose(golden["probability"], scores, atol=1e-4)
    assert golden["decision"]["f1_micro"] == model.decide(scores).astype(int).tolist()
    assert [step["name"] for step in features["steps"]] == ["Vectors", "Scale"]
    assert features["steps"][1]["state"]["scaler"].keys() == {"mean", "spread"}


@pytest.mark.slow
@needs_export
def test_a_hierarchy_makes_the_program_coherent(exported):
    [golden] = read(exported("hierarchy"), "golden")
    assert all(animal >= dog for animal, dog, _ in golden["probability"])


@pytest.mark.slow
@needs_export
def test_an_export_replaces_the_exported_model(exported, tmp_path, saved):
    out = shutil.copytree(exported("given"), tmp_path / "exported")
    model = tg_mlc.load(saved("vectors"))
    inputs = sp.random(20, 5, 0.5, format="csr", random_state=0)
    tg_mlc.export(model, out, inputs=inputs, base_scores="input", given=False)
    description, golden = read(out, "model", "golden")
    assert description["inputs"].keys() == {"x", "base_scores"}
    expected = model.probabilities(inputs.toarray())
    np.testing.assert_allclose(golden["probability"], expected, atol=1e-4)
    names, expected = (
        {path.name for path in files.iterdir()} for files in (out, exported("given"))
    )
    assert names == expected
    assert [*tmp_path.iterdir()] == [out]


def test_a_folder_of_other_files_is_kept(tmp_path, saved):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="'out' to be a new folder"):
        tg_mlc.export(saved("vectors"), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_nothing_is_written_if_outputs_differ(monkeypatch, tmp_path, saved):
    monkeypatch.setattr(module, "trace", lambda *_: None)
    zeros = torch.zeros(20, 3)
    monkeypatch.setattr(module, "save_torch", lambda *_: lambda x, *others: zeros[: len(x)])
    with pytest.raises(ValueError, match=r"exported program .* apart in rows 0 to 20"):
        tg_mlc.export(saved("given"), tmp_path / "exported")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "tflite"}, "'format'"),
        ({"base_scores": "none"}, "'base_scores'"),
        ({"given": "yes"}, "'given'"),
        ({"coverage": 0.8, "coverage_per": "sample"}, r"coverage 0.8 per sample .*'conformalize'"),
    ],
)
def test_wrong_options_are_refused(options, message, tmp_path, saved):
    with pytest.raises(ValueError, match=message):
        tg_mlc.export(saved("given"), tmp_path / "exported", **options)
    assert not list(tmp_path.iterdir())


def test_networks_without_a_preprocessor_need_inputs(tmp_path):
    with pytest.raises(ValueError, match="'inputs'"):
        tg_mlc.export(Model.of(torch.nn.Linear(2, 1), ["a"]), tmp_path / "exported")


@pytest.mark.slow
@needs_export
def test_label_sets_of_a_coverage_are_exported(tmp_path, saved):
    model, out = tg_mlc.load(saved("given")), tmp_path / "exported"
    x = model.kind.examples(60)
    y = (np.random.default_rng(0).random((60, 3)) < model.probabilities(x)).astype(float)
    model.calibrate(x, y).conformalize(x, y)
    tg_mlc.export(model, out, coverage=0.8)
    description, golden = read(out, "model", "golden")
    label_sets = description["decisions"]["coverage 0.8 per label"]
    assert (label_sets["coverage"], label_sets["per"]) == (0.8, "label")
    decisions = golden["decision"]["coverage 0.8 per label"]
    none_given = np.isnan(np.array(golden["inputs"]["given"], dtype=float)).all(axis=1)
    assert [row is not None for row in decisions] == none_given.tolist()
    applies = np.array(golden["probability"])[none_given] >= label_sets["thresholds"]
    assert [row for row in decisions if row is not None] == applies.astype(int).tolist()
    frame = model.predict(np.array(golden["raw"])[none_given], coverage=0.8)
    assert frame["decision"].to_numpy().tolist() == applies.tolist()
    assert sum(description["calibration"].values()) == 3
    check_by_readme(out)
    assert "are\ncalibrated for each label" in (out / "README.md").read_text()
