import numpy as np
import pytest
import torch
from torch.utils.data import Subset

import tg_mlc
from tests.sequences.histories import histories
from tg_mlc.explanations.question import Question
from tg_mlc.graphs import fully_connected
from tg_mlc.sequences import LANET, EventPreprocessor, personal_memory, time_split
from tg_mlc.sequences.windows import SUMMARY


@pytest.fixture(scope="module")
def dataset():
    events = histories()
    return EventPreprocessor().fit_transform(events, time_split(events))


def lanet(dataset, memory):
    torch.manual_seed(0)
    options = {"memory": personal_memory(dataset, torch.arange(60), channels=4)} if memory else {}
    graph = fully_connected(dataset.label_names)
    options |= {"channels": 8, "num_layers": 1, "heads": 2, "window": dataset.window}
    network = LANET(graph, dataset.num_entities, **options)
    torch.nn.init.normal_(network.readout.weight)
    return network.eval()


@pytest.mark.parametrize("memory", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_events_of_the_past_are_components(dataset, memory):
    network, names = lanet(dataset, memory), dataset.label_names
    rows = np.flatnonzero(np.diff(dataset.entity_of) == 0)[[10, 60]] + 1
    targets = [Subset(dataset, part) for part in (rows, rows[:1])]
    explanation, [alone] = (tg_mlc.explain(network, item, label_names=names) for item in targets)
    assert explanation.methods == ["integrated gradients", "occlusion"]
    for row, sample in zip(rows, explanation, strict=True):
        batch = dataset.batch([row])
        expected = network(batch)[0].sigmoid().detach()
        np.testing.assert_allclose(sample.probability, expected, atol=1e-5)
        assert (sample.components[-1] == SUMMARY) == memory
        assert len(sample.components) == int(batch.position.max()) + memory
        assert sample.label_effects.shape == sample.label_attention[0, 0].shape == (5, 5)
        assert np.abs(sample.label_effects).max() > 0
    sample = explanation[0]
    for method, scores in sample.scores.items():
        np.testing.assert_allclose(scores, alone.scores[method], atol=1e-5)
        assert np.isnan(scores).any() == (memory and method != "occlusion")
    if not memory:  # Without events, only the labels' own embeddings are left.
        question = Question(network, targets[1], names)
        [data] = question.samples
        hidden = question.hide(data, np.zeros(len(sample.components), bool))
        whole, without = question.logits([data, hidden])
        sums = sample.scores["integrated gradients"].sum(axis=0)
        np.testing.assert_allclose(sums, whole - without, rtol=0.01, atol=0.01)


def test_a_hidden_event_is_removed(dataset):
    network, targets = lanet(dataset, memory=False), Subset(dataset, [40])
    question = Question(network, targets, dataset.label_names)
    [sample] = question.samples
    hidden = question.hide(sample, np.array([True, False, True]))
    assert hidden.position.unique().tolist() == [1, 3]
    assert sample.position.unique().tolist() == [1, 2, 3]
