from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score

from tg_mlc.sklearn import AutoClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = (X[:, :2] > 0).astype(int)


def test_it_fits_the_default() -> None:
    classifier = AutoClassifier(seconds=5, random_state=0).fit(X[:40], Y[:40])
    assert classifier.score(X[40:], Y[40:]) > 0.6
    np.testing.assert_allclose(classifier.predict_proba(X), classifier.model_.predict_proba(X), atol=1e-9)
    np.testing.assert_array_equal(classifier.predict(X), classifier.model_.predict(X))


def test_raw_frames_of_numbers_and_words_with_gaps() -> None:
    frame = pd.DataFrame({"colour": np.where(X[:, 0] > 0, "red", "blue"), "size": X[:, 1]})
    frame.loc[3, "colour"], frame.loc[4, "size"] = None, np.nan
    classifier = AutoClassifier(seconds=0, random_state=0).fit(frame, Y)
    assert classifier.feature_names_in_.tolist() == ["colour", "size"]
    assert classifier.score(frame, Y) > 0.8
    with pytest.raises(ValueError, match="Expected a data frame with the columns of the last fit"):
        classifier.predict(X[:, :2])
    with pytest.raises(ValueError, match="The feature names should match"):
        classifier.predict(frame[["colour"]])
    assert cross_val_score(classifier, frame, Y, cv=2).mean() > 0.6


def test_a_metric_is_needed_for_thresholds() -> None:
    with pytest.raises(ValueError, match="Expected 'threshold' to be one of"):
        AutoClassifier(threshold="f1").fit(X, Y)


def test_a_label_that_is_never_known_never_applies() -> None:
    y = Y.astype(float)
    y[:, 1] = np.nan
    margins = AutoClassifier(seconds=0, threshold="f1_macro", random_state=0).fit(X, y).decision_function(X)
    assert np.isfinite(margins[:, 0]).all()
    assert (margins[:, 1] == -np.inf).all()


def test_smiles_in_a_frame_and_among_others() -> None:
    pytest.importorskip("rdkit")
    smiles = ["CCO", "CCN", "c1ccccc1O", "[H][H]", "*"] * 8  # of the last two, RDKit has no mean over heavy atoms
    y = np.array([["O" in each, "N" in each] for each in smiles])
    classifier = AutoClassifier(seconds=0, random_state=0).fit(pd.DataFrame({"smiles": smiles}), y)
    assert classifier.inputs_ == "smiles"
    assert classifier.predict(pd.DataFrame({"smiles": ["CCCO", "[HH]"]}))[:, 0].tolist() == [True, False]
    with pytest.raises(ValueError, match=r"Expected SMILES alone \(got 1 others, the first 'C\(C' in row 40\)"):
        AutoClassifier(seconds=0).fit([*smiles, "C(C"], [*y, y[0]])
