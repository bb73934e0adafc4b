from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import Subset

from tests.sequences.histories import histories
from tg_mlc.graphs import fully_connected
from tg_mlc.saving import Predictor
from tg_mlc.sequences import LANET, EventPreprocessor, time_split
from tg_mlc.training import MultiLabelDataModule, MultiLabelModule, fit


class LastCounts(nn.Module):
    """A linear map of how often each label is in the window."""

    def __init__(self, num_labels):
        super().__init__()
        self.linear = nn.Linear(num_labels, num_labels)

    def forward(self, batch):
        counts = torch.zeros_like(batch.y)
        counts.index_put_((batch.sample, batch.label), torch.ones(len(batch.label)), accumulate=True)
        return self.linear(counts)


def make(**options):
    events = histories()
    split = time_split(events)
    preprocessor = EventPreprocessor()
    dataset = preprocessor.fit_transform(events, split)
    return MultiLabelDataModule(dataset, split, batch_size=16, **options), preprocessor


def test_loaders_hold_their_parts():
    data, _ = make()
    loaders = [data.train_dataloader(), data.val_dataloader(), data.test_dataloader()]
    for loader, part in zip(loaders, data.split.parts, strict=True):
        batches = list(loader)
        assert [batch.num_graphs for batch in batches[:-1]] == [16] * (len(batches) - 1)
        loaded = sorted(torch.cat([batch.y for batch in batches]).tolist())
        assert loaded == sorted(data.dataset.batch(part).y.tolist())
    assert torch.equal(batches[0].memory, data.dataset.batch(data.split.test[:16]).memory)


def test_workers_load_the_same():
    for alone, worker in zip(make()[0].train_dataloader(), make(num_workers=1)[0].train_dataloader(), strict=True):
        assert torch.equal(alone.memory, worker.memory)
        assert alone.num_graphs == worker.num_graphs


def test_a_model_is_trained_and_saved_with_what_makes_its_samples(tmp_path):
    data, preprocessor = make()
    names = data.dataset.label_names
    module = MultiLabelModule(LastCounts(len(names)), names, lr=0.1, preprocessor=preprocessor)
    result = fit(module, data, tmp_path, max_epochs=2, monitor="val/micro_roc_auc", logger=False)
    scores = result.predict(data.test_dataloader())
    assert scores.shape == (len(data.split.test), len(names))
    loaded = MultiLabelModule.load_from_checkpoint(result.checkpoint, model=LastCounts(len(names)), weights_only=True)
    batch = loaded.preprocessor.transform(histories()).batch(data.split.test)
    assert torch.equal(loaded.predict_step(batch), scores) or torch.allclose(loaded.predict_step(batch), scores)


def test_a_predictor_scores_events_and_what_comes_next():
    data, preprocessor = make()
    dataset = data.dataset
    model = LANET(fully_connected(dataset.label_names), dataset.num_entities, 4, window=dataset.window)
    predictor = Predictor(MultiLabelModule(model, dataset.label_names, preprocessor=preprocessor))
    events = histories()
    scores = predictor.scores(events, batch_size=7)
    expected = model.eval()(dataset.batch(range(len(dataset)))).sigmoid().detach().numpy()
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    following = events.with_next()
    targets = (following.ptr[1:] - 1).tolist()
    frame = predictor.predict(Subset(preprocessor.transform(following), targets))["probability"]
    assert (len(frame), list(frame)) == (events.num_entities, dataset.label_names)
    np.testing.assert_allclose(frame, predictor.scores(following)[targets], atol=1e-6)
    assert not np.allclose(frame, scores[(events.ptr[1:] - 1).numpy()])
    with pytest.raises(ValueError, match=r"no 'given' for samples that come as batches \(got NextSetDataset\)"):
        predictor.scores(events, given={"1": 1})
