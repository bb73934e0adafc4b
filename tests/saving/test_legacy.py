import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import global_add_pool

import tg_mlc
from tg_mlc.saving import Predictor, legacy, read_checkpoint
from tg_mlc.training import MultiLabelModule

FOLDERS = sorted((Path(__file__).parent / "folders").iterdir())


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def folder(request):
    return request.param


def expected_of(folder):
    return json.loads((folder / "expected.json").read_text())


def test_folders_of_earlier_versions_predict_as_before(folder):
    expected, predictor = expected_of(folder), tg_mlc.load(folder / "model")
    assert predictor.label_names == expected["label_names"]
    frame = predictor.predict(expected["raw"])
    np.testing.assert_allclose(frame["probability"], expected["probability"], atol=1e-4)
    assert (frame["decision"].to_numpy() == np.array(expected["decision"], dtype=bool)).all()
    for metric, thresholds in expected["thresholds"].items():
        found = predictor.thresholds(legacy.VALUES["metric"].get(metric, metric))
        np.testing.assert_allclose(found, thresholds, atol=1e-6)


def test_folders_of_earlier_versions_are_saved_in_todays_form(folder, tmp_path):
    predictor = tg_mlc.load(folder / "model")
    stored = json.loads((predictor.save(tmp_path) / "model.json").read_text())
    assert stored["format"] == "tg_mlc.model/3"
    assert not {"miF1", "TunedScores", "evidence_skip"} & words_in(stored)
    np.testing.assert_array_equal(
        tg_mlc.load(tmp_path).scores(expected_of(folder)["raw"]), predictor.scores(expected_of(folder)["raw"])
    )


def test_given_labels_are_taken_as_before():
    folders = [folder for folder in FOLDERS if "given" in expected_of(folder)]
    assert folders  # in one of which they were called known labels
    for folder in folders:
        expected, predictor = expected_of(folder), tg_mlc.load(folder / "model")
        frame = predictor.predict(expected["raw"], given=expected["given"])
        np.testing.assert_allclose(frame["probability"], expected["probability_given"], atol=1e-4)


def test_label_sets_cover_as_before():
    folders = [folder for folder in FOLDERS if "sets" in expected_of(folder)]
    assert folders
    for folder in folders:
        expected, predictor = expected_of(folder), tg_mlc.load(folder / "model")
        found = predictor.predict(expected["raw"], coverage=expected["coverage"])["decision"]
        np.testing.assert_array_equal(found, expected["sets"])


def test_a_checkpoint_of_an_earlier_version_is_read():
    folder = next(folder for folder in FOLDERS if folder.name == "checkpoint_texts")
    checkpoint = read_checkpoint(folder / "best.ckpt")
    predictor = tg_mlc.load(folder / "model")
    assert checkpoint.label_names == predictor.label_names
    assert list(checkpoint.tuners) == ["subset_accuracy", "hamming_accuracy", "f1_samples", "f1_micro", "f1_macro"]
    weights = predictor.scorer.model.state_dict()
    assert weights.keys() == checkpoint.state_dict.keys()
    assert all(torch.equal(value, checkpoint.state_dict[name]) for name, value in weights.items())
    module = MultiLabelModule.load_from_checkpoint(folder / "best.ckpt", model=predictor.scorer.model)
    assert module.tuners.keys() == checkpoint.tuners.keys()
    assert module.hparams["lr_schedule"] == "cosine"
    samples = checkpoint.preprocessor.transform(expected_of(folder)["raw"])
    assert samples[0].base_scores.shape == (1, 3, 2)


def test_what_users_named_stays():
    config = {"evidence_skip": 1, "objective": {"max_known": 0.5}}
    weights = {"skip.weight": 0, "known_labels.lin.weight": 0, "skip.scale": 0}
    assert legacy.upgrade({"config": config, "label_names": ["ACC"], "state_dict": weights}) == {
        "config": config,
        "label_names": ["ACC"],
        "state_dict": {"skip.weight": 0, "known_labels.lin.weight": 0, "score_skip.scale": 0},
    }


def words_in(value):
    if isinstance(value, dict):
        return set(value).union(*map(words_in, value.values()))
    return set().union(*map(words_in, value)) if isinstance(value, list) else {value}


@pytest.mark.parametrize(
    ("stored", "today"),
    [
        ({"options": {"encoder": "emb", "heads": 2}}, {"options": {"node_messages": False, "heads": 2}}),
        ({"options": {"encoder": "fmp"}}, {"options": {"node_messages": True}}),
        ({"options": {"encoder": "vectors"}}, {"options": {"node_messages": False, "atoms": False}}),
        ({"options": {"encoder": "mine"}}, {"options": {"encoder": "mine"}}),
        ({"options": {"window": {"tau": 3}}}, {"options": {"window": {"window_size": 3}}}),
        (
            {"name": "EventPreprocessor", "state": {"tau": None, "num_bins": 4}},
            {"name": "EventPreprocessor", "state": {"window_size": None, "num_bins": 4}},
        ),
        ({"class": "SequenceObjective"}, {"class": "LabelSequenceObjective"}),
    ],
)
def test_options_have_todays_names(stored, today):
    assert legacy.upgrade(stored) == today


class Skipping(torch.nn.Module):
    """A network of one's own with a part that was the name of a part of this package."""

    def __init__(self):
        super().__init__()
        self.skip = torch.nn.Linear(2, 2)

    def forward(self, data):
        return global_add_pool(self.skip(data.x), data.batch)


def test_only_the_first_format_has_other_names(tmp_path, monkeypatch):
    data = [Data(x=torch.ones(1, 2))]
    predictor = Predictor(Skipping(), label_names=["a", "b"])
    expected = predictor.scores(data)
    with monkeypatch.context() as patch:
        patch.setattr("tg_mlc.saving.folder.FORMAT", "tg_mlc.model/2")
        predictor.save(tmp_path)
    np.testing.assert_array_equal(tg_mlc.load(tmp_path, Skipping).scores(data), expected)
