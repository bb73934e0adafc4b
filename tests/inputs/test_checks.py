import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from tg_mlc._warnings import collected_warnings
from tg_mlc.data import from_arrays
from tg_mlc.inputs.checks import check_lost

Y = np.array([[0, 1]] * 15 + [[1, 0]] * 15)


def samples(X, Y, names=("calm", "sad")):
    return from_arrays(np.asarray(X, dtype=float), Y, list(names), kind="vector")


def test_usual_samples_raise_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X = np.random.default_rng(0).random((30, 3))
        samples(X, Y)
        samples(X, np.where(np.eye(30)[:, :2] == 1, np.nan, Y))
        samples([[0], [1]], [[0, 1], [1, 0]])  # Two samples are too few for a warning.
        from_arrays(sp.random(30, 5, 0.4, format="csr", random_state=0), Y, ["calm", "sad"])


@pytest.mark.filterwarnings("ignore:Input 'column 1' alone predicts label 'sad'")
@pytest.mark.parametrize("sign", [1, -1])
def test_an_input_that_gives_a_label_away_is_warned_of(sign):
    X = np.random.default_rng(0).random((30, 3))
    X[:, 1] = sign * (Y[:, 0] + 0.5 * X[:, 0])
    X[0, 1] = np.nan
    with pytest.warns(UserWarning, match="Input 'column 1' alone predicts label 'calm'"):
        samples(X, Y)


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("present", [0, 1])
def test_a_word_that_gives_a_label_away_is_warned_of(present, unknown):
    X = np.random.default_rng(0).integers(0, 3, (30, 4)).astype(float)
    X[:, 2] = 2 * (Y[:, 0] == present)
    y = Y.astype(float)
    y[3, :] = np.nan if unknown else y[3, :]
    with pytest.warns(UserWarning, match="Input 'w2' alone predicts label 'calm' almost perfectly"):
        from_arrays(sp.csr_array(X), y, ["calm", "sad"], [f"w{i}" for i in range(4)])


@pytest.mark.parametrize(
    ("Y", "names", "message"),
    [
        ([[1, 0], [1, 1]], ["sad", "calm"], "the same value in all rows, .*'sad'"),
        ([[1, 0], [np.nan, 1]], ["sad", "calm"], "the same value in all rows, .*'sad'"),
        ([[1, 0], [0, 1]], ["Calm", "calm "], "differ only in case or spaces"),
    ],
)
def test_suspicious_labels_are_warned_of(Y, names, message):
    with pytest.warns(UserWarning, match=message):
        samples([[0], [1]], Y, names)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ca\u200blm", r"invisible characters .*: 'ca\\u200blm'"),
        ("\ufeffcalm", r"invisible characters .*: '\\ufeffcalm'"),
        ("2-Mar", "dates or decimals, .*: '2-Mar'"),
        ("Mar-02", "dates or decimals, .*: 'Mar-02'"),
        ("01/02/2024", "dates or decimals, .*: '01/02/2024'"),
        ("2024-03-02 00:00:00", "dates or decimals, .*: '2024-03-02 00:00:00'"),
        ("1.3", "dates or decimals, .*: '1.3'"),
        ("می\u200cخواهم", None),
        ("2-methyl", None),
        ("14-3-3", None),
        ("GO:0008150", None),
        ("1.14.13.39", None),
    ],
)
def test_names_that_programs_have_changed_are_warned_of(name, message):
    with collected_warnings() as messages:
        samples([[0], [1]], [[1, 0], [0, 1]], ["sad", name])
    assert len(messages) == (message is not None)
    assert message is None or re.search(message, messages[0])


@pytest.mark.parametrize(
    ("names", "warned"),
    [
        (["250.01", "250.02", "401"], False),
        (["01", "01/01", "01/01/03", "01/01/03/02"], False),  # FunCat
        (["1.1", "1.1.1", "1.1.1.1", "1.2.3.4", "3.4"], False),  # EC numbers
        (["1", "2", "3", "1.3"], True),
        (["liver", "skin", "01/01/03"], True),
        (["01/01", "01/01/03", "02/03", "2-Mar"], True),
    ],
)
def test_labels_may_be_codes_of_numbers(names, warned):
    with collected_warnings() as messages:
        samples([[0], [1], [1]], np.eye(3, len(names)), names)
    assert [f"'{names[-1]}'" in text for text in messages if "dates" in text] == [True] * warned


@pytest.mark.parametrize("blank", [[-1], [3], [3, -1]])
def test_a_last_row_without_labels_is_warned_of(blank):
    y = np.array(Y, dtype=float)
    y[blank] = np.nan
    with collected_warnings() as messages:
        samples(np.random.default_rng(0).random((30, 3)), y)
    assert ["The last row has no label" in text for text in messages] == [True] * (blank == [-1])


def test_rows_that_are_lost_are_counted():
    check_lost({}, 10, str, 0.1)
    refused = {3: "bad", 5: "worse", 7: "x", 8: "y"}
    with pytest.warns(UserWarning, match=r"4 of 24 rows .* row 3: bad; row 5: worse; row 7: x$"):
        check_lost(refused, 24, "row {}".format, 0.1)
    with pytest.raises(ValueError, match=r"at most 10% of the rows.*6 of 24 rows.*max_lost=0.25"):
        check_lost(dict.fromkeys(range(6), "bad"), 24, "row {}".format, 0.1)
