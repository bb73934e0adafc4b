import time

import numpy as np
import pandas as pd
import pytest
import torch

import tg_mlc
from tg_mlc.data import from_arrays
from tg_mlc.graphs import fully_connected
from tg_mlc.joint.suggesting import Gains, entropy
from tg_mlc.nn import ResidualMessages
from tg_mlc.stacking.given import GivenLabelStacking

NAMES = ["a", "copy", "noise", "certain"]


@pytest.fixture(scope="module")
def model():
    """Returns a model of inputs without information: "copy" repeats "a", "noise" is a coin."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, (400, 4)).astype(float)
    y[:, 1] = np.where(rng.random(400) < 0.05, 1 - y[:, 0], y[:, 0])
    y[:, 3] = rng.random(400) < 0.02
    dataset = from_arrays(rng.standard_normal((400, 3)), y, label_names=NAMES)
    return tg_mlc.auto(dataset, seconds=0)


X = np.random.default_rng(1).standard_normal((3, 3))


def test_the_label_that_tells_most_comes_first(model):
    frame = model.suggest(X, k=4)
    assert list(frame.columns) == ["row", "rank", "label", "probability", "bits", "cost", "reason"]
    for _, sample in frame.groupby("row"):
        labels = sample.sort_values("rank")["label"].tolist()
        assert labels[0] in ("a", "copy")
        assert labels[1] == "noise"  # The other of the two is almost known by then.
        assert labels[3] == "certain"
        assert sample["bits"].is_monotonic_decreasing
    first = frame[frame["rank"] == 0].iloc[0]
    assert 1.4 < first["bits"] < 2  # one bit of its own, and most of the bit of its copy
    assert "tells of " + {"a": "copy", "copy": "a"}[first["label"]] in first["reason"]
    assert not frame[frame["label"] == "noise"]["reason"].str.contains("tells of").any()


def test_gains_agree_with_the_realised_fall_of_cross_entropy():
    rng = np.random.default_rng(0)
    score = rng.standard_normal((1500, 1)) + 0.7 * rng.standard_normal((1500, 6))
    y, b = (score > 0).astype(float), np.zeros((1500, 6))
    stacking = GivenLabelStacking(names=["closed form"]).fit(b[:1000], y[:1000])
    probability = torch.full((500, 6), 0.5, dtype=torch.double)
    is_target = torch.ones(6, dtype=torch.bool)
    gains = Gains(stacking.parts["closed form"], probability, probability < 0, is_target)
    labels = torch.arange(6).expand(500, -1)
    bits = float(gains.information(labels, labels)[:, 0].sum(dim=1).mean())
    given = np.where(np.arange(6) == 0, y[1000:], np.nan)
    after = stacking.decision_function(b[1000:], given)
    loss = np.logaddexp(0, np.where(y[1000:] == 1, -after, after))[:, 1:] / np.log(2)
    assert bits == pytest.approx(6 - loss.sum(axis=1).mean(), rel=0.2)


def test_samples_with_unequal_sets_of_open_labels_do_not_change_each_other():
    generator = torch.Generator().manual_seed(0)
    y = (torch.rand(200, 7, generator=generator) > 0.5).float()
    messages = ResidualMessages(fully_connected(7)).start_from_residuals(torch.zeros(200, 7), y)
    p = torch.rand(5, 7, generator=generator).double()
    is_known, is_target, is_candidate = torch.rand(3, 5, 7, generator=generator) > 0.4
    is_candidate[0], is_target[1] = False, False
    together = Gains(messages, p, is_known, is_target)
    alone = [Gains(messages, p[[i]], is_known[[i]], is_target[[i]]) for i in range(5)]
    costs = torch.arange(1, 8).double()
    for _ in range(3):
        separate = [g.look_up(is_candidate[[i]], costs)[0] for i, g in enumerate(alone)]
        for suggestion, expected in zip(
            together.look_up(is_candidate, costs), separate, strict=True
        ):
            assert (suggestion is None) == (expected is None)
            if expected is not None:
                assert suggestion == (*expected[:2], pytest.approx(expected[2]), expected[3])
    assert separate[0] is None


def test_given_labels_are_not_suggested_and_count(model):
    frame = model.suggest(X, given={"a": 1}, k=4)
    assert "a" not in set(frame["label"])
    assert set(frame[frame["rank"] == 0]["label"]) == {"noise"}


def test_targets_and_candidates_restrict_the_suggestions(model):
    frame = model.suggest(X, targets=["copy"], k=2)
    assert frame[frame["rank"] == 0]["label"].tolist() == ["copy"] * 3
    frame = model.suggest(X, targets=["copy"], candidates=["a", "noise"])
    assert frame["label"].tolist() == ["a"] * 3
    assert frame["reason"].tolist() == ["tells of copy"] * 3


def test_costs_and_a_budget_choose_among_all_samples(model):
    frame = model.suggest(X, cost={"a": 10, "copy": 10})
    assert set(frame["label"]) == {"noise"}
    frame = model.suggest(X, k=4, cost={"noise": 3}, budget=4)
    assert frame["cost"].sum() <= 4
    assert frame["row"].nunique() == 3
    ratio = frame["bits"] / frame["cost"]
    assert ratio.is_monotonic_decreasing


def test_labels_that_a_budget_cannot_pay_for_stand_in_nobodys_way(model):
    dear = {"noise": 1.01, "a": 1.01, "copy": 1.01}
    assert model.suggest(X, k=4, cost=dear, budget=1)["label"].tolist() == ["certain"]


def test_samples_without_a_label_left_are_counted(model):
    everything = dict.fromkeys(NAMES[:3], 1.0)
    with pytest.warns(UserWarning, match="1 of 3 samples have no label left to look up"):
        frame = model.suggest(X, given=[everything, {}, {}], candidates=NAMES[:3])
    assert frame["row"].tolist() == [1, 2]


def test_entropy_is_in_bits():
    assert entropy(torch.tensor([0.0, 0.5, 1.0])).tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"targets": ["b"]}, "'targets' among labels of the model"),
        ({"targets": "a"}, "'targets' to be a list of labels"),
        ({"candidates": []}, "'candidates' to be a list of labels"),
        ({"cost": {"b": 1}}, "'cost' among labels of the model"),
        ({"cost": {"a": 0}}, "'cost' to be positive numbers"),
        ({"cost": {"a": "1"}}, "'cost' to be positive numbers"),
        ({"cost": 2}, "'cost' to map labels to numbers"),
        ({"targets": 1}, "'targets' to be a list of labels"),
        ({"budget": 0}, "'budget' to be a number above 0"),
        ({"budget": True}, "'budget' to be a number above 0"),
        ({"budget": "4"}, "'budget' to be a number above 0"),
        ({"budget": 0.5}, "'budget' to pay for one of the labels .got 0.5, .* costs 1"),
        ({"k": 0}, "'k' to be a whole number of at least 1"),
        ({"given": dict.fromkeys(NAMES, 1)}, "labels that are left to predict"),
        ({"given": {"a": 1}, "candidates": ["a"]}, "'candidates' with labels that are not given"),
        ({"given": {"a": 1}, "targets": ["a"]}, "'targets' with labels that are not given"),
    ],
)
def test_invalid_questions_are_refused(model, options, message):
    with pytest.raises(ValueError, match=message):
        model.suggest(X, **options)


def test_a_model_without_residual_messages_is_refused(model):
    one = from_arrays(X, np.array([[0.0], [1.0], [0.0]]), label_names=["a"])
    with pytest.raises(ValueError, match="how given labels change others"):
        tg_mlc.auto(one, seconds=0).suggest(X)


def test_more_steps_than_labels_take_no_time(model):
    start = time.perf_counter()
    assert len(model.suggest(X, k=1_000_000)) == 12
    assert time.perf_counter() - start < 5


def test_unreadable_rows_of_a_reading_get_no_suggestions(model):
    rows = [X[0].tolist(), ["word", 0.0, 0.0], X[1].tolist()]
    frame = model.suggest(model.read(rows), given=[{"a": 1}, {}, {}])
    assert frame["row"].tolist() == [0, 2]
    pd.testing.assert_frame_equal(
        frame.drop(columns="row"), model.suggest(X[:2], given=[{"a": 1}, {}]).drop(columns="row")
    )


def test_without_a_readable_input_nothing_is_suggested_or_audited(model):
    nothing = model.read([["word", 0.0, 0.0]])
    for ask in (model.suggest, lambda raw: model.audit(raw, [[1, 0, 1, 0]])):
        with pytest.raises(ValueError, match="at least one input that can be read"):
            ask(nothing)


def test_warnings_about_the_inputs_are_shown():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"colour": rng.choice(["red", "blue"], 40), "size": rng.random(40)})
    y = rng.integers(0, 2, (40, 2))
    fitted = tg_mlc.auto(from_arrays(frame, y, label_names=["a", "b"]), seconds=0)
    new = frame.head(30).assign(colour="green")
    for ask in (fitted.suggest, lambda raw: fitted.audit(raw, y[:30])):
        with pytest.warns(UserWarning, match="green"):
            ask(new)
