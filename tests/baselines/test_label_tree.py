from __future__ import annotations

import sys

import numpy as np
import pytest

from tests.baselines.test_baseline import NAN, X, Y
from tg_mlc.baselines import LabelTrees


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "napkinxc.models", raising=False)
    monkeypatch.setitem(sys.modules, "napkinxc", None)
    with pytest.raises(ImportError, match=r"tg_mlc\[extreme\]"):
        LabelTrees().fit(X, Y)


def test_unknown_labels_do_not_apply():
    pytest.importorskip("napkinxc")
    y = Y.copy()
    y[:40][Y[:40] == 0] = NAN
    # Its solver stops early, and starts at random whatever the seed.
    scores = [LabelTrees().fit(X, labels).predict_proba(X) for labels in (y, Y)]
    np.testing.assert_allclose(*scores, atol=0.03)
