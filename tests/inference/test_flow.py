import numpy as np
import pandas as pd
import pytest

from tg_mlc.inference import Prediction, Query

NAN = float("nan")
PROBABILITIES = np.array([[0.2, 0.7, 0.2, 0.9], [NAN] * 4, [0.5, 0.1, 0.6, 0.3]])


def prediction(top, thresholds=(0.5, 0.5, 0.1, 0.95)):
    thresholds = np.array(thresholds)
    decisions = np.greater_equal(PROBABILITIES, np.nan_to_num(thresholds, nan=0.5))
    arrays = PROBABILITIES, decisions, thresholds
    return Prediction(["a", "b", "c", "d"], *arrays, {1: "too short"}, top=top)


def test_labels_are_ranked_by_probability_and_equal_ones_keep_their_order():
    frame = prediction(3).frame(["x", "y", "z"])
    assert frame.index.tolist() == ["x"] * 3 + ["y"] + ["z"] * 3
    assert [*frame] == ["rank", "label", "probability", "decision", "threshold"]
    assert frame.loc["x", "label"].tolist() == ["d", "b", "a"]
    assert frame.loc["x", "decision"].tolist() == [False, True, False]
    assert frame.loc["z", "threshold"].tolist() == [0.1, 0.5, 0.95]
    assert frame.loc["z", "rank"].tolist() == [1, 2, 3]
    assert frame.loc["y"].isna().all()
    assert frame.attrs["unreadable"] == {1: "too short"}
    assert len(prediction(9).frame()) == 4 + 1 + 4


def test_records_hold_the_lines_of_one_row():
    assert prediction(2, (0.5, 0.5, NAN, 0.5)).records(2) == [
        {"label": "c", "probability": 0.6, "decision": True, "threshold": None},
        {"label": "a", "probability": 0.5, "decision": True, "threshold": 0.5},
    ]
    assert prediction(2).records(1) == []
    assert len(prediction(None).records(0)) == 4


def test_a_long_frame_is_the_wide_frame_melted():
    wide = prediction(None).frame()
    long = prediction(4).frame().dropna(subset="label")
    assert len(long) == wide["probability"].notna().to_numpy().sum()
    for row, line in long.iterrows():
        for column in ("probability", "decision", "threshold"):
            assert line[column] == wide.loc[row, (column, line["label"])]
    assert pd.api.types.is_bool_dtype(long["decision"])


@pytest.mark.parametrize("top", [0, -1, 2.5, True, "5"])
def test_a_wrong_number_of_labels_is_refused(top):
    with pytest.raises(ValueError, match="'top' to be a whole number of at least 1, or None"):
        Query(top=top)
