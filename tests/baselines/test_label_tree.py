from __future__ import annotations

import sys
import warnings
from unittest.mock import Mock

import numpy as np
import pytest

from tests.baselines.test_baseline import NAN, X, Y
from tg_mlc.baselines import LabelTrees


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "napkinxc.models", raising=False)
    monkeypatch.setitem(sys.modules, "napkinxc", None)
    with pytest.raises(ImportError, match=r"tg_mlc\[extreme\]"):
        LabelTrees().fit(X, Y)


@pytest.mark.filterwarnings("ignore:Label trees count")
def test_unknown_labels_do_not_apply():
    pytest.importorskip("napkinxc")
    y = Y.copy()
    y[:40][Y[:40] == 0] = NAN
    # Its solver stops early, and starts at random whatever the seed.
    scores = [LabelTrees().fit(X, labels).predict_proba(X) for labels in (y, Y)]
    np.testing.assert_allclose(*scores, atol=0.03)


def test_unknown_labels_are_warned_of(monkeypatch):
    monkeypatch.setitem(sys.modules, "napkinxc", Mock())
    monkeypatch.setitem(sys.modules, "napkinxc.models", Mock())
    with pytest.warns(UserWarning, match="count 2 unknown labels .NaN. as absent"):
        LabelTrees().fit(X, np.where(np.arange(Y.size).reshape(Y.shape) < 2, NAN, Y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LabelTrees().fit(X, Y)


def test_inputs_may_be_whole_numbers():
    pytest.importorskip("napkinxc")
    x = X.round().astype(int)
    assert LabelTrees().fit(x, Y).predict_proba(x).shape == Y.shape
