from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Batch

from tests.training.conftest import GINE
from tg_mlc.data import ArrayDataset, Split
from tg_mlc.data.records import Records
from tg_mlc.losses import sequence_loss
from tg_mlc.metrics import macro_roc_auc
from tg_mlc.papers import SequenceObjective, seq2seq
from tg_mlc.training import MultiLabelDataModule, MultiLabelModule, fit, seed_everything

# Every label has a word of its own.
rng = np.random.default_rng(0)
Y = (rng.random((120, 3)) < 0.4).astype(np.float32)
WORDS = np.hstack([Y, rng.random((120, 4)) < 0.3, np.ones((120, 1))]).astype(np.float32)
KNOWN = np.where(rng.random(Y.shape) < 0.1, np.nan, Y).astype(np.float32)
SPLIT = Split(torch.arange(80), torch.arange(80, 100), torch.arange(100, 120), "by hand")


@pytest.fixture
def dataset():
    return ArrayDataset(Records(sp.csr_array(WORDS), KNOWN, list("abc")).to_samples())


def make_model(dataset):
    seed_everything(0, verbose=False)
    return seq2seq(dataset[SPLIT.train], channels=16, num_layers=1, dropout=0.0)


def test_a_sequence_model_learns_is_stored_and_predicts(tmp_path, dataset):
    module = MultiLabelModule(make_model(dataset), list("abc"), SequenceObjective(beam_size=2), lr=1e-2)
    data = MultiLabelDataModule(dataset, SPLIT, batch_size=16)
    result = fit(module, data, tmp_path, max_epochs=15, patience=None, logger=False)
    scores = result.predict(data.test_dataloader())
    assert macro_roc_auc(torch.from_numpy(Y[100:]), scores) > 0.9
    loaded = MultiLabelModule.load_from_checkpoint(result.checkpoint, model=make_model(dataset), weights_only=True)
    assert loaded.objective == SequenceObjective(beam_size=2)
    batch = Batch.from_data_list(dataset[SPLIT.test])
    torch.testing.assert_close(loaded.eval().predict_step(batch), scores)


def test_loss_scores_and_validation(dataset):
    model, batch = make_model(dataset).eval(), Batch.from_data_list(dataset[:10])
    objective = SequenceObjective(label_smoothing=0.2, beam_size=3, length_penalty=1.0)
    assert torch.equal(objective.loss(model, batch), sequence_loss(*model(batch), label_smoothing=0.2))
    found = model.search(batch, beam_size=3, length_penalty=1.0)
    assert torch.equal(objective.scores(model, batch), found.scores())
    scores, loss = objective.validate(model, batch)
    assert torch.equal(scores, found.scores())
    assert torch.equal(loss, sequence_loss(*model(batch)))


def test_the_loss_of_validation_is_that_of_all_symbols_however_they_are_batched(dataset):
    module = MultiLabelModule(make_model(dataset), list("abc"), SequenceObjective()).eval()
    order = dataset.y.nansum(dim=1).argsort()  # the first batch has shorter sequences than the second
    parts = [Batch.from_data_list(dataset[part]) for part in (order[:40], order[40:])]
    losses, terms = (
        torch.stack([call(batch) for batch in parts])
        for call in (lambda batch: module.objective.loss(module.model, batch), module.objective.num_terms)
    )
    whole = module.objective.loss(module.model, Batch.from_data_list(dataset))
    torch.testing.assert_close((losses * terms).sum() / terms.sum(), whole)
    logged = []
    module.log_dict = logged.append
    for batch in parts:
        module.validation_step(batch, 0)
    module.on_validation_epoch_end()
    torch.testing.assert_close(logged[0]["val/loss"], whole)


@pytest.mark.parametrize("option", [{"label_smoothing": 1.0}, {"beam_size": 0}, {"length_penalty": -1.0}])
def test_options_out_of_range_are_refused(option):
    with pytest.raises(ValueError, match=f"Expected '{next(iter(option))}'"):
        SequenceObjective(**option)


def test_models_that_search_for_nothing_are_refused():
    with pytest.raises(ValueError, match=r"a model with 'search'.*\(got GINE\)"):
        MultiLabelModule(GINE(), ["a", "b", "c"], SequenceObjective())
