import re

import numpy as np
import pytest
import torch
from torch import nn

import tg_mlc
from tg_mlc.data import from_arrays
from tg_mlc.data.bags import with_attribute
from tg_mlc.graphs import tree
from tg_mlc.inference import Model, Query
from tg_mlc.inference.decisions import (
    HIERARCHY,
    Calibration,
    Coherence,
    GivenLabels,
    information,
)
from tg_mlc.metrics.coverage import Coverage
from tg_mlc.stacking.given import GivenLabelStacking

LABELS = ["above", "below", "beside"]


class Net(nn.Module):
    """Returns twice the first columns of inputs as logits."""

    def __init__(self, num_labels):
        super().__init__()
        self.weight = nn.Parameter(2 * torch.eye(num_labels))

    def forward(self, batch):
        return batch.x.view(batch.num_graphs, -1) @ self.weight


def samples(num_samples=300, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num_samples, 3)).astype(np.float32)
    y = (rng.random(x.shape) < 1 / (1 + np.exp(-x))).astype(np.float32)
    y[rng.random(y.shape) < 0.2] = np.nan
    return from_arrays(x, y, LABELS, kind="vector")


def network(hierarchy=None, given=None):
    model = Model.of(Net(3), LABELS, given=given)
    model.stage(Coherence).hierarchy = hierarchy
    return model


@pytest.mark.parametrize("per", ["label", "sample"])
def test_label_sets_keep_their_coverage_and_are_saved(per, tmp_path):
    predictor, new = network().conformalize(samples()), samples(2000, seed=1)
    frame = predictor.predict(new, coverage=0.8, coverage_per=per)
    np.testing.assert_array_equal(frame["decision"], frame["probability"] >= frame["threshold"])
    assert frame["decision"].to_numpy()[new.y.numpy() == 1].mean() == pytest.approx(0.8, abs=0.06)
    assert frame["threshold"].to_numpy()[0].std() > 0 or per == "sample"
    loaded = tg_mlc.load(predictor.save(tmp_path / "model"), Net)
    assert loaded.predict(new, coverage=0.8, coverage_per=per).equals(frame)
    assert loaded.predict(new).equals(predictor.predict(new))


def test_label_sets_of_a_hierarchy_are_coherent_and_lose_no_label():
    hierarchy = tree({"below": "above"}, LABELS)
    hierarchy.kind = HIERARCHY
    predictor, new = network(hierarchy).conformalize(samples()), samples(500, seed=1)
    tuner = predictor.decision.conformal.tuner(Coverage(0.8), LABELS)
    decision = predictor.predict(new, coverage=0.8)["decision"].to_numpy()
    assert (decision[:, 0] >= decision[:, 1]).all()
    assert (decision >= tuner.predict(predictor.probabilities(new))).all()


@pytest.mark.parametrize("hierarchical", [False, True])
def test_calibration_improves_probabilities_and_keeps_decisions(hierarchical, tmp_path):
    hierarchy = tree({"below": "above"}, LABELS)
    hierarchy.kind = HIERARCHY
    predictor = network(hierarchy if hierarchical else None).tune(samples(1000))
    new = samples(2000, seed=1)
    report, decisions = predictor.evaluate(new), predictor.predict(new)["decision"]
    calibrated = predictor.calibrate(samples(1000))
    # The logits of the network are twice the true logits.
    assert set(calibrated.stage(Calibration).methods) <= {"temperature", "platt"}
    assert "Calibration" in repr(calibrated)
    frame = calibrated.predict(new)
    assert frame.attrs["calibrated"]
    if hierarchical:
        assert (frame["probability"]["above"] >= frame["probability"]["below"]).all()
    else:
        assert calibrated.evaluate(new)["ece_macro"] < 0.5 * report["ece_macro"]
        assert calibrated.evaluate(new)["roc_auc_macro"] == report["roc_auc_macro"]
        assert frame["decision"].equals(decisions)
        loaded = tg_mlc.load(calibrated.save(tmp_path / "model"), Net)
        assert loaded.predict(new).equals(frame)
    with pytest.raises(ValueError, match="a model that is not calibrated"):
        calibrated.calibrate(samples(1000))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coverage": 1.2}, "'coverage' between 0 and 1, such as 0.9 (got 1.2)"),
        ({"coverage": 0.8, "coverage_per": "row"}, "'coverage_per' to be one of label, sample"),
        ({"coverage": 0.8, "given": {"above": 1}}, "no 'given' labels with a coverage"),
        ({"coverage": 0.8, "coherent": tree({"below": "above"}, LABELS)}, "'coherent' as in"),
        ({"coverage": 0.999}, "at least 999 samples to which one label applies"),
    ],
)
def test_coverages_that_cannot_be_promised_are_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        network().conformalize(samples()).predict(samples(4), **options)


def test_coverage_without_held_out_scores_is_refused():
    with pytest.raises(ValueError, match=r"0.8 per label .*'conformalize'.*coverage_share=0.2"):
        network().predict(samples(4), coverage=0.8)


def test_a_hierarchy_may_determine_all_other_labels():
    hierarchy = tree({"below": "above", "beside": "above"}, LABELS)
    hierarchy.kind = HIERARCHY
    engine = GivenLabelStacking().fit(np.zeros((9, 3)), np.eye(3).repeat(3, axis=0))
    predictor, new = network(hierarchy, engine), samples(4)
    assert (predictor.probabilities(new, given={"above": 0}) == 0).all()
    with pytest.raises(ValueError, match="all 3 labels given"):
        predictor.probabilities(new, given=dict.fromkeys(LABELS, 0))


@pytest.mark.parametrize(
    ("masks", "value", "num_warnings"), [("present", 0, 1), ("present", 1, 0), ("both", 0, 0)]
)
def test_only_models_of_present_labels_warn_of_absent_labels(masks, value, num_warnings, recwarn):
    engine = GivenLabelStacking(masks).fit(np.zeros((9, 3)), np.eye(3).repeat(3, axis=0))
    network(given=engine).predict(samples(4), given={"below": value})
    assert sum("below as absent" in str(warning.message) for warning in recwarn) == num_warnings


def test_given_labels_of_samples_are_refused_with_a_coverage():
    dataset = with_attribute(samples(), "given", samples().y)
    predictor = network().conformalize(samples())
    with pytest.raises(ValueError, match="no 'given' labels with a coverage"):
        predictor.predict(dataset, coverage=0.8)


def test_a_model_of_given_labels_is_saved_unless_a_tensor_has_nan(tmp_path):
    new, given = samples(20, seed=1), np.full((20, 3), np.nan)
    given[:, 0] = 1.0
    model = tg_mlc.auto(samples(200), seconds=0)
    path, parts = model.save(tmp_path / "model"), model.stage(GivenLabels).engine.parts
    expected, loaded = model.probabilities(new, given=given), tg_mlc.load(path)
    np.testing.assert_allclose(loaded.probabilities(new, given=given), expected, atol=1e-6)
    parts["neighbours"].y[0, 0] = torch.nan
    with pytest.raises(ValueError, match=r"neighbours\.y' hold 1 of 600 numbers that are NaN"):
        model.save(path)
    tg_mlc.load(path)


def told_by(model, new, given):
    """Returns the warnings of a prediction about given labels that tell little."""
    warnings = model.answer(new, Query(given=given)).warnings
    return [message for message in warnings if "tell nearly nothing" in message]


def coins(num_samples):
    """Returns samples whose inputs, zeros, say nothing of their labels."""
    y = np.random.default_rng(0).integers(0, 2, (num_samples, 3)).astype(np.float32)
    return from_arrays(np.zeros_like(y), y, LABELS, kind="vector")


@pytest.fixture(scope="module")
def dependent():
    """Returns a model in which "below" copies "above", and "beside" depends on neither."""
    y = coins(600).y.double().numpy()
    y[:, 1] = y[:, 0]
    return network(given=GivenLabelStacking().fit(np.zeros(y.shape), y))


def test_given_labels_that_tell_nothing_are_named_once(dependent, monkeypatch):
    new = coins(8)
    assert told_by(dependent, new, {"above": 1}) == []
    assert told_by(dependent, new, None) == []
    expected = (
        "The given labels beside tell nearly nothing of the other labels, less than 2.5% of what "
        "is uncertain about them; predictions are nearly the same without them"
    )
    assert told_by(dependent, new, {"beside": 0}) == [expected]
    by_row = np.full((8, 3), np.nan)
    by_row[:4, 0], by_row[4:, 2] = 1, 1
    assert told_by(dependent, new, by_row) == [expected]
    assert told_by(dependent, new, {"above": 1, "beside": 1}) == []
    monkeypatch.setattr("tg_mlc.inference.pipeline.ROWS", 3)
    assert told_by(dependent, new, by_row) == [expected]
    with pytest.warns(UserWarning, match="labels beside tell nearly nothing") as messages:
        dependent.predict(new, given={"beside": 1})
    assert len(messages) == 1


@pytest.mark.parametrize(("parts", "is_named"), [(None, False), (["closed form"], True)])
def test_given_labels_that_tell_only_together_are_named_by_pairwise_models(parts, is_named):
    y = np.indices((2, 2)).reshape(2, 4).T[np.arange(400) % 4].astype(float)
    y = np.column_stack([y, y[:, 0] != y[:, 1]])
    model = network(given=GivenLabelStacking(names=parts).fit(np.zeros(y.shape), y))
    named = ["above, below" in text for text in told_by(model, coins(4), {"above": 1, "below": 1})]
    assert named == [True] * is_named


def test_the_information_is_the_expected_fall_of_cross_entropy():
    b, z = torch.tensor([[0.0, 1.0, -2.0]] * 2).double(), torch.tensor([[3.0, 0.5, -2.0]] * 2)
    given = torch.tensor([[torch.nan, torch.nan, 1.0], [torch.nan] * 3])
    told = information(b, z.double(), given)
    p, q = b.sigmoid()[0, :2], z.double().sigmoid()[0, :2]
    expected = (q * (q / p).log() + (1 - q) * ((1 - q) / (1 - p)).log()).sum()
    entropy = -(p * p.log() + (1 - p) * (1 - p).log()).sum()
    torch.testing.assert_close(told, torch.tensor([[expected, entropy], [0.0, 0.0]]).double())
    infinite = torch.tensor([[torch.inf, -torch.inf, 0.0]])
    assert information(infinite, infinite, given[:1]).tolist() == [[0.0, 0.0]]
