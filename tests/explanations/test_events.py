from __future__ import annotations

import numpy as np
import pytest
import torch

import tg_mlc
from tests.sequences.histories import histories
from tg_mlc.explanations.question import Question
from tg_mlc.graphs import fully_connected
from tg_mlc.sequences import LANET, EventPreprocessor, personal_memory, time_split
from tg_mlc.sequences.components import SUMMARY


@pytest.fixture(scope="module")
def dataset():
    events = histories()
    return EventPreprocessor().fit_transform(events, time_split(events))


def lanet(dataset, memory):
    torch.manual_seed(0)
    options = {"memory": personal_memory(dataset, torch.arange(60), channels=4)} if memory else {}
    graph = fully_connected(dataset.label_names)
    network = LANET(
        graph, dataset.num_entities, 8, num_layers=1, heads=2, window=dataset.window, **options
    )
    torch.nn.init.normal_(network.readout.weight)
    return network.eval()


@pytest.mark.parametrize("memory", [False, True])
def test_events_of_the_past_are_components(dataset, memory):
    network = lanet(dataset, memory)
    targets = torch.utils.data.Subset(
        dataset, np.flatnonzero(np.diff(dataset.entity_of) == 0)[[10, 11, 60]] + 1
    )
    explanation = tg_mlc.explain(network, targets, label_names=dataset.label_names)
    assert explanation.methods == ["gradient", "integrated gradients", "occlusion"]
    for row, target in enumerate(targets.indices):
        sample, batch = explanation[row], dataset.batch([target])
        np.testing.assert_allclose(
            sample.probability, network(batch)[0].sigmoid().detach(), atol=1e-5
        )
        assert (sample.components[-1] == SUMMARY) == memory
        assert len(sample.components) == int(batch.position.max()) + memory
        assert sample.label_effects.shape == sample.label_attention[0, 0].shape == (5, 5)
        assert np.abs(sample.label_effects).max() > 0
        [alone] = tg_mlc.explain(
            network, torch.utils.data.Subset(dataset, [target]), label_names=dataset.label_names
        )
        for method, scores in sample.scores.items():
            np.testing.assert_allclose(scores, alone.scores[method], atol=1e-5)
            assert np.isnan(scores).any() == (memory and method != "occlusion")
        if not memory:  # of no event but the labels' own embeddings
            question = Question(
                network, torch.utils.data.Subset(dataset, [target]), dataset.label_names
            )
            [data] = question.samples
            ends = question.logits(
                [data, question.hide(data, np.zeros(len(sample.components), bool))]
            )
            summed = sample.scores["integrated gradients"].sum(axis=0)
            np.testing.assert_allclose(summed, ends[0] - ends[1], rtol=0.01, atol=0.01)


def test_a_hidden_event_is_as_if_it_had_not_been(dataset):
    network, targets = lanet(dataset, memory=False), torch.utils.data.Subset(dataset, [40])
    question = Question(network, targets, dataset.label_names)
    [sample] = question.samples
    hidden = question.hide(sample, np.array([True, False, True]))
    assert hidden.position.unique().tolist() == [1, 3]
    assert sample.position.unique().tolist() == [1, 2, 3]
