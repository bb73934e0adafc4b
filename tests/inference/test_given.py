"""Tests labels that are given by the caller or carried by the samples."""

from copy import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

import tg_mlc
from tg_mlc.data import from_arrays
from tg_mlc.data.bags import with_attribute, without_attribute
from tg_mlc.graphs import fully_connected
from tg_mlc.inference import Model
from tg_mlc.inference.decisions import Calibration
from tg_mlc.nn.given import GivenLabels, given_in

NAN = float("nan")
X = np.random.default_rng(5).normal(size=(30, 5)).astype(np.float32)
GIVEN = np.where(np.random.default_rng(6).random((30, 3)) < 0.4, 1.0, NAN)


def samples_with_given(x, given):
    samples = from_arrays(x, np.full((len(x), 3), NAN), ["a", "b", "c"], kind="vector")
    return with_attribute(samples, "given", torch.from_numpy(given).float())


@pytest.mark.parametrize("name", ["vectors", "given"])
def test_samples_that_carry_given_labels_are_predicted_as_with_an_argument(name, saved):
    model = tg_mlc.load(saved(name))
    x = X[:, : model.features.steps[0].num_inputs]
    samples = samples_with_given(x, GIVEN)
    expected = model.probabilities(x, given=GIVEN)
    np.testing.assert_allclose(model.probabilities(samples), expected, atol=1e-6)
    assert "given" in samples[0]
    logits = model.logits(model.prepare(samples))
    np.testing.assert_allclose(logits, model.logits(model.prepare(x)), atol=1e-6)


class Net(nn.Module):
    """Returns logits of sums of nodes, plus effects of given labels."""

    def __init__(self, num_labels):
        super().__init__()
        self.num_labels = num_labels
        self.lin, self.given = nn.Linear(2, num_labels), GivenLabels(num_labels)

    def forward(self, batch):
        sums = torch.zeros(batch.num_graphs, 2).index_add(0, batch.batch, batch.x)
        logits, given = self.lin(sums), given_in(self, batch)
        return logits if given is None else logits + self.given(given).sum(dim=1)


def graphs(num_samples=60):
    generator = torch.Generator().manual_seed(0)
    samples = []
    for _ in range(num_samples):
        x = torch.randn(int(torch.randint(1, 5, (1,), generator=generator)), 2, generator=generator)
        samples.append(Data(x=x, y=(x.sum(dim=0) > 0).float().view(1, -1)))
    return samples


def test_lists_of_samples_take_given_labels():
    torch.manual_seed(0)
    model, samples = Model.of(Net(2), ["a", "b"]), graphs(4)
    given = torch.tensor([[1.0, NAN], [NAN, NAN], [NAN, 0.0], [NAN, NAN]])
    expected = model.probabilities(samples, given=given.numpy())
    assert expected[0, 0] == 1.0
    assert (expected[0] != model.probabilities(samples)[0]).all()
    carriers = [copy(sample) for sample in samples]
    for sample, row in zip(carriers, given, strict=True):
        sample.given = row.view(1, -1)
    np.testing.assert_array_equal(model.probabilities(carriers), expected)
    with pytest.raises(ValueError, match="'given' of every sample, or of none"):
        model.probabilities([carriers[0], samples[1]])


def test_a_network_of_given_labels_is_calibrated_by_lists_of_samples():
    model = Model.of(Net(2), ["a", "b"]).calibrate(graphs())
    assert model.stage(Calibration).masked is not None
    frame = model.predict(graphs(3), given={"a": 1})
    assert (frame["probability"]["a"] == 1).all()


def test_unreadable_rows_do_not_count_as_rows_to_predict(saved):
    pytest.importorskip("rdkit")
    model = tg_mlc.load(saved("molecules"))
    given = [dict.fromkeys(model.label_names, 1), {}]
    with pytest.warns(UserWarning, match="1 input cannot be read"):
        frame = model.predict(["CCO", "no molecule("], given=given)
    assert (frame["probability"].iloc[0] == 1).all()
    assert frame["probability"].iloc[1].isna().all()
    with pytest.raises(ValueError, match="all 2 labels given"):
        model.predict(["CCO"], given=given[:1])


def test_of_samples_returns_a_model_with_its_own_thresholds(saved):
    model = tg_mlc.load(saved("vectors"))
    thresholds = model.thresholds("f1_micro").copy()
    model.of_samples().decision.tuners = {}
    np.testing.assert_array_equal(model.thresholds("f1_micro"), thresholds)


def test_labels_of_a_graph_in_another_order_are_refused():
    class Labels(nn.Module):
        num_labels = 2

        @property
        def label_graph(self):
            return fully_connected(["b", "a"])

    network = nn.Sequential(Labels())
    with pytest.raises(ValueError, match="the label graph"):
        Model.of(network, ["a", "b"])


def test_an_attribute_is_removed_without_changing_the_samples():
    samples = samples_with_given(X, GIVEN)
    plain = without_attribute(samples[5:9], "given")
    assert "given" not in plain[0]
    assert torch.equal(plain.rows("x"), samples.rows("x")[5:9])
    assert "given" in samples[0]
