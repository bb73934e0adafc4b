from __future__ import annotations

from importlib import import_module

import pytest

from tests.fresh import run_python
from tg_mlc._moved import METHODS, NAMES, new_place
from tg_mlc.metrics import tune_thresholds

OLD = [
    (old, pair.partition("=")[0])
    for old, places in NAMES.items()
    for names in places.values()
    for pair in names.split()
]


@pytest.mark.parametrize(("old", "name"), OLD, ids=lambda part: part)
def test_earlier_paths_work_with_a_warning_that_names_the_new_one(old, name):
    package, new = new_place(old, name)
    with pytest.warns(DeprecationWarning, match=f"'{old}.{name}' is now '{package}.{new}'") as warned:
        found = getattr(import_module(old), name)
    assert found is getattr(import_module(package), new)
    assert warned[0].filename == __file__


@pytest.mark.parametrize("name", METHODS)
def test_earlier_functions_of_thresholds_tune_by_their_method(name):
    y, scores = [[0, 1], [1, 0], [1, 1], [0, 0]], [[0.2, 0.7], [0.6, 0.3], [0.9, 0.8], [0.1, 0.4]]
    with pytest.warns(DeprecationWarning, match=f"'tg_mlc.metrics.{name}' is now .*{METHODS[name]!r}"):
        tune = getattr(import_module("tg_mlc.metrics"), name)
    expected = tune_thresholds(y, scores, METHODS[name])
    assert {key: tuner.state_dict() for key, tuner in tune(y, scores).items()} == {
        key: tuner.state_dict() for key, tuner in expected.items()
    }


def test_other_names_are_as_unknown_as_ever():
    for old in ("tg_mlc.recipes", "tg_mlc.nn", "tg_mlc.data"):
        with pytest.raises(AttributeError, match=f"module '{old}' has no attribute 'nothing'"):
            import_module(old).nothing  # noqa: B018
    with pytest.raises(ImportError):
        import_module("tg_mlc.recipes.nothing")


def test_earlier_paths_can_be_imported_from():
    code = """
import warnings
warnings.simplefilter("error")
import tg_mlc.training, tg_mlc.recipes
warnings.simplefilter("ignore")
from tg_mlc.recipes import auto
from tg_mlc.recipes.family import FAMILY
from tg_mlc.training import MultiLabelModule, read_checkpoint
"""
    run_python(code)
