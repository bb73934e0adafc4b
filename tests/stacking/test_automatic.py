from __future__ import annotations

import json
import random
import tempfile

import numpy as np
import pandas as pd
import pytest
import torch

import tg_mlc
from tests.fresh import run_python
from tests.quick import train_little
from tg_mlc.data import MoleculeDataset, from_arrays, tokenize
from tg_mlc.data.bags import with_attribute
from tg_mlc.data.dataset import ArrayDataset
from tg_mlc.data.records import Records, Tokens
from tg_mlc.graphs import fully_connected, tree
from tg_mlc.inference import Model, Query, pipeline
from tg_mlc.inference.decisions import Calibration
from tg_mlc.inference.features import Classifiers
from tg_mlc.inputs.dna_dataset import letter_codes
from tg_mlc.metrics import DECISION_METRICS, LabelSets, subset_accuracy
from tg_mlc.stacking import auto, automatic, features
from tg_mlc.stacking.automatic import _values, classifier_scores

pytest.importorskip("sklearn")
pytest.importorskip("lightning")


def vectors(num_samples=90, seed=0):
    x = np.random.default_rng(seed).normal(size=(num_samples, 4)).astype(np.float32)
    y = np.stack([x[:, 0] > 0, x[:, 1] > 0.5], axis=1).astype(np.float32)
    return from_arrays(x, y, kind="vector")


def saved(model):
    """Saves a model to a folder and returns the loaded model."""
    with tempfile.TemporaryDirectory() as folder:
        return tg_mlc.load(model.save(folder))


@pytest.fixture
def short(monkeypatch):
    """Limits training to one epoch."""
    train_little(monkeypatch, max_epochs=1)


@pytest.fixture(scope="module")
def fitted():
    with pytest.MonkeyPatch.context() as patched:
        train_little(patched, max_epochs=5)
        return auto(vectors(), seconds=20)


@pytest.mark.usefixtures("short")
def test_the_random_state_of_the_caller_is_left_alone():
    states = random.getstate(), torch.get_rng_state()
    auto(vectors(40), seconds=5)
    assert random.getstate() == states[0]
    assert torch.equal(torch.get_rng_state(), states[1])


@pytest.mark.parametrize("options", [{}, {"coverage_share": 0.5}])
def test_too_few_samples_are_counted(options):
    size = 1 + len(options)
    dataset = from_arrays(np.ones((size, 3)), np.ones((size, 2)), ["a", "b"], kind="vector")
    with pytest.raises(ValueError, match=rf"at least 2 samples to train on \(got 1 of {size}\)"):
        auto(dataset, seconds=0, **options)


def test_a_label_graph_without_parents_is_no_hierarchy():
    dataset = vectors()
    dataset.label_graph = fully_connected(dataset.label_names)
    model = auto(dataset, seconds=0)
    assert model.hierarchy is None
    assert model.probabilities(dataset).shape == dataset.y.shape


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("parents", [False, True])
def test_kernels_of_many_labels_use_correlations_only_without_a_hierarchy(monkeypatch, parents):
    monkeypatch.setattr(automatic, "MANY_LABELS", 1)
    dataset = vectors()
    dataset.label_graph = tree([tuple(dataset.label_names)]) if parents else None
    model = auto(dataset, seconds=10.0)
    assert list(model.stage(Classifiers).features.classifiers) == ["ridge", "trees", "network"]
    ridge = model.stage(Classifiers).features.classifiers["ridge"]
    assert any(setting[2:] == (True,) for _, setting, _ in ridge.tried) != parents
    expected = model.probabilities(dataset)
    np.testing.assert_allclose(saved(model).probabilities(dataset), expected, atol=1e-5)


def test_parts_without_known_labels_do_not_count():
    y = np.array([[1.0], [np.nan], [0.0], [1.0]])
    values = _values(y, np.array([[0.9], [0.5], [0.1], [0.8]]))
    assert len(values) == 3
    assert np.isfinite(values).all()


def test_new_samples_are_predicted_by_all_parts(fitted):
    evaluation = fitted.evaluate(vectors(seed=1))
    assert evaluation["roc_auc_macro"] > 0.95
    assert evaluation["f1_micro"] > 0.8
    assert len(fitted.networks) == fitted.report["lamp"]["folds"] >= 2
    assert set(fitted.decision.tuners) == set(DECISION_METRICS)
    assert len(fitted.report["weights"]) == 5


def test_held_out_samples_give_label_sets_their_coverage(monkeypatch):
    train_rows, init = [], automatic._Fit.__init__

    def record(self, samples, *others):
        train_rows.extend(samples.rows("x").tolist())
        init(self, samples, *others)

    monkeypatch.setattr(automatic._Fit, "__init__", record)
    dataset = vectors(120)
    model = saved(auto(dataset, seconds=0, coverage_share=0.5))
    assert len(train_rows) == 60
    rows = [row for row, x in enumerate(dataset.rows("x").tolist()) if x not in train_rows]
    held_out = dataset[rows]
    for per in ("label", "sample"):
        frame = model.predict(held_out, coverage=0.8, coverage_per=per)
        is_covered = frame["decision"].to_numpy()[held_out.y.numpy() == 1]
        assert 0.8 <= is_covered.mean() < 1.0


@pytest.mark.usefixtures("short")
def test_calibrated_models_report_methods_and_keep_given_labels():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3)).astype(np.float32)
    y = (rng.random((200, 2)) < 1 / (1 + np.exp(-2 * x[:, :2]))).astype(np.float32)
    dataset = from_arrays(x, y, kind="vector")
    model = saved(auto(dataset, seconds=0, calibrate=True))
    assert sum(model.report["calibration"].values()) == 2
    calibration = model.stage(Calibration)
    scores = model.logits(model.prepare(dataset)).sigmoid()
    expected = calibration.free.probabilities(scores).numpy()
    np.testing.assert_allclose(model.probabilities(dataset), expected, rtol=1e-12)
    assert calibration.masked is not None
    given = np.where(np.arange(200)[:, None] % 3 == [0, 1], y, np.nan)
    mask = ~np.isnan(given)
    np.testing.assert_array_equal(model.probabilities(dataset, given=given)[mask], given[mask])


FRESH = """
import json, sys
import numpy as np
import tg_mlc

armed = []

def refuse(event, arguments):
    if armed and event == "pickle.find_class":
        raise AssertionError(arguments)

sys.addaudithook(refuse)
model, raw, out = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
tg_mlc.load(model).probabilities(raw)  # Numba unpickles its own cache
armed.append(True)
np.save(out, tg_mlc.load(model).probabilities(raw))
armed.clear()
"""


def scores_of_a_fresh_process(model, raw, folder):
    """Saves a model and predicts in a process that unpickles nothing."""
    path = folder / "scores.npy"
    run_python(FRESH, [str(model.save(folder / "model")), json.dumps(raw), str(path)])
    return np.load(path)


def test_saved_model_predicts_the_same_for_samples_and_raw_rows(fitted, tmp_path):
    new, restored = vectors(seed=1), saved(fitted)
    rows = new.rows("x").numpy()
    for raw in (rows, new):
        np.testing.assert_array_equal(restored.probabilities(raw), fitted.probabilities(new))
        frame = restored.predict(raw, metric="f1_macro")
        pd.testing.assert_frame_equal(frame, fitted.predict(new, metric="f1_macro"))
    assert restored.label_names == fitted.label_names
    assert restored.report == fitted.report
    assert str(restored) == str(fitted)
    assert type(restored) is type(fitted) is Model
    scores = scores_of_a_fresh_process(fitted, rows.tolist(), tmp_path)
    np.testing.assert_array_equal(scores, fitted.probabilities(rows.tolist()))
    content = (tmp_path / "model" / "model.json").read_text()
    assert "samples" in content
    assert '"sample"' not in content  # No training sample is saved.


@pytest.mark.parametrize("rows", [30, 89, 90])
def test_features_are_computed_for_few_rows_at_a_time(rows, fitted, monkeypatch):
    new, sizes = vectors(seed=1), []
    cls, expected = features.StackingFeatures, fitted.probabilities(new)
    transform = cls.transform
    monkeypatch.setattr(pipeline, "ROWS", rows)
    monkeypatch.setattr(cls, "transform", lambda *a: sizes.append(len(a[1])) or transform(*a))
    np.testing.assert_allclose(fitted.probabilities(new), expected, rtol=1e-4)
    assert sum(sizes) == 90
    assert max(sizes) <= rows


def test_a_loaded_model_decides_by_label_sets():
    x = np.random.default_rng(0).normal(size=(150, 3)).astype(np.float32)
    noisy = x + np.random.default_rng(1).normal(size=x.shape)
    y = np.eye(3, dtype=np.float32)[noisy.argmax(axis=1)]
    model = auto(from_arrays(x, y, kind="vector"), seconds=0)
    assert isinstance(model.decision.tuners["subset_accuracy"], LabelSets)
    decisions = model.predict(x, metric="subset_accuracy")["decision"].to_numpy()
    predictor = saved(model)
    assert (decisions.sum(axis=1) == 1).all()
    frame = predictor.predict(x, metric="subset_accuracy")
    np.testing.assert_array_equal(frame["decision"], decisions)
    assert np.isnan(predictor.thresholds("subset_accuracy")).all()
    assert not np.isnan(predictor.thresholds("f1_micro")).any()
    assert frame.to_dict("records")[0]["threshold"] == dict.fromkeys(model.label_names)
    assert predictor.evaluate(x, y)["subset_accuracy"] == subset_accuracy(y, decisions)
    first_two = predictor.decide(predictor.probabilities(x[:2]), Query(metric="subset_accuracy"))
    np.testing.assert_array_equal(first_two, decisions[:2])


def test_classifier_scores_hold_the_scores_of_each_classifier(fitted):
    scores = classifier_scores(fitted, vectors(seed=1))
    linear = ["linear SVM", "logistic regression"]
    assert list(scores) == [*linear, "kernel ridge regression", "random forest"]
    assert all(entry.held_out.shape == entry.scores.shape == (90, 2) for entry in scores.values())
    with pytest.raises(RuntimeError, match="a model that was fitted here"):
        classifier_scores(saved(fitted), vectors(seed=1))


def test_only_classifiers_are_used_where_training_diverges():
    message = "classifiers alone, because LaMP's training diverged: .* lower 'lr'"
    with pytest.warns(UserWarning, match=message):
        model = auto(vectors(), seconds=20, search=lambda attempt, usual: {"lr": 1e30})
    assert model.report["lamp"] is None
    assert model.report["without_lamp"].startswith("its training diverged: ")
    assert np.isfinite(model.probabilities([[1.0, 0, 0, 0]])).all()


def texts():
    raw = ["red apple pie", "green pear tart", "red cherry pie", "green lime tart"] * 8
    y = np.array([["red" in text, "pear" in text] for text in raw], dtype=np.float32)
    return from_arrays([tokenize(text) for text in raw], y, kind="sequence")


def molecules():
    pytest.importorskip("rdkit")
    chains = ["C" * length for length in range(2, 12)]
    smiles = [*chains, *(f"{chain}C(=O)O" for chain in chains), *(f"{chain}CN" for chain in chains)]
    y = torch.tensor(np.repeat([[0.0, 0], [1, 0], [0, 1]], 10, axis=0), dtype=torch.float)
    return MoleculeDataset.from_smiles(smiles, y, ["acid", "amine"])


def dna():
    random = np.random.default_rng(0)
    raw = ["".join(random.choice(list("ACGT"), 40)) for _ in range(60)]
    raw = [text[:20] + "GATTACA" * (index % 2) + text[20:] for index, text in enumerate(raw)]
    y = np.array([[index % 2] for index in range(60)], dtype=np.float32)
    letters = Tokens.of([letter_codes(text) for text in raw])
    return ArrayDataset(Records(letters, y, ["bound"], [*"ACGTN"]).to_samples())


@pytest.mark.parametrize(
    ("make", "new", "expected"),
    [
        (texts, ["a red apple", "the green pear"], [[1, 0], [0, 1]]),
        pytest.param(
            *(molecules, ["CCCCCCC(=O)O", "CCCCCCN"], [[1, 0], [0, 1]]), marks=pytest.mark.slow
        ),
        pytest.param(
            *(dna, ["AAAAAAAGATTACAAAA", "TTTTTGTAATCTTTT", "CCCCCCCCCCCCCCC"], [[1], [1], [0]]),
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.usefixtures("short")
def test_texts_molecules_and_dna_work_with_and_without_lamp(make, new, expected, tmp_path):
    dataset = make()
    without_lamp = auto(dataset, seconds=0)
    assert not without_lamp.networks
    assert without_lamp.report["lamp"] is None
    assert without_lamp.report["without_lamp"] == "the time was too short to train it"
    assert without_lamp.predict(new)["decision"].astype(int).to_numpy().tolist() == expected
    assert (saved(without_lamp).probabilities(dataset) == without_lamp.probabilities(dataset)).all()
    with_lamp = auto(dataset, seconds=60)
    assert with_lamp.networks
    scores = scores_of_a_fresh_process(with_lamp, new, tmp_path)
    np.testing.assert_array_equal(scores, with_lamp.probabilities(new))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"given": {"label_7": 1}}, r"'given' to name labels .*\(got \['label_7'\]\)"),
        ({"given": vectors().y[:3]}, "'given' with a row for each of"),
    ],
)
def test_unknown_or_misshapen_given_labels_are_refused(options, message, fitted):
    with pytest.raises(ValueError, match=message):
        fitted.predict(vectors(), **options)


def test_options_are_checked_before_a_fit():
    with pytest.raises(ValueError, match="'given_masks' to be one of both, present"):
        auto(vectors(), given_masks="absent")
    with pytest.raises(ValueError, match=r"'coverage_share' to be a number in \[0, 1\)"):
        auto(vectors(), coverage_share=1.0)


def test_given_labels_stay_and_rows_without_given_labels_do_not_change(tmp_path):
    samples, coin = vectors(seed=1), np.random.default_rng(0).random(90) < 0.5
    fitted = auto(from_arrays(samples.rows("x").numpy(), np.stack([coin, coin], axis=1)), seconds=0)
    names = fitted.label_names
    given = np.full((len(samples), len(names)), np.nan)
    scores = fitted.probabilities(samples)
    np.testing.assert_array_equal(fitted.probabilities(samples, given=given), scores)
    given[0, 0], given[1, 1] = 1.0, 0.0
    given_scores = fitted.probabilities(samples, given=given)
    assert (given_scores[0, 0], given_scores[1, 1]) == (1.0, 0.0)
    np.testing.assert_array_equal(given_scores[2:], scores[2:])
    assert given_scores[0, 1] > 0.8
    assert given_scores[1, 0] < 0.2
    predictor = tg_mlc.load(fitted.save(tmp_path / "model"))
    frame = pd.DataFrame({names[0]: given[:, 0], names[1]: given[:, 1]})
    np.testing.assert_array_equal(predictor.probabilities(samples, given=frame), given_scores)
    decisions = predictor.predict(samples[:1], given={names[0]: 1})["decision"]
    assert decisions[names[0]].tolist() == [True]
    with_given = with_attribute(samples, "given", torch.from_numpy(given).float())
    np.testing.assert_array_equal(fitted.probabilities(with_given), given_scores)
    assert fitted.evaluate(with_given).num_unknown == 2


def test_labels_of_samples_are_matched_by_name():
    samples = vectors()
    model = auto(samples, seconds=0)
    x, y, names = samples.rows("x").numpy(), samples.y.numpy(), samples.label_names
    assert model.evaluate(samples)["roc_auc_macro"] > 0.9
    reordered = from_arrays(x, y[:, ::-1], names[::-1], kind="vector")
    expected = model.evaluate(samples).values
    assert model.evaluate(reordered).values == pytest.approx(expected, nan_ok=True)
    message = r"samples with the labels of the model \(got others, or too few: \['label_1', 'other'"
    with pytest.raises(ValueError, match=message):
        model.evaluate(from_arrays(x, y, [names[0], "other"], kind="vector"))
