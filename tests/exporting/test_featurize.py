"""Tests the file that makes the tensors of raw inputs without this package."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import tg_mlc
from tests.exporting.test_folder import ALONE
from tests.fresh import run_alone
from tests.requirements import needs_export
from tg_mlc.data import from_arrays, from_csv, random_split
from tg_mlc.exporting import featurize as alone
from tg_mlc.exporting.bundle import bundle
from tg_mlc.exporting.folder import _as_json, _describe_features
from tg_mlc.exporting.program import featurize
from tg_mlc.inference import Model
from tg_mlc.inference.decisions import Coherence, Decision
from tg_mlc.inference.features import Features
from tg_mlc.inputs import Scale, TfIdf, Vectors, Words
from tg_mlc.inputs.embeddings import Embeddings

LABELS = ["a", "b"]
ALONE_WITH_NUMPY = f"{ALONE}sys.modules |= dict.fromkeys(('torch', 'scipy', 'pandas'))\n"
DOCUMENTS = [["red", "apple"], ["red", "red", "plum"], ["old", "doll"], ["apple"]] * 3
CELLS = {
    "zip": ["01067", "80331", "10115", "1067"],
    "price": ["1,5 €", "1.200,25 €", "0,5 €", "7 €"],
    "member": ["yes", "no", "yes", "No"],
    "day": ["31.01.2024", "01.02.2024", "15.03.2024", "29.02.2024"],
    "clock": ["10:30", "7:05", "23:59", "1:00 pm"],
    "colour": ["red", "blue", "red", "RED"],
}


def y_of(size):
    return np.random.default_rng(0).integers(2, size=(size, 2))


def model_of(dataset, *steps):
    """Returns a model that only makes samples."""
    samples, split = dataset, random_split(len(dataset), (0.6, 0.2, 0.2), seed=0)
    for step in steps:
        samples = step.fit_transform(samples, split)
    return Model([Features(*steps), Coherence(LABELS), Decision()], LABELS)


def compare(model, raw, given=None):
    """Returns the largest difference between the tensors of the file and those of the package."""
    expected = featurize(model, raw, given)
    dtypes = {name: str(x.dtype).removeprefix("torch.") for name, x in expected.items()}
    dtypes.pop("base_scores", None)
    inputs = {name: {"dtype": dtype} for name, dtype in dtypes.items()}
    about = {"inputs": inputs, "label_names": model.label_names, **_describe_features(model)}
    about, golden = (json.loads(_as_json(part)) for part in (about, expected))
    assert alone.why_not(about) is None
    tensors = alone.featurize(about, raw, given)
    assert tensors.keys() == inputs.keys()
    return alone.compare(tensors, golden)


@pytest.mark.parametrize("name", ["vectors", "given", "dna", "molecules", "texts", "network"])
def test_tensors_equal_those_of_the_package(name, saved):
    model = tg_mlc.load(saved(name))
    raw = model.kind.examples(7)
    raw = raw.tolist() if hasattr(raw, "tolist") else raw
    assert compare(model, raw) < 1e-6
    assert compare(model, raw[:1]) < 1e-6


@pytest.mark.parametrize("scaling", ["standard", "quantile"])
def test_cells_of_all_notations_are_read_alike(scaling, tmp_path):
    frame = pd.DataFrame({name: cells[:3] * 4 for name, cells in CELLS.items()})
    frame[LABELS] = y_of(12)
    frame.to_csv(tmp_path / "table.csv", index=False, sep=";")
    model = model_of(from_csv(tmp_path / "table.csv", LABELS), Vectors(), Scale(scaling))
    rows = [dict(zip(CELLS, row, strict=True)) for row in zip(*CELLS.values(), strict=True)]
    rows.append({f" {name.upper()}": cell for name, cell in rows[0].items()} | {"other": 1})
    rows.append({**rows[1], "colour": ""})
    if scaling == "quantile":
        rows.append({**rows[1], "price": None, "day": "n/a"})
    assert compare(model, rows) < 1e-6
    assert compare(model, model.kind.examples(5)) < 1e-6
    about = _describe_features(model) | {"inputs": {}, "label_names": LABELS}
    with pytest.raises(ValueError, match=r"Expected .*row 0, column 'price' \(got 'dear'"):
        alone.featurize(about, [{**rows[0], "price": "dear"}])
    with pytest.raises(ValueError, match="Expected the column 'price' in row 0"):
        alone.featurize(about, [{"zip": "01067"}])


@pytest.mark.parametrize("kind", ["bag", "sequence"])
@pytest.mark.parametrize("weighted", [True, False])
def test_words_are_numbered_and_weighted_alike(kind, weighted):
    dataset = from_arrays(DOCUMENTS, y_of(12), LABELS, kind=kind)
    model = model_of(dataset, Words(), *([TfIdf()] if weighted else []))
    texts = ["A red, RED apple", ["doll", "plum", "plum"], "xyz", "", {"text": "old \u00fc"}]
    assert compare(model, texts) < 1e-6
    assert compare(model, texts, [{"a": 1}, {}, {"b": 0}, {}, {}]) < 1e-6


@pytest.mark.parametrize("values", ["counts", "weights"])
def test_rows_of_words_are_read_alike(values):
    rng = np.random.default_rng(0)
    words = rng.integers(3, size=(12, 5)) * (0.5 if values == "weights" else 1)
    model = model_of(from_arrays(words, y_of(12), LABELS, kind="bag"), Words(), TfIdf())
    assert compare(model, words[:4].tolist()) < 1e-6


def test_matrices_of_vectors_are_read_alike():
    rng = np.random.default_rng(0)
    matrices = [rng.normal(size=(1 + row % 3, 4)) for row in range(12)]
    model = model_of(from_arrays(matrices, y_of(12), LABELS, kind="embeddings"), Embeddings())
    assert compare(model, [matrix.tolist() for matrix in matrices]) < 1e-6


@needs_export
def test_the_file_of_a_folder_needs_numpy_alone(exported, saved, tmp_path):
    folder = exported("given")
    code = f"{ALONE_WITH_NUMPY}import runpy\nrunpy.run_path('featurize.py', {{}}, '__main__')"
    assert run_alone(code, ["--check"], folder).startswith("the same tensors, to ")
    rows, out = tmp_path / "rows.json", tmp_path / "tensors.npz"
    rows.write_text("[[0.5, 1, 2, 3], [1, 2, 3, 4]]")
    run_alone(code, [str(rows), str(out)], folder)
    expected = featurize(tg_mlc.load(saved("given")), [[0.5, 1, 2, 3], [1, 2, 3, 4]])
    np.testing.assert_allclose(np.load(out)["x"], expected["x"], atol=1e-6)
    assert (folder / "requirements.txt").read_text() == f"numpy=={np.__version__}\n"


def test_other_golden_tensors_are_refused():
    golden = {"x": [[1.0, 2.0]]}
    assert alone.compare({"x": np.array([[1.0, 2.0]])}, golden) == 0
    with pytest.raises(ValueError, match=r"tensors 'x' as in golden.json \(got 0.5 apart"):
        alone.compare({"x": np.array([[1.0, 3.0]])}, golden)
    with pytest.raises(ValueError, match=r"tensors 'x' .*\(2, 1\) instead of \(1, 2\)"):
        alone.compare({"x": np.array([[1.0], [2.0]])}, golden)
    with pytest.raises(ValueError, match="tensors 'x'"):
        alone.compare({"x": np.array([[1.0, np.nan]])}, golden)


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([], "takes samples, not raw inputs"),
        ([{"name": "EventPreprocessor", "state": {}}], "EventPreprocessor.* need this package"),
        ([{"name": "Words", "state": {"tokenizer": "other"}}], "custom tokenizer"),
    ],
)
def test_models_that_need_this_package_are_told(steps, reason):
    assert re.search(reason, alone.why_not({"steps": steps}))


def test_a_bundle_needs_no_other_package(tmp_path):
    source = bundle("tg_mlc.exporting.featurize")
    assert not re.search(r"^(from|import) (tg_mlc|torch)", source, re.MULTILINE)
    (tmp_path / "featurize.py").write_text(source)
    code = f"{ALONE_WITH_NUMPY}import featurize\n"
    code += "print(featurize.tokenize('caf\u00e9 C++'), featurize.notation_of({'form': 'date'}))"
    assert run_alone(code, folder=tmp_path).startswith("['caf\u00e9', 'c++'] dates (ISO 8601)")
    with pytest.raises(ValueError, match=r"Expected definitions without \w*torch|scipy"):
        bundle("tg_mlc.inputs.scalers")
