from __future__ import annotations

import json
import pickle
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tg_mlc
from tests.requirements import FULL_GRAPH
from tg_mlc.graphs import LabelGraph, tree
from tg_mlc.inference import Query
from tg_mlc.inference.decisions import Calibration as CalibrationStage
from tg_mlc.inference.decisions import GivenLabels
from tg_mlc.metrics import LabelSets, ThresholdTuner
from tg_mlc.metrics.calibration import Calibration
from tg_mlc.sklearn import AutoClassifier, KernelRidgeClassifier, LaMPClassifier
from tg_mlc.sklearn.estimator import draw_seed

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 5)).astype(np.float32)
Y = (X[:, :3] + 0.3 * X[:, 1:4] > 0).astype(int)
HOLES = np.where(rng.random(Y.shape) < 0.2, np.nan, Y)
SMALL = {"model_options": {"channels": 8, "heads": 2}, "num_steps": 1, "max_epochs": 1}
SMALL |= {"base_scores": ("svm",), "random_state": 0}
ALONE = {"max_epochs": 20, "base_scores": None, "learning_rate": 0.03}
WORDS = {"food": "apple pear bread", "tool": "hammer saw nail", "toy": "doll ball kite"}
PAIRS = [pair for words in WORDS.values() for pair in product(words.split(), repeat=2)]
TEXTS = [f"a {word} and a {other}" for word, other in PAIRS]
SETS = [{name} for name in WORDS for _ in range(9)]
SMILES = ["CCO", "CCN", "c1ccccc1O", "CC(=O)O", "CCCl", "NCCO"] * 4
AMINES = np.array([["C" in smiles[1:], "N" in smiles] for smiles in SMILES])


# From the weights that PyTorch 2.6 draws, this loss leads to a constant, a local minimum.
starts_well = pytest.mark.skipif(not FULL_GRAPH, reason="PyTorch 2.6 draws other weights")


def small(**options: Any) -> LaMPClassifier:
    return LaMPClassifier(**{**SMALL, **options})


@pytest.fixture(scope="module")
def fitted() -> LaMPClassifier:
    return small().fit(X, Y)


def test_it_learns() -> None:
    assert small(**ALONE).fit(X, Y).score(X, Y) > 0.7
    assert small(base_scores="auto").fit(X[:60], Y[:60]).score(X[60:], Y[60:]) > 0.7


@pytest.fixture(scope="module")
def plain() -> Any:
    """Probabilities by the default loss."""
    return small(**ALONE).fit(X, Y).predict_proba(X)


@pytest.mark.parametrize(
    "options",
    [
        *({"loss_name": loss} for loss in ("focal", "asymmetric")),
        pytest.param({"loss_name": "soft_f1"}, marks=starts_well),
        {"loss_options": {"pos_weight": 20.0}},
    ],
)
def test_it_learns_by_losses_for_rare_labels(options: dict[str, Any], plain: Any) -> None:
    scores = small(**ALONE, train_options=options).fit(X, Y).predict_proba(X)
    assert roc_auc_score(Y, scores) > 0.8
    assert not np.allclose(scores, plain, atol=0.01)
    assert "loss_options" not in options or scores.mean() > plain.mean()


def test_labels_too_rare_for_validation_can_be_learned_by_other_losses() -> None:
    rare = np.tile(np.arange(60)[:, None] < 2, 2)
    classifier = small(base_scores=None, train_options={"loss_name": "focal"}).fit(X[:60], rare)
    assert classifier.predict_proba(X).shape == (len(X), 2)


def test_training_has_options() -> None:
    options = {"batch_size": 4, "weight_decay": 0.5, "patience": 1}
    classifier = small(base_scores=None, max_epochs=4, train_options=options)
    scores = classifier.fit(X[:40], Y[:40]).predict_proba(X)
    for changes in ({"batch_size": 8}, {"weight_decay": 0.0}, {"intermediate_weight": 0.5}):
        changed = clone(classifier).set_params(train_options={**options, **changes})
        assert not np.array_equal(changed.fit(X[:40], Y[:40]).predict_proba(X), scores)
    options = {"patience": 1, "monitor": "val/loss"}
    early = small(train_options=options, **{**ALONE, "learning_rate": 1.0})
    assert early.fit(X, Y).n_iter_ < 20


def test_predictions_do_not_depend_on_the_batch(fitted: LaMPClassifier) -> None:
    single = np.concatenate([fitted.decision_function(row[None]) for row in X[:20]])
    np.testing.assert_allclose(fitted.decision_function(X)[:20], single, rtol=1e-4, atol=1e-4)


def test_decisions_are_log_odds_above_those_of_thresholds() -> None:
    tuner = ThresholdTuner("f1_macro", per_label=True)
    for threshold in (0.9, tuner):
        classifier = small(threshold=threshold).fit(X, Y)
        thresholds = 0.9 if threshold == 0.9 else classifier.thresholds_
        applies = classifier.predict_proba(X) >= thresholds
        np.testing.assert_array_equal(classifier.predict(X), applies)
        np.testing.assert_array_equal(classifier.decision_function(X) >= 0, applies)
    assert len({*classifier.thresholds_.tolist()}) > 1
    assert tuner.thresholds is None


NOISY = (X[:, :3] + np.random.default_rng(1).normal(size=Y.shape) > 0).astype(int)


@pytest.mark.parametrize(
    "make",
    [
        lambda **trust: small(base_scores=None, validation_fraction=0.5, train_options=trust),
        lambda **trust: AutoClassifier(seconds=0, random_state=0, **trust),
    ],
)
def test_label_sets_of_a_coverage_and_calibration(make: Any, tmp_path: Any) -> None:
    trusted = make(coverage_share=0.4, calibrate=True).fit(X, NOISY)
    assert trusted.model_.decision.conformal.row.max() < 32
    assert sum(trusted.model_.stage(CalibrationStage).methods.values()) == 3
    # none is what a threshold was taken from
    new = np.random.default_rng(2).normal(size=X.shape).astype(np.float32)
    held, thresholds = trusted.predict(new, coverage=0.8), trusted.model_.thresholds(coverage=0.8)
    np.testing.assert_array_equal(held, trusted.predict_proba(new) >= thresholds)
    assert trusted.predict(X, coverage=0.8)[NOISY == 1].mean() > 0.7
    loaded = type(trusted).load(trusted.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict(new, coverage=0.8), held)
    np.testing.assert_array_equal(loaded.predict_proba(new), trusted.predict_proba(new))
    frame = tg_mlc.load(tmp_path / "model").predict(new, coverage=0.8)
    np.testing.assert_array_equal(frame["decision"], held)
    np.testing.assert_allclose(frame["probability"], trusted.predict_proba(new), atol=1e-6)
    with pytest.raises(ValueError, match="'given' labels with a coverage"):
        trusted.predict(new, given={"1": 1}, coverage=0.8)


def test_calibrated_probabilities_are_those_that_thresholds_decide_by(monkeypatch: Any) -> None:
    def platt(y: Any, scores: Any, seed: int = 0) -> Calibration:
        found = Calibration(["platt"] * 3)
        found.scale *= 0.5
        found.shift += 1.0
        return found

    monkeypatch.setattr(Calibration, "fit", platt)
    options = {"base_scores": None, "validation_fraction": 0.4}
    plain, calibrated = (
        small(**options, train_options={"calibrate": flag}).fit(X, Y) for flag in (False, True)
    )
    # by thresholds that moved along
    np.testing.assert_array_equal(calibrated.predict(X), plain.predict(X))
    # Both learned for as long as training took.
    calibrated.model_.stage(GivenLabels).engine = plain.model_.stage(GivenLabels).engine
    for given in (None, {"1": 1}):
        pair = [each.predict_proba(X, given) for each in (plain, calibrated)]
        before, after = (scores[:, [0, 2]].astype(float) for scores in pair)
        np.testing.assert_allclose(after, expit(0.5 * logit(before) + 1.0), atol=1e-5)


def test_coverages_that_cannot_be_promised() -> None:
    half = {"base_scores": None, "train_options": {"coverage_share": 0.5}}
    kept = small(**half, warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match="coverage_share=0 for a warm start"):
        kept.fit(X, Y)
    with pytest.raises(ValueError, match="'conformalize'"):
        small(base_scores=None).fit(X, Y).predict(X, coverage=0.8)
    with pytest.raises(ValueError, match="no 'coverage' where each sample has one class"):
        small(**half).fit(X, Y[:, 0]).predict(X, coverage=0.8)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"threshold": 1.5}, r"'threshold' to be a number in \[0, 1\] \(got 1.5\)"),
        ({"threshold": "f1"}, "'threshold' to be one of"),
        ({"max_epochs": 0}, "'max_epochs' to be a whole number of at least 1"),
        ({"base_scores": ["knn"]}, "'kinds' among"),
        ({"train_options": {"loss_name": "hinge"}}, "'loss_name' to be one of"),
        ({"train_options": {"epochs": 3}}, r"'train_options' among .* \(got \['epochs'\]\)"),
        ({"train_options": {"coverage_share": 1.0}}, "'coverage_share' to be a number"),
        ({"train_options": {"calibrate": 1}}, "'calibrate' to be True or False"),
        ({"label_graph": "complete"}, "'label_graph' to be one of"),
        ({"inputs": "images"}, "'inputs' to be one of"),
        ({"inputs": "texts"}, "a list or column of strings for inputs 'texts'"),
    ],
)
def test_options_are_checked(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        small(**options).fit(X, Y)


@pytest.mark.parametrize(
    "convert", [sp.csr_array, sp.csr_matrix, lambda y: y.tolist(), torch.tensor]
)
def test_labels_may_be_a_matrix_in_any_form(fitted: LaMPClassifier, convert: Any) -> None:
    classifier = small().fit(X, convert(Y))
    np.testing.assert_array_equal(classifier.predict_proba(X), fitted.predict_proba(X))
    assert classifier.score(X, convert(Y)) == fitted.score(X, Y)


def test_frames_name_inputs_and_labels() -> None:
    frame = pd.DataFrame(X, columns=list("abcde"))
    labels = pd.DataFrame(Y, columns=["up", "down", "left"])
    classifier = small().fit(frame, labels)
    assert classifier.classes_.tolist() == ["up", "down", "left"]
    assert classifier.feature_names_in_.tolist() == list("abcde")
    turned = labels[["left", "up", "down"]]
    assert classifier.score(frame, turned) == classifier.score(frame, labels)
    with pytest.raises(ValueError, match="feature names"):
        classifier.predict(frame.rename(columns={"a": "z"}))


def test_unknown_labels_are_left_out() -> None:
    classifier = small().fit(X, HOLES)
    assert set(np.unique(classifier.predict(X))) <= {0.0, 1.0}
    known = ~np.isnan(HOLES)
    right = (classifier.predict(X) == HOLES) | ~known
    assert classifier.score(X, HOLES) == pytest.approx(right.all(axis=1).mean())


def test_texts_with_sets_of_names() -> None:
    classifier = small(max_epochs=10).fit(TEXTS, SETS)
    assert classifier.inputs_ == "texts"
    assert not hasattr(classifier, "n_features_in_")
    assert classifier.classes_.tolist() == ["food", "tool", "toy"]
    assert classifier.predict(["an apple", "the kite"]) == [{"food"}, {"toy"}]
    assert classifier.score(TEXTS, SETS) > 0.8


@pytest.mark.parametrize(
    "convert", [np.array, pd.Series, lambda texts: [text.split() for text in texts]]
)
def test_texts_in_any_form(convert: Any) -> None:
    scores = [small().fit(texts, SETS).predict_proba(texts) for texts in (TEXTS, convert(TEXTS))]
    # "a" is a letter
    np.testing.assert_allclose(*scores, atol=0.2 if isinstance(convert(TEXTS), list) else 0)


def test_smiles_and_a_warm_start_with_them() -> None:
    assert small(inputs="texts").fit(SMILES, [{"a"}, {"b"}] * 12).inputs_ == "texts"
    classifier = small(base_scores=("ridge",), warm_start=True).fit(SMILES, AMINES)
    assert classifier.inputs_ == "smiles"
    assert classifier.predict(["OCC"]).dtype == bool
    scores = [classifier.predict_proba([smiles]) for smiles in ("OCC", "CCO")]
    np.testing.assert_allclose(*scores, atol=1e-4)
    with pytest.raises(ValueError, match="valid molecule"):
        classifier.predict(["no molecule"])
    before = classifier.model_
    assert classifier.fit(SMILES, AMINES).model_ is not before


def test_own_validation_samples() -> None:
    classifier = small().fit(X[:50], Y[:50], eval_set=(X[50:], Y[50:]))
    tuner = ThresholdTuner("f1_micro").fit(Y[50:], classifier.predict_proba(X[50:]))
    assert classifier.thresholds_.tolist() == pytest.approx([tuner.threshold] * 3)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        small().fit(X[:50], Y[:50], eval_set=(X[50:], Y[51:]))
    texts = small().fit(TEXTS, SETS, eval_set=(["a saw"], [{"tool"}]))
    assert len({*texts.thresholds_.tolist()}) == 1


def test_a_warm_start_goes_on() -> None:
    first = small(base_scores=None, warm_start=True, max_epochs=10).fit(X, Y)
    before, was = first.model_, first.model_.run(X).logits.numpy()
    first.set_params(max_epochs=1, learning_rate=1e-6).fit(X, Y)
    assert first.model_ is not before
    cold = small(base_scores=None, max_epochs=1, learning_rate=1e-6).fit(X, Y)
    np.testing.assert_allclose(first.model_.run(X).logits, was, atol=1e-2)
    assert np.abs(cold.model_.run(X).logits.numpy() - was).max() > 0.1


def test_a_warm_start_refuses_other_labels() -> None:
    classifier = small(warm_start=True).fit(TEXTS, SETS)
    with pytest.raises(ValueError, match=r"that training samples have \(got others: \['other'\]"):
        classifier.fit(TEXTS, [{"other"} for _ in TEXTS])
    # without toys
    assert classifier.fit(TEXTS[:18], SETS[:18]).classes_.tolist() == ["food", "tool", "toy"]
    assert classifier.predict(TEXTS[:1])[0] <= {"food", "tool", "toy"}


def test_a_warm_start_refuses_other_columns_and_settings() -> None:
    classifier = small(warm_start=True, base_scores=None, label_graph="co_occurrence").fit(X, Y)
    before = classifier.predict_proba(X)
    with pytest.raises(ValueError, match="X has 4 features, but LaMPClassifier is expecting 5"):
        classifier.fit(X[:, :4], Y)
    with pytest.raises(ValueError, match="settings and classifiers of the last fit"):
        classifier.set_params(model_options={"channels": 16}).fit(X, Y)
    np.testing.assert_array_equal(classifier.predict_proba(X), before)
    # along the first label graph
    classifier.set_params(model_options=SMALL["model_options"]).fit(X[:40], Y[:40])
    assert not np.array_equal(classifier.predict_proba(X), before)


def test_names_that_no_training_sample_had() -> None:
    classifier = small(max_epochs=10).fit(TEXTS, SETS)
    expected = classifier.score(TEXTS[1:], SETS[1:]) * (len(TEXTS) - 1) / len(TEXTS)
    assert classifier.score(TEXTS, [{"food", "pet"}, *SETS[1:]]) == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"that training samples have \(got others: \['pet'\]"):
        small().fit(TEXTS, SETS, eval_set=(["a cat"], [{"pet"}]))


def test_label_graphs() -> None:
    own = tree([("1", "0"), ("2", "0")], ["0", "1", "2"])
    edges_of = [("fully_connected", 9), ("edgeless", 3), (own, own.num_edges)]
    for option, edges in (*edges_of, ("co_occurrence", None)):
        graph = small(label_graph=option).fit(X, Y).model_.networks[0].labels.label_graph
        assert isinstance(graph, LabelGraph)
        assert edges in (None, graph.num_edges)


def test_fits_repeat_and_leave_random_numbers_alone(fitted: LaMPClassifier) -> None:
    torch.manual_seed(1)
    state = torch.get_rng_state()
    np.testing.assert_array_equal(clone(fitted).fit(X, Y).predict_proba(X), fitted.predict_proba(X))
    assert torch.equal(torch.get_rng_state(), state)
    assert (small(random_state=1).fit(X, Y).predict_proba(X) != fitted.predict_proba(X)).any()


def test_pickled_it_predicts_the_same(fitted: LaMPClassifier, tmp_path: Any) -> None:
    joblib.dump(fitted, tmp_path / "classifier")
    for other in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "classifier")):
        np.testing.assert_array_equal(other.predict_proba(X), fitted.predict_proba(X))


def test_pipelines() -> None:
    y = np.array([[name in names for name in WORDS] for names in SETS])
    pipeline = make_pipeline(TfidfVectorizer(), small(max_epochs=10))
    assert pipeline.fit(TEXTS, y).score(TEXTS, y) > 0.8
    assert pipeline[-1].inputs_ == "bags"
    assert cross_val_score(make_pipeline(StandardScaler(), small()), X, Y, cv=2).min() > 0.3


def test_cross_validation() -> None:
    grid = {"num_steps": [1, 2], "threshold": [0.5], "model_options": [{"channels": 4, "heads": 2}]}
    search = GridSearchCV(small(), grid, cv=2, error_score="raise")
    assert search.fit(X, Y).cv_results_["mean_test_score"].min() > 0.3
    assert cross_val_predict(small(), X, Y, cv=2, method="predict_proba").shape == (80, 3)
    assert cross_val_predict(small(), X, HOLES, cv=KFold(2)).shape == (80, 3)


def test_a_progress_bar_on_demand_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    small().fit(X, Y)
    assert capsys.readouterr().out == ""
    small(train_options={"verbose": True}).fit(X, Y)
    assert "Training" in capsys.readouterr().out


def test_classes_are_not_changed_in_number() -> None:
    classifier = small().fit(X, np.array(list("abcd"))[Y[:, 0] + 2 * Y[:, 1]])
    assert classifier.predict_proba(X).shape == (80, 4)
    with pytest.raises(ValueError, match="Expected labels of at least 2 classes"):
        small().fit(X, ["a"] * 80)
    with pytest.raises(ValueError, match="Expected 'threshold' to be one of"):
        AutoClassifier(threshold="f1").fit(VALUES, TWO)


VALUES = np.random.default_rng(0).normal(size=(60, 4))
TWO = (VALUES[:, :2] > 0).astype(int)


@pytest.fixture(scope="module")
def automatic() -> AutoClassifier:
    return AutoClassifier(seconds=60, random_state=0).fit(VALUES[:40], TWO[:40])


def test_it_fits_the_default(automatic: AutoClassifier) -> None:
    assert automatic.model_.networks
    assert automatic.score(VALUES[40:], TWO[40:]) > 0.6


def test_label_sets_decide_for_the_default(tmp_path: Path) -> None:
    names = np.array(["a", "b", "c"])
    y = names[(VALUES[:, :3] + np.random.default_rng(1).normal(size=(60, 3))).argmax(axis=1)]
    sets = [{name} for name in y]
    classifier = AutoClassifier(seconds=0, threshold="subset_accuracy", random_state=0)
    classifier.fit(VALUES, sets)
    assert isinstance(classifier.model_.decision.tuners["subset_accuracy"], LabelSets)
    decided = classifier.predict(VALUES)
    assert {len(labels) for labels in decided} == {1}
    assert classifier.score(VALUES, sets) == np.mean(np.array(sets) == np.array(decided))
    assert [set(names[row]) for row in classifier.decision_function(VALUES) >= 0] == decided
    assert AutoClassifier.load(classifier.save(tmp_path / "model")).predict(VALUES) == decided


def test_given_labels_stay_and_tell_of_others(tmp_path) -> None:
    coin = np.random.default_rng(1).random(len(VALUES)) < 0.5
    classifier = AutoClassifier(seconds=0, given_masks="present", random_state=0)
    classifier.fit(VALUES, [{"heads", "up"} if each else set() for each in coin])
    again = AutoClassifier.load(classifier.save(tmp_path / "model"))
    for each in (classifier, again):
        assert each.predict(VALUES[:2], given={"heads": 1}) == [{"heads", "up"}] * 2
        assert (each.predict_proba(VALUES, given={"heads": 1})[:, 0] == 1).all()
        nothing = each.predict_proba(VALUES, given=[{}] * 60)
        np.testing.assert_allclose(nothing, each.predict_proba(VALUES))
    with pytest.raises(ValueError, match=r"\(got \['tails'\]\)"):
        classifier.predict(VALUES, given={"tails": 1})
    classes = AutoClassifier(seconds=0, random_state=0).fit(VALUES, coin.astype(int))
    with pytest.raises(ValueError, match="no 'given' where each sample has one class"):
        classes.predict(VALUES, given={0: 1})


def test_lamp_learns_of_given_labels_from_validation_samples(tmp_path) -> None:
    x = np.random.default_rng(0).normal(size=(240, 2)).astype(np.float32)
    coin = np.random.default_rng(1).random(240) < 0.5  # of which inputs say nothing
    y = np.stack([coin, coin, x[:, 0] > 0], axis=1).astype(int)
    classifier = small(validation_fraction=0.4).fit(x, y)
    again = LaMPClassifier.load(classifier.save(tmp_path / "model"))
    given = np.where(np.arange(3) == 0, y, np.nan)
    for each in (classifier, again):
        scores = each.predict_proba(x, given=given)
        assert (scores[:, 0] == coin).all()
        assert (np.abs(scores[:, 1] - coin) < 0.2).all()  # It was the same coin.
        np.testing.assert_array_equal(each.predict(x, given=given)[:, 0], y[:, 0])
    loaded_scores = tg_mlc.load(tmp_path / "model").probabilities(x, given=given)
    np.testing.assert_allclose(loaded_scores, scores, atol=1e-5)
    alone = np.full((240, 3), np.nan)
    scores = again.predict_proba(x, given=alone)
    np.testing.assert_allclose(scores, classifier.predict_proba(x), atol=1e-6)
    with pytest.raises(ValueError, match="no part of it learned what given labels say"):
        small().fit(x[:60], y[:60]).predict(x, given=given)


def test_raw_frames_of_numbers_and_words_with_gaps() -> None:
    colour = np.where(VALUES[:, 0] > 0, "red", "blue")
    frame = pd.DataFrame({"colour": colour, "size": VALUES[:, 1]})
    frame.loc[3, "colour"], frame.loc[4, "size"] = None, np.nan
    classifier = AutoClassifier(seconds=0, random_state=0).fit(frame, TWO)
    assert classifier.feature_names_in_.tolist() == ["colour", "size"]
    assert classifier.score(frame, TWO) > 0.8
    with pytest.raises(ValueError, match="Expected a data frame with the columns of the last fit"):
        classifier.predict(VALUES[:, :2])
    with pytest.raises(ValueError, match="The feature names should match"):
        classifier.predict(frame[["colour"]])
    assert cross_val_score(classifier, frame, TWO, cv=2).mean() > 0.6


def test_a_label_that_is_never_known_never_applies() -> None:
    y = TWO.astype(float)
    y[:, 1] = np.nan
    classifier = AutoClassifier(seconds=0, threshold="f1_macro", random_state=0)
    margins = classifier.fit(VALUES, y).decision_function(VALUES)
    assert np.isfinite(margins[:, 0]).all()
    assert (margins[:, 1] == -np.inf).all()


def test_smiles_in_a_frame_and_among_others() -> None:
    pytest.importorskip("rdkit")
    # of the last two, RDKit has no mean over heavy atoms
    smiles = ["CCO", "CCN", "c1ccccc1O", "[H][H]", "*"] * 8
    y = np.array([["O" in each, "N" in each] for each in smiles])
    classifier = AutoClassifier(seconds=0, random_state=0).fit(pd.DataFrame({"smiles": smiles}), y)
    assert classifier.inputs_ == "smiles"
    new = pd.DataFrame({"smiles": ["CCCO", "[HH]"]})
    assert classifier.predict(new)[:, 0].tolist() == [True, False]
    with pytest.raises(ValueError, match=r"SMILES alone \(got 1 others, the first .* in row 40\)"):
        AutoClassifier(seconds=0).fit([*smiles, "C(C"], [*y, y[0]])


SHORT = {**ALONE, "max_epochs": 2}
NUMBERS = pd.DataFrame(X).add_prefix("x")
FRAME = pd.DataFrame({"size": X[:, 0], "colour": np.where(X[:, 1] > 0, "red", "blue")})
NAMED = NUMBERS.assign(id=range(7, 7 + len(X)))
TUNER = ThresholdTuner(per_label=True)
SAVED = {
    "texts": (small(label_graph="co_occurrence"), TEXTS, SETS),
    "holes": (LaMPClassifier(**SHORT, threshold=TUNER), X, HOLES),
    "smiles": (small(), SMILES, AMINES),
    "classes": (small(train_options={"betas": (0.8, 0.9)}), X, Y[:, 0]),
    "graph": (small(label_graph=tree([("0", "1")], ["0", "1", "2"])), X, Y),
    "frame": (small(), FRAME, Y),
    "numbers": (LaMPClassifier(**SHORT), NUMBERS, Y),
    "ids": (AutoClassifier(seconds=0), NAMED, Y),
    "matrix": (LaMPClassifier(**SHORT), NUMBERS, Y),
    "auto": (None, VALUES, None),
}


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("case", SAVED)
def test_a_saved_estimator_is_the_same(tmp_path, case, automatic):
    estimator, inputs, y = SAVED[case]
    known = X if case == "matrix" else inputs
    fitted = automatic if estimator is None else clone(estimator).fit(known, y)
    loaded = type(fitted).load(fitted.save(tmp_path))
    assert type(loaded) is type(fitted)
    # of lists and tuples alike
    settings = [json.dumps(each.get_params(), default=repr) for each in (loaded, fitted)]
    assert settings[0] == settings[1]
    assert loaded.predict_proba(inputs) == pytest.approx(fitted.predict_proba(inputs), abs=1e-6)
    found, expected = loaded.predict(inputs), fitted.predict(inputs)
    assert np.array_equal(found, expected)
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    assert vars(loaded).keys() >= vars(fitted).keys()
    probabilities = tg_mlc.load(tmp_path).predict(inputs)["probability"]
    assert [*probabilities] == fitted._form.names
    expected = fitted.predict_proba(inputs)[:, -1]
    assert probabilities.to_numpy()[:, -1] == pytest.approx(expected, abs=1e-5)


def test_what_cannot_be_saved_or_loaded(tmp_path):
    fitted = small(base_scores=None, random_state=np.random.RandomState(0)).fit(X, Y)
    with pytest.raises(ValueError, match=r"'random_state' to be plain data .*; call set_params"):
        fitted.save(tmp_path)
    fitted.set_params(random_state=0).save(tmp_path)
    with pytest.raises(ValueError, match=r"to hold a AutoClassifier \(got a LaMPClassifier\)"):
        AutoClassifier.load(tmp_path)
    with pytest.raises(NotFittedError):
        LaMPClassifier().save(tmp_path)


def test_a_folder_without_an_estimator(tmp_path, automatic):
    loaded = tg_mlc.load(automatic.model_.save(tmp_path))
    assert loaded.probabilities(VALUES) == pytest.approx(automatic.predict_proba(VALUES), abs=1e-6)
    with pytest.raises(ValueError, match="got a model without an estimator"):
        AutoClassifier.load(tmp_path)


HIERARCHY = tree([("1", "0"), ("2", None)], ["0", "1", "2"])
ABOVE = np.column_stack([Y[:, 0] | Y[:, 1], Y[:, 1:]])
ALONE_GIVEN = {"base_scores": None, "validation_fraction": 0.4}
AUTO = {"seconds": 0, "random_state": 0}
TRUSTED = {"threshold": "f1_macro", "calibrate": True, "label_graph": HIERARCHY}
SOME, ONE = np.where(rng.random(Y.shape) < 0.3, Y, np.nan), {"given": {"1": 1}}
NAMES = [{name for name, value in zip("abc", row, strict=True) if value} for row in Y]
ASKED = {
    "plain": (small(base_scores=None), Y, [{}]),
    "names": (small(), NAMES, [{}]),
    "given": (small(**ALONE_GIVEN, threshold="f1_samples"), Y, [{}, ONE, {"given": SOME}]),
    "hierarchy": (
        small(**ALONE_GIVEN, label_graph=HIERARCHY, threshold=0.4),
        ABOVE,
        [{}, {"coherent": True}, {"coherent": True, **ONE}],
    ),
    "default": (
        AutoClassifier(**AUTO, **TRUSTED),
        ABOVE,
        [{}, {"coherent": False}, ONE, {"given": {"0": 0}, "coherent": False}],
    ),
    "label sets": (
        AutoClassifier(**AUTO, threshold="subset_accuracy", coverage_share=0.4),
        np.eye(3)[X[:, :3].argmax(axis=1)],
        [{}, {"coverage": 0.6}, {"coverage": 0.6, "coverage_per": "sample"}],
    ),
    "baseline": (KernelRidgeClassifier(threshold=0.4), Y, [{}, {"coherent": HIERARCHY}]),
}


@pytest.mark.parametrize("case", ASKED)
def test_what_the_model_answers(case):
    estimator, y, queries = ASKED[case]
    fitted = clone(estimator).fit(X, y)
    for options in queries:
        answer = fitted.model_.answer(X, Query(metric=fitted.metric_, **options))
        found = fitted.predict(X, **options)
        if isinstance(found, list):
            found = [[name in labels for name in fitted.classes_] for labels in found]
        np.testing.assert_array_equal(found, answer.decisions)
        if "coverage" not in options:
            frame = fitted.model_.predict(X, metric=fitted.metric_, **options)
            np.testing.assert_array_equal(fitted.predict_proba(X, **options), frame["probability"])
    answer = fitted.model_.answer(X, Query(metric=fitted.metric_))
    np.testing.assert_array_equal(fitted.decision_function(X) >= 0, answer.decisions)


def test_two_classes_are_decided_at_a_half():
    for classifier in (small(base_scores=None), AutoClassifier(seconds=0, random_state=0)):
        fitted = classifier.fit(X, np.array(["no", "yes"])[Y[:, 0]])
        assert fitted.thresholds_.tolist() == [0.5]
        frame = fitted.model_.predict(X)
        np.testing.assert_array_equal(fitted.predict_proba(X)[:, 1], frame["probability"]["yes"])
        np.testing.assert_array_equal(fitted.predict(X) == "yes", frame["decision"]["yes"])


def test_calibration_under_given_labels_is_that_of_held_out_logits():
    """The engine remembers the labels of the validation samples."""
    x = np.random.default_rng(0).normal(size=(240, 2)).astype(np.float32)
    coins = np.random.default_rng(1).random((240, 2)) < [0.5, 0.2]
    y = np.stack([coins[:, 0], coins[:, 0] ^ coins[:, 1], x[:, 0] > 0], axis=1).astype(int)
    options = {"validation_fraction": 0.5, "train_options": {"calibrate": True}}
    model = small(base_scores=None, **options).fit(x, y).model_
    logits, rest = model.stage(GivenLabels).engine.masked
    expected = Calibration.fit(rest, expit(logits), draw_seed(0))
    calibrations = model.stage(CalibrationStage).masked, expected
    scores = [each.probabilities(torch.tensor(expit(logits))) for each in calibrations]
    np.testing.assert_array_equal(*scores)
