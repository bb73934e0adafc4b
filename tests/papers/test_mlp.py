from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import global_mean_pool

from tests.models.samples import batch
from tg_mlc.data import ArrayDataset
from tg_mlc.data.records import Records
from tg_mlc.graphs import edgeless
from tg_mlc.nn.encoders import MoleculeEncoder, VectorEncoder
from tg_mlc.papers import binary_relevance, pooled_mlp
from tg_mlc.papers.mlp import BinaryRelevance, PooledMLP

rng = np.random.default_rng(0)
WORDS = (rng.random((60, 20)) < 0.4).astype(np.float32)
WORDS[:, 0] = 1
Y = (rng.random((60, 4)) < [0.1, 0.3, 0.5, 0.7]).astype(np.float32)
FORMS = {"bag": sp.csr_array(WORDS), "vector": WORDS}


def samples(form):
    return ArrayDataset(Records(FORMS[form], Y, list("abcd")).to_samples())


def awake(model):
    """Returns the model with random last weights, which start at zero."""
    torch.nn.init.normal_(model.layers[-1].weight)
    return model.eval()


def assert_near(actual, expected):
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-5)


def test_a_pooled_mlp_is_a_perceptron_over_the_mean():
    model = PooledMLP(MoleculeEncoder(8), 5, num_layers=4, num_feature_layers=0).eval()
    data = batch(6)
    x = global_mean_pool(model.pooled.encoder(data).x, data.batch)
    for lin in model.mlp.lins[:-1]:
        x = lin(x).relu()
    assert len(model.mlp.lins) == 4
    assert_near(model(data), model.mlp.lins[-1](x))


@pytest.mark.parametrize("form", FORMS)
def test_linear_relevance_is_linear_in_the_raw_vector(form):
    train = samples(form)
    model = binary_relevance(train, edgeless(4), channels=None, frequency_strength=1.0).eval()
    data = Batch.from_data_list(list(train))
    assert_near(model(data).sigmoid(), torch.tensor(Y.mean(axis=0)).expand(60, 4))
    encoder = model.encoder
    weight = encoder.embedding.weight if form == "bag" else encoder.lin.weight.T
    torch.nn.init.normal_(weight)
    x, bias = torch.from_numpy(WORDS), model.bias
    if form == "bag":
        x = x / x.norm(dim=1, keepdim=True)
    else:
        bias = bias + encoder.lin.bias
    assert_near(model(data), x @ weight + bias)


def test_words_of_sequences_are_counted():
    train = samples("bag")
    train.kind = "sequence"
    model = awake(binary_relevance(train, edgeless(4), channels=8))
    logits, reverse = (model(Data(x=torch.tensor(words))) for words in ([1, 2, 3], [3, 2, 1]))
    assert_near(logits, reverse)


@pytest.mark.parametrize("channels", [None, 8])
def test_known_labels_are_entries_of_the_raw_vector(channels):
    train = samples("bag")
    train.kind = "sequence"
    model = binary_relevance(train, edgeless(4), channels=channels, given_labels=True).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    given = torch.tensor([[1.0, torch.nan, 0.0, torch.nan]])

    def logits(*words, **given):
        return model(Data(x=torch.tensor(words), **given))

    with_given, without = logits(1, 2, 3, given=given), logits(1, 2, 3)
    assert_near(with_given, logits(3, 2, 1, given=given))
    assert (with_given != without).all()
    torch.nn.init.zeros_(model.of_known.weight)
    assert_near(logits(1, 2, 3, given=given), without)


def test_known_labels_that_are_not_taken_are_refused():
    model = binary_relevance(samples("bag"), edgeless(4))
    with pytest.raises(ValueError, match="without 'given', as BinaryRelevance"):
        model(Data(x=torch.tensor([1]), given=torch.ones(1, 4)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("node_messages", [True, False])
def test_components_may_be_without_messages(form, node_messages):
    model = pooled_mlp(samples(form), edgeless(4), node_messages, channels=8, num_components=3)
    assert (model.pooled.features is None) == (not node_messages)
    expected = torch.logit(torch.tensor(Y.mean(axis=0)))
    torch.testing.assert_close(model.bias, expected.mean() + 0.5 * (expected - expected.mean()))


def test_a_hidden_layer_is_shared_by_all_labels():
    model = awake(BinaryRelevance(VectorEncoder(20, 8), 4))
    x = torch.from_numpy(WORDS[:5])
    data = Batch.from_data_list([Data(x=row[None]) for row in x])
    assert_near(model(data), model.encoder.lin(x).relu() @ model.layers[-1].weight.T)
