import numpy as np
import pytest
import torch
from scipy.stats import norm

from tg_mlc.datasets import Planted
from tg_mlc.metrics import macro_roc_auc


def test_samples_split_and_graph_have_the_chosen_sizes():
    dataset = Planted(num_samples=500, num_labels=10, degree=3, frequency=0.2)
    assert (len(dataset), dataset.num_labels) == (500, 10)
    assert dataset.official_split().sizes == (360, 40, 100)
    assert dataset.y.mean().item() == pytest.approx(0.2, abs=0.02)
    assert dataset[3].x.shape == (10, 8)
    assert dataset[3].to_label.tolist() == list(range(10))
    degrees = torch.bincount(dataset.true_graph.edge_index[1])
    assert degrees.tolist() == [4] * 10  # Self-loops count.
    assert dataset.true_graph.kind == "planted"


def test_labels_follow_from_own_and_neighbours_signals():
    dataset = Planted(num_samples=200, num_labels=8, degree=3, share=0.6, frequency=0.3)
    assert macro_roc_auc(dataset.y, dataset.scores()) == 1.0
    graph = dataset.true_graph.remove_self_loops().edge_index
    own = dataset.scores(messages=False) / np.sqrt(1 - 0.6)
    label = 5
    neighbours = graph[0, graph[1] == label]
    score = np.sqrt(0.4) * own[:, label] + np.sqrt(0.6 / 3) * own[:, neighbours].sum(axis=1)
    np.testing.assert_allclose(score, dataset.scores()[:, label], atol=1e-5)
    assert ((score > norm.isf(0.3)) == (dataset.y[:, label].numpy() == 1)).all()


def test_subsets_keep_the_scores_of_their_samples():
    dataset = Planted(num_samples=50, num_labels=4, degree=1)
    part = dataset[torch.tensor([7, 3, 40])]
    for subset in (part, part.copy(), dataset.copy([7, 3, 40]), dataset[2:].copy([5, 1, 38])):
        np.testing.assert_array_equal(subset.scores(), dataset.scores()[[7, 3, 40]])
    assert Planted(50, 4, 1).copy().scores().shape == (50, 4)


def test_the_signal_is_one_direction_of_the_component():
    dataset = Planted(num_samples=300, num_labels=4, degree=1, share=0.0)
    x = torch.stack([data.x for data in dataset]).view(-1, 8).numpy()
    direction, residuals, *_ = np.linalg.lstsq(x, dataset.scores().reshape(-1), rcond=None)
    assert np.linalg.norm(direction) == pytest.approx(1.0, abs=1e-5)
    assert residuals[0] == pytest.approx(0.0, abs=1e-6)


def test_scores_without_messages_get_worse_as_the_share_grows():
    roc_aucs = []
    for share in (0.0, 0.3, 0.6, 1.0):
        dataset = Planted(num_samples=3000, share=share)
        roc_aucs.append(macro_roc_auc(dataset.y, dataset.scores(messages=False)))
    assert roc_aucs[0] == 1.0
    assert roc_aucs[0] > roc_aucs[1] > roc_aucs[2] > roc_aucs[3]
    assert roc_aucs[3] == pytest.approx(0.5, abs=0.02)


def test_the_seed_determines_the_labels():
    first, same, other = (Planted(50, seed=seed).y for seed in (1, 1, 2))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": 1.5}, "'share'"),
        ({"frequency": 0.0}, "'frequency'"),
        ({"num_samples": 2}, "'num_samples'"),
        ({"num_labels": 5, "degree": 3}, "to be even"),
        ({"num_labels": 4, "degree": 4}, "below 'num_labels'"),
    ],
)
def test_bad_numbers_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Planted(**options)
