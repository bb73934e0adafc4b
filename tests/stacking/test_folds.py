from __future__ import annotations

import numpy as np
import pytest
import torch

from tg_mlc.data import from_arrays
from tg_mlc.data.bags import with_attribute
from tg_mlc.inference.network import label_graph_users
from tg_mlc.stacking import folds as _folds

pytest.importorskip("sklearn")
pytest.importorskip("lightning")


def samples(num_labels=2, changed=()):
    random = np.random.default_rng(0)
    x = random.normal(size=(60, 4)).astype(np.float32)
    y = (x @ random.normal(size=(4, num_labels)) > 0.5).astype(np.float32)
    y[list(changed)] = 1 - y[list(changed)]
    base_scores = torch.from_numpy(random.normal(size=(60, num_labels, 2))).float()
    return with_attribute(from_arrays(x, y, kind="vector"), "base_scores", base_scores)


@pytest.fixture
def many(monkeypatch):
    """Returns so many labels that each attends only to the most correlated labels."""
    monkeypatch.setattr(_folds, "MAX_COMPLETE", 7)
    monkeypatch.setattr(_folds, "TOP_K", 2)
    return 8


@pytest.mark.parametrize("num_labels", [2, 8])
@pytest.mark.usefixtures("many")
def test_models_do_not_depend_on_the_labels_of_held_out_samples(num_labels):
    split = _folds._split(np.arange(60) % 5, 0)
    options = {**_folds.SETTINGS["table"].model, "channels": 8}
    datasets = [samples(num_labels), samples(num_labels, changed=split.val)]
    settings, batches = _folds.SETTINGS["table"], _folds.batches_of(datasets[0])
    fits = [_folds._train(settings, (dataset, split), options, 3, seed=0) for dataset in datasets]
    assert fits[0].least != fits[1].least
    logits, expected = (_folds.logits_of(fit.model.eval(), batches) for fit in fits)
    assert torch.equal(logits, expected)


def test_every_sample_is_scored_and_every_model_has_its_own_graph(monkeypatch, many):
    monkeypatch.setattr(_folds, "MAX_EPOCHS", 1)
    monkeypatch.setattr(_folds, "NUM_FOLDS", (2,))
    dataset = samples(many)
    folds = _folds.train_folds(dataset, seconds=20.0, seed=0)
    assert np.isfinite(folds.held_out).all()
    edges = [next(label_graph_users(model)).label_graph.edge_index for model in folds.models]
    assert not all(torch.equal(edges[0], other) for other in edges[1:])


def test_without_time_no_model_is_built(monkeypatch):
    monkeypatch.setattr(_folds, "seconds_per_epoch", lambda *_: pytest.fail("a model was timed"))
    assert _folds.train_folds(samples(), seconds=0.0, seed=0) is None
