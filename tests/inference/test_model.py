import inspect
import json
import math
import pickle
import random
import shutil
import sys
import tempfile
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
import torch

import tg_mlc
from tests.saved import LABELS, TEXTS
from tg_mlc.data import from_arrays
from tg_mlc.data.bags import with_attribute
from tg_mlc.graphs import fully_connected
from tg_mlc.inference import Model, from_pretrained, push_to_hub
from tg_mlc.inference.folder import read_folder, write_folder
from tg_mlc.metrics import evaluate
from tg_mlc.models import LaMP, table_lamp
from tg_mlc.nn.encoders import VectorEncoder

NEW = ["Red pears!", "GREEN apples", "something else"]


def test_a_saved_model_predicts_the_same_as_the_fitted_module(result, folder):
    state = torch.get_rng_state()
    loaded = tg_mlc.load(folder)
    assert torch.equal(torch.get_rng_state(), state)
    expected = Model.of(result.module).probabilities(NEW)
    np.testing.assert_array_equal(loaded.probabilities(NEW), expected)
    assert loaded.label_names == LABELS
    assert repr(loaded) == "Model([Features, Classifiers, Networks, Coherence, Decision], 2 labels)"


def test_columns_of_targets_are_matched_by_name(folder):
    predictor = tg_mlc.load(folder)
    y = pd.DataFrame([[1, 0], [0, 1], [1, 1]], columns=LABELS)
    expected = predictor.evaluate(NEW, y.to_numpy()).values
    assert predictor.evaluate(NEW, y[LABELS[::-1]]).values == pytest.approx(expected, nan_ok=True)
    with pytest.raises(ValueError, match="Expected 'y' to have the columns of the model's labels"):
        predictor.evaluate(NEW, y.rename(columns={LABELS[0]: "other"}))


@pytest.mark.parametrize(
    "raw", [NEW, pd.DataFrame({"text": NEW}), [{"text": NEW[0]}]], ids=["list", "frame", "rows"]
)
def test_raw_inputs_need_targets(folder, raw):
    model = tg_mlc.load(folder)
    for method in (model.evaluate, model.tune, model.calibrate, model.conformalize):
        with pytest.raises(ValueError, match="'y', because only samples hold"):
            method(raw)


@pytest.mark.parametrize("on_error", ["blank", "raise"])
@pytest.mark.parametrize(
    "empty", [[], (), pd.DataFrame({"text": []}), pd.Series([], dtype=str), np.empty(0, dtype=str)]
)
def test_no_inputs_give_no_rows(folder, empty, on_error):
    assert tg_mlc.load(folder).predict(empty, on_error=on_error)["decision"].shape == (0, 2)


def test_the_folder_describes_the_model(result, folder):
    content = json.loads((folder / "model.json").read_text())["content"]
    assert content["label_names"] == LABELS
    stages = {entry["stage"]: entry["state"] for entry in content["stages"]}
    assert list(stages) == ["Features", "Classifiers", "Networks", "Coherence", "Decision"]
    [network] = stages["Networks"]["networks"]
    assert network["builder"] == "table_lamp"
    assert network["options"]["channels"] == 8
    threshold = result.module.tuners["f1_micro"].threshold
    assert stages["Decision"]["tuners"]["f1_micro"]["thresholds"] == [threshold]
    facts = content["facts"]
    assert facts["validation"]["val/loss"] == pytest.approx(result.best_value)
    assert facts["versions"]["torch"] == torch.__version__
    assert facts["versions"]["scikit-learn"] == sklearn.__version__
    assert len(facts["data"]) == len(facts["split"]) == 64


def test_predictions_are_a_frame_with_named_rows_and_columns(folder):
    loaded = tg_mlc.load(folder)
    frame = loaded.predict(pd.Series(NEW, index=["x", "y", "z"]))
    groups = frame.columns.get_level_values(0).unique().tolist()
    assert groups == ["probability", "decision", "threshold"]
    assert frame["probability"].columns.tolist() == LABELS
    assert frame.index.tolist() == ["x", "y", "z"]
    np.testing.assert_array_equal(frame["probability"], loaded.probabilities(NEW))
    np.testing.assert_array_equal(frame["decision"], frame["probability"] >= frame["threshold"])
    assert (frame["threshold"] == loaded.thresholds("f1_micro")).all(axis=None)
    with pytest.raises(ValueError, match=r"'metric' to be one of .*subset_accuracy"):
        loaded.predict(NEW, metric="F2")


def test_any_number_of_rows_is_streamed(folder):
    loaded = tg_mlc.load(folder)
    frames = list(loaded.stream(iter(TEXTS), rows=15, batch_size=4))
    assert [len(frame) for frame in frames] == [15, 15, 10]
    together = pd.concat(frames)
    assert together.index.tolist() == list(range(40))
    np.testing.assert_allclose(together["probability"], loaded.probabilities(TEXTS), atol=1e-6)
    assert list(loaded.stream([])) == []
    column = pd.Series(TEXTS, index=range(100, 140))
    assert pd.concat(loaded.stream(column, rows=15)).index.tolist() == column.index.tolist()
    with pytest.raises(ValueError, match=r"inputs one by one \(got the string 'CCO'\)"):
        next(loaded.stream("CCO"))


def test_frames_of_one_column_are_streamed_by_rows(folder):
    loaded, frame = tg_mlc.load(folder), pd.DataFrame({"text": TEXTS[:5]}, index=list("abcde"))
    expected = loaded.predict(frame["text"])
    pd.testing.assert_frame_equal(loaded.predict(frame), expected)
    pd.testing.assert_frame_equal(pd.concat(loaded.stream(frame, rows=2)), expected)


def test_a_wrong_device_is_named(folder):
    for device in ("gpu", "cuda:99"):
        with pytest.raises(ValueError, match=f"'device' .*got '{device}': "):
            tg_mlc.load(folder, device=device)


def test_given_labels_stay_and_change_other_labels(folder):
    loaded = tg_mlc.load(folder)
    plain, given = loaded.predict(NEW), loaded.predict(NEW, given={"red": 1})
    assert (given["probability"]["red"] == 1).all()
    assert (given["probability"]["green"] != plain["probability"]["green"]).all()
    [streamed] = loaded.stream(NEW, given={"red": 1})
    pd.testing.assert_frame_equal(streamed, given)


def test_given_labels_count_as_unknown_in_an_evaluation():
    y = torch.randint(2, (40, 3), generator=torch.Generator().manual_seed(0)).float()
    tosses = from_arrays(np.ones((40, 2)), y, ["a", "b", "c"], kind="vector")
    network = table_lamp(tosses, fully_connected(tosses.label_names), channels=8, given_labels=True)
    model, given = Model.of(network), y.clone()
    given[:, 2] = given[0, 1] = math.nan
    report = model.evaluate(tosses, y, given=given)
    assert report.num_unknown == 79
    assert report.values == model.evaluate(with_attribute(tosses, "given", given), y).values
    targets = y.masked_fill(~given.isnan(), math.nan)
    expected = evaluate(targets, model.probabilities(tosses, given=given), 0.5)
    assert report.values == pytest.approx(expected.values, nan_ok=True)
    assert model.evaluate(tosses, y).num_unknown == 0
    with pytest.raises(ValueError, match=r"'scores' .* \[40, 2\]"):
        model.evaluate(tosses, y[:, :2], given=given)


def test_saving_again_replaces_the_whole_model(folder, tmp_path):
    loaded = tg_mlc.load(folder)
    assert loaded.save(tmp_path / "copy") == tmp_path / "copy"
    first_text = (tmp_path / "copy" / "model.json").read_text()
    with torch.no_grad():
        loaded.networks[0].readout.bias += 1
    loaded.save(tmp_path / "copy")
    assert len(list((tmp_path / "copy").iterdir())) == 2
    assert (tmp_path / "copy" / "model.json").read_text() != first_text
    reloaded = tg_mlc.load(tmp_path / "copy")
    np.testing.assert_array_equal(reloaded.probabilities(NEW), loaded.probabilities(NEW))


def vectors():
    return from_arrays(np.eye(4), np.eye(4)[:, :2], LABELS, kind="vector")


def lamp_of_vectors():
    return table_lamp(vectors(), fully_connected(LABELS), channels=8)


def other_path():
    network = lamp_of_vectors()
    network.linear_path = torch.nn.Linear(4, 2)
    return network


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LaMP(VectorEncoder(4, 8), fully_connected(LABELS)), r"arguments .*'encoder'"),
        (other_path, "as its builder 'table_lamp' makes it"),
    ],
)
def test_a_model_that_cannot_be_rebuilt_is_refused(make, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        Model.of(make()).save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_model_without_a_preprocessor_takes_samples(tmp_path):
    model = Model.of(lamp_of_vectors())
    loaded, expected = tg_mlc.load(model.save(tmp_path)), model.probabilities(vectors())
    np.testing.assert_array_equal(loaded.probabilities(vectors()), expected)
    assert (loaded.predict(vectors())["threshold"] == 0.5).all(axis=None)
    with pytest.raises(ValueError, match="saved without a preprocessor"):
        loaded.probabilities(np.eye(4))


def damage(folder, number):
    """Damages one file of a saved model."""
    rng = random.Random(number)
    path = rng.choice(sorted(folder.iterdir()))
    content = bytearray(path.read_bytes())
    position = rng.randrange(len(content))
    kind = number % 5
    if kind == 0:
        path.unlink()
    elif kind == 1:
        path.write_bytes(content[:position])
    elif kind == 2:
        path.write_bytes(content[:position] + rng.randbytes(8) + content[position:])
    else:
        content[position] ^= 1 << rng.randrange(8)
        path.write_bytes(content)


def test_damaged_folders_are_refused(folder, tmp_path):
    for number in range(80):
        copy = tmp_path / str(number)
        shutil.copytree(folder, copy)
        damage(copy, number)
        with pytest.raises((ValueError, FileNotFoundError), match="Expected") as error:
            tg_mlc.load(copy)
        assert "\n" not in str(error.value)
        assert str(copy) in str(error.value)


@pytest.mark.parametrize("key", ["builder", "name", "stage"])
def test_unregistered_names_are_refused(folder, tmp_path, key):
    content = read_folder(folder)
    stages = {entry["stage"]: entry["state"] for entry in content["stages"]}
    holders = {"builder": stages["Networks"]["networks"][0], "stage": content["stages"][0]}
    holders["name"] = stages["Features"]["steps"][0]
    holders[key][key] = "os.system"
    write_folder(tmp_path, content)
    with pytest.raises(ValueError, match=r"got ValueError: Expected a .*os.system"):
        tg_mlc.load(tmp_path)


def test_numbers_that_json_lacks_are_saved_as_valid_json(result, tmp_path):
    facts = {"losses": [math.inf, -math.inf, math.nan, 0.5]}
    model = Model.of(result.module)
    model.facts = facts
    model.save(tmp_path)
    json.loads((tmp_path / "model.json").read_text(), parse_constant=pytest.fail)
    assert str(tg_mlc.load(tmp_path).facts["losses"]) == str(facts["losses"])
    with pytest.raises(ValueError, match=r"keys of 'facts' .* \(got 'float'\)"):
        model.save(tmp_path, beside={"facts": {"float": 1}})


def test_paths_without_a_model_are_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path, tmp_path / "nothing", tmp_path / "file"):
        with pytest.raises(FileNotFoundError, match="to be the folder of a saved model"):
            tg_mlc.load(path)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Replaces the Hugging Face hub by a folder."""

    class Hub(ModuleType):
        root = tmp_path / "hub"

        def create_repo(self, repo_id, *, private, exist_ok):
            (self.root / repo_id).mkdir(parents=True, exist_ok=exist_ok)

        def upload_folder(
            self, *, repo_id, folder_path, allow_patterns, delete_patterns, commit_message=None
        ):
            repo = self.root / repo_id
            for path in repo.iterdir():
                if any(fnmatch(path.name, pattern) for pattern in delete_patterns):
                    path.unlink()
            for path in Path(folder_path).iterdir():
                if any(fnmatch(path.name, pattern) for pattern in allow_patterns):
                    shutil.copy(path, repo)
            return f"https://hub/{repo_id}"

        def snapshot_download(self, repo_id, *, allow_patterns, revision=None):
            return str(self.root / repo_id)

    monkeypatch.setitem(sys.modules, "huggingface_hub", Hub("huggingface_hub"))
    return Hub.root


def test_a_model_is_pushed_to_the_hub_and_loaded_again(hub, folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "notes.txt").write_text("mine")
    assert push_to_hub(copy, "me/fruit", commit_message="first") == "https://hub/me/fruit"
    stale = hub / "me" / "fruit" / "weights-0.safetensors"
    stale.touch()
    push_to_hub(copy, "me/fruit")
    assert not stale.exists()
    assert len(list((hub / "me" / "fruit").iterdir())) == 2
    expected = tg_mlc.load(folder).probabilities(NEW)
    np.testing.assert_array_equal(from_pretrained("me/fruit").probabilities(NEW), expected)


def test_a_damaged_model_is_not_pushed(hub, folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "model.json").write_text("{}")
    with pytest.raises(ValueError, match="to be as tg_mlc wrote it"):
        push_to_hub(copy, "me/fruit")
    assert not hub.exists()


def test_a_folder_needs_no_hub(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    expected = tg_mlc.load(folder).probabilities(NEW)
    np.testing.assert_array_equal(from_pretrained(folder).probabilities(NEW), expected)
    with pytest.raises(ImportError, match=r"tg_mlc\[hub\]"):
        from_pretrained("me/fruit")


def test_huggingface_hub_accepts_the_arguments_of_our_calls():
    hub = pytest.importorskip("huggingface_hub")
    inspect.signature(hub.create_repo).bind("me/fruit", private=True, exist_ok=True)
    patterns = {"allow_patterns": ["a"], "delete_patterns": ["a"]}
    inspect.signature(hub.upload_folder).bind(repo_id="me/fruit", folder_path="model", **patterns)
    inspect.signature(hub.snapshot_download).bind("me/fruit", allow_patterns=["a"], revision="main")


@pytest.fixture(scope="module", params=["vectors", "dna", "molecules", "texts"])
def loaded(request, saved):
    inputs = {"vectors": [1.0] * 5, "dna": "ACGTACGTAC", "molecules": "CCO", "texts": TEXTS[0]}
    return tg_mlc.load(saved(request.param)), inputs[request.param]


VALUES = [None, 3, 1.5, True, object(), int, {"a": 1}, {"a"}, iter("ab"), np.array(3.0)]
TENSORS = [torch.tensor(1.0), torch.ones(2, 5, device="meta"), torch.ones(2, 3, 1)]
SPARSE = [torch.eye(3).to_sparse(), sp.coo_matrix(np.eye(3)), sp.csr_array(np.eye(3))]
ARRAYS = [np.ones((2, 5), complex), np.array(["2020-01-01"], "M8[D]")]


def name_of_type(value):
    return type(value).__name__


@pytest.mark.parametrize("invalid", [*VALUES, *TENSORS, *SPARSE, *ARRAYS], ids=name_of_type)
def test_invalid_containers_of_inputs_are_refused(loaded, invalid):
    with pytest.raises(ValueError, match="Expected"):
        loaded[0].predict(invalid)


def test_missing_texts_count_as_empty_and_give_a_warning(saved):
    model = tg_mlc.load(saved("texts"))
    with pytest.warns(UserWarning, match=r"Missing texts .*2 of 3"):
        probabilities = model.probabilities([None, "red", "NA"])
    with pytest.warns(UserWarning, match=r"Missing texts .*1 of 1"):
        blank = model.predict([""])["probability"].to_numpy()[0]
    np.testing.assert_allclose(probabilities[[0, 2]], [blank, blank], atol=1e-6)


@pytest.mark.parametrize("invalid", [None, b"x", {}, [[1, 2]], object()], ids=name_of_type)
def test_an_invalid_input_among_valid_inputs_is_refused(loaded, invalid):
    model, valid = loaded
    if invalid is None and valid == TEXTS[0]:
        pytest.skip("a missing text has no words")
    with pytest.raises(ValueError, match="Expected"):
        model.predict([valid, invalid], on_error="raise")


def test_unreadable_inputs_give_blank_rows(saved):
    model = tg_mlc.load(saved("dna"))
    with pytest.warns(UserWarning, match="2 inputs cannot be read, .* row 1: .*'AC4T'.*; row 2: "):
        frame = model.predict(pd.Series(["ACGT", "AC4T", None], index=["x", "y", "z"]))
    for group in ("probability", "decision"):
        assert frame[group].isna().all(axis=1).tolist() == [False, True, True]
    assert list(frame.attrs["unreadable"]) == [1, 2]
    probability = model.predict(["ACGT"])["probability"].iloc[0]
    np.testing.assert_allclose(frame["probability"].iloc[0], probability)
    with pytest.raises(ValueError, match="'AC4T'"):
        model.predict(["ACGT", "AC4T"], on_error="raise")


def test_predictions_convert_to_json(saved):
    predictor = tg_mlc.load(saved("dna"))
    [record] = json.loads(json.dumps(predictor.predict(["ACGT"]).to_dict("records")))
    assert set(record) == {"probability", "decision", "threshold"}
    assert record["probability"].keys() == set(predictor.label_names)
    empty = predictor.predict([])
    assert (len(empty), empty.to_dict("records")) == (0, [])
    assert list(empty["probability"].columns) == predictor.label_names
    assert type(pickle.loads(pickle.dumps(empty))) is pd.DataFrame


@pytest.mark.skipif(sys.platform != "linux", reason="counts what /proc shows")
def test_loading_leaves_no_handle_no_thread_and_no_file(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def count_resources():
        return [len(list(Path(f"/proc/self/{name}").iterdir())) for name in ("fd", "task")]

    tg_mlc.load(folder)
    counts = count_resources()
    for _ in range(20):
        tg_mlc.load(folder)
    assert count_resources() == counts
    assert list(tmp_path.iterdir()) == []
