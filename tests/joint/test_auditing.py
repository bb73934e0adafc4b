import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score

import tg_mlc
from tg_mlc import stacking
from tg_mlc.data import from_arrays
from tg_mlc.graphs import fully_connected
from tg_mlc.joint import audit, auditing
from tg_mlc.joint.auditing import (
    error_probability,
    error_rates,
    joint_logits,
    rows_with_errors,
    swapped_probability,
)
from tg_mlc.nn import ResidualMessages

NAMES = list("abcdef")


def planted(num_samples=600, seed=0):
    """Returns inputs, labels that share a factor beside the inputs, and logits of the inputs."""
    rng = np.random.default_rng(seed)
    x, factor = rng.standard_normal((num_samples, 2)), rng.standard_normal((num_samples, 1))
    score = 2 * x[:, [0]] + 2 * factor + 0.3 * rng.standard_normal((num_samples, 6))
    return x, (score > 0).astype(float), np.repeat(1.6 * x[:, [0]], 6, axis=1)


def flipped(y, fraction=0.05, seed=1):
    wrong = np.random.default_rng(seed).random(y.shape) < fraction
    return np.where(wrong, 1 - y, y), wrong


def messages_for(b, y):
    from torch import from_numpy

    messages = ResidualMessages(fully_connected(y.shape[1]))
    return messages.start_from_residuals(from_numpy(b).float(), from_numpy(y).float())


def test_other_labels_find_flipped_ones_that_inputs_do_not():
    x, y, b = planted()
    recorded, wrong = flipped(y)
    result = audit(from_arrays(x, recorded, label_names=NAMES), seconds=0)
    cells = result.cells
    is_wrong = wrong[cells["row"], [NAMES.index(label) for label in cells["label"]]]
    by_inputs = np.where(recorded == 1, -b, b).ravel()
    found = average_precision_score(is_wrong, cells["suspicion"])
    assert found > average_precision_score(wrong.ravel(), by_inputs) + 0.3
    assert len(cells) == y.size
    assert cells["suspicion"].is_monotonic_decreasing
    assert (cells["recorded"] == recorded[cells["row"], cells["label"].map(NAMES.index)]).all()
    assert 0.02 < result.noise["wrongly_present"].mean() < 0.1
    assert result.noise.attrs["swapped_rows"] == 0  # Single labels are wrong, not rows.
    assert "600 samples" in repr(result)


def test_a_sample_does_not_inform_its_own_correlations():
    _, y, b = planted(60)
    fold = np.arange(60) % auditing.FOLDS
    before = joint_logits(messages_for(b, y), b, y, fold)
    changed = y.copy()
    changed[0, 5] = 1 - changed[0, 5]
    after = joint_logits(messages_for(b, y), b, changed, fold)
    # The logit of a label given the other labels of its sample does not depend on its value.
    assert after[0, 5] == pytest.approx(before[0, 5], abs=1e-4)
    assert (after[0, :5] != before[0, :5]).all()


def test_lost_positives_are_told_from_flips():
    _, y, b = planted(3000)
    lost = (np.random.default_rng(1).random(y.shape) < 0.2) & (y == 1)
    recorded = np.where(lost, 0.0, y)
    logits = joint_logits(messages_for(b, recorded), b, recorded, None)
    wrongly_present, wrongly_absent = error_rates(logits, recorded)
    assert wrongly_present < 0.03
    assert 0.1 < wrongly_absent < 0.3
    suspicion = error_probability(logits, recorded, wrongly_present, wrongly_absent)
    plain = error_probability(logits, recorded, 0.1, 0.1)
    found, found_plainly = (
        average_precision_score(lost.ravel(), scores.ravel()) for scores in (suspicion, plain)
    )
    assert found > found_plainly + 0.1


@pytest.mark.parametrize(("num_samples", "is_sure"), [(200, False), (4000, True)])
def test_one_kind_of_error_dominates_only_if_that_is_no_chance(num_samples, is_sure):
    logits = np.linspace(-9, 9, 6 * num_samples).reshape(num_samples, 6)
    recorded = (logits > 0).astype(float)
    most = recorded.ravel()[-240 * num_samples // 2000 :]
    most[: len(most) // 12] = 0.0  # lost labels
    wrongly_present, wrongly_absent = error_rates(logits, recorded)
    assert (wrongly_absent > 4 * wrongly_present) == is_sure
    assert (wrongly_absent == wrongly_present) != is_sure


def test_rare_labels_that_are_hard_to_predict_are_not_taken_for_errors():
    """Of labels that are present in 1% of the samples, most of the most probable are absent."""
    rng = np.random.default_rng(0)
    b = rng.normal(-7.0, 3.5, (4000, 20))
    y = (rng.random(b.shape) < 1 / (1 + np.exp(-b))).astype(float)
    assert 0.01 < y.mean() < 0.04
    recorded, _ = flipped(y, 0.02)
    wrongly_present, wrongly_absent = error_rates(b, recorded)
    assert wrongly_present == pytest.approx(0.02, abs=0.01)
    assert wrongly_absent < 0.1


def test_swapped_rows_are_found_by_the_inputs():
    _, y, b = planted(2000)
    rows = np.random.default_rng(1).permutation(2000)[:200]
    recorded = y.copy()
    recorded[rows] = y[np.roll(rows, 1)]
    is_swapped = np.isin(np.arange(2000), rows)
    fraction, swapped = swapped_probability(2 * b, recorded, np.random.default_rng(0))
    assert 0.03 < fraction < 0.25
    assert average_precision_score(is_swapped, swapped) > 2 * is_swapped.mean()
    fraction, swapped = swapped_probability(2 * b, y, np.random.default_rng(0))
    assert fraction < 0.1


def test_a_model_audits_new_samples_and_their_blanks():
    x, y, _ = planted()
    model = tg_mlc.auto(from_arrays(x[:400], y[:400], label_names=NAMES), seconds=0)
    recorded, wrong = flipped(y[400:])
    recorded[0] = [1, 1, 1, 1, 1, np.nan]
    result = model.audit(x[400:], recorded)
    assert (result.cells["row"] == 0).sum() == 5
    blank = result.blanks.iloc[0]
    assert (blank["row"], blank["label"]) == (0, "f")
    assert blank["probability"] > 0.5
    assert set(result.rows["row"]) == set(range(200))
    labels = result.cells["label"].map(NAMES.index)
    score = average_precision_score(wrong[result.cells["row"], labels], result.cells["suspicion"])
    assert score > 0.5


def test_a_single_label_is_refused():
    x, y, _ = planted(20)
    with pytest.raises(ValueError, match=r"several labels \(got 1\)"):
        audit(from_arrays(x, y[:, :1], label_names=["a"]), seconds=0)


def test_recorded_labels_are_checked():
    x, y, _ = planted(120)
    model = tg_mlc.auto(from_arrays(x, y, label_names=NAMES), seconds=0)
    with pytest.raises(ValueError, match=r"'y' of shape \[4, 6\], samples by labels"):
        model.audit(x[:4], y[:3])
    with pytest.raises(ValueError, match="0, 1 or NaN"):
        model.audit(x[:4], 2 * y[:4] + 1)
    with pytest.raises(ValueError, match="at least one observed label"):
        model.audit(x[:4], np.full((4, 6), np.nan))
    with pytest.warns(UserWarning, match=r"at least 100 recorded labels.*\(got 24\)"):
        model.audit(x[:4], y[:4])


def test_rows_of_a_reading_keep_their_numbers():
    x, y, _ = planted(120)
    model = tg_mlc.auto(from_arrays(x, y, label_names=NAMES), seconds=0)
    rows = [x[0].tolist(), ["word", 0.0], *x[1:].tolist()]
    result = model.audit(model.read(rows), np.insert(y, 1, 1.0, axis=0))
    assert set(result.rows["row"]) == set(result.cells["row"]) == set(range(121)) - {1}
    expected = model.audit(x, y).cells
    expected["row"] += expected["row"] > 0
    pd.testing.assert_frame_equal(result.cells, expected)


def test_rows_with_a_single_wrong_label_are_counted_from_below():
    _, y, b = planted(3000)
    recorded, wrong = flipped(y, 0.02)
    logits = joint_logits(messages_for(b, recorded), b, recorded, None)
    assert 0 < rows_with_errors(logits, recorded) < wrong.any(axis=1).mean()
    clean = joint_logits(messages_for(b, y), b, y, None)
    assert rows_with_errors(clean, y) < 0.01


def test_a_repetition_does_not_speak_for_its_own_record(monkeypatch):
    """Classifiers that see a repetition would take its record from it."""
    x, y, _ = planted(100)
    y[0, 5] = np.nan
    labels, given, fit = np.concatenate([y, 1 - y[:1]]), {}, stacking.auto

    def auto(dataset, seconds, seed):
        given["y"] = dataset.y.numpy()
        return fit(dataset, seconds, seed)

    monkeypatch.setattr(stacking, "auto", auto)
    labels[100, 5] = 1
    repeated = from_arrays(np.concatenate([x, x[:1]]), labels, label_names=NAMES)
    result = audit(repeated, seconds=0)
    assert given["y"][0].tolist() == [*y[0, :5], 1]  # The first known value of each label.
    assert (given["y"][1:] == y[1:]).all()
    assert len(result.rows) == 101
    for values in (result.evidence.base_logits, result.evidence.fold):
        assert (values[0] == values[100]).all()


def test_equal_inputs_that_are_few_are_other_samples():
    """With eight distinct inputs, a sample is not told from the others by its input."""
    rng = np.random.default_rng(0)
    x = (rng.random((400, 3)) < 0.5).astype(float)
    y = (rng.random((400, 3)) < 0.3 + 0.2 * x).astype(float)
    result = audit(from_arrays(x, y, label_names=["a", "b", "c"], kind="vector"), seconds=0)
    # Merged into eight samples of one label set each, they would be predicted with certainty.
    assert -np.log(result.cells["probability"]).mean() < 0.72


def test_few_samples_do_not_inform_their_own_audit():
    rng, agreement = np.random.default_rng(0), []
    for _ in range(3):
        x, y = rng.standard_normal((8, 2)), (rng.random((8, 6)) < 0.5).astype(float)
        y[0], y[1] = 0, 1
        cells = audit(from_arrays(x, y, label_names=NAMES, kind="vector"), seconds=0).cells
        agreement.append((cells["probability"] > 0.5).mean())
    assert np.mean(agreement) < 0.8


def test_samples_without_known_labels_are_not_swapped():
    _, y, b = planted(1000)
    y[60:] = np.nan
    fraction, swapped = swapped_probability(b, y, np.random.default_rng(0))
    assert fraction < 0.3
    assert (swapped[60:] == 0).all()
    assert swapped_probability(b[:1], y[:1], np.random.default_rng(0)) == (0.0, [0.0])
