import numpy as np
import pytest
import scipy.sparse as sp
import torch

from tg_mlc.graphs import fully_connected
from tg_mlc.models import LaMP
from tg_mlc.models.factories import start_from_documents
from tg_mlc.nn.encoders import BagEncoder


@pytest.fixture
def documents():
    """Documents of three topics, each of which has five words of its own."""
    rng = np.random.default_rng(0)
    topic = np.arange(60) % 3
    words = rng.random((60, 15)) < np.where(np.arange(15) // 5 == topic[:, None], 0.6, 0.1)
    y = torch.nn.functional.one_hot(torch.from_numpy(topic), 4).float()  # no document has the last label
    return sp.csr_array(words.astype(np.float32)), y


def started(y, x, **kwargs):
    torch.manual_seed(0)
    model = LaMP(BagEncoder(15, 16), fully_connected(4), num_steps=2, num_feature_layers=0, **kwargs)
    before = model.labels.embedding.weight.detach().clone()
    start_from_documents(model, x, y)
    return model, before


def test_labels_start_near_the_words_of_their_documents(documents):
    x, y = documents
    model, before = started(y, x)
    words, labels = model.encoder.embedding.weight, model.labels.embedding.weight
    likeness = (labels[:3] @ words.T).view(3, 3, 5).mean(dim=2)
    assert likeness.argmax(dim=1).tolist() == [0, 1, 2]
    torch.testing.assert_close(labels[:3].norm(dim=1), torch.full((3,), 4.0))
    assert labels[3].equal(before[3])
    for conv in model.labels.feature_to_label:
        assert conv.lin_key.weight.equal(conv.lin_query.weight)
        assert conv.lin_key.weight is not conv.lin_query.weight


def test_unknown_labels_say_nothing(documents):
    x, y = documents
    some = y.clone()
    some[::2] = float("nan")
    model, _ = started(some, x)
    without, _ = started(some.nan_to_num(0.0), x)
    assert model.labels.embedding.weight.equal(without.labels.embedding.weight)


def test_labels_of_a_tied_readout_keep_their_start(documents):
    x, y = documents
    model, before = started(y, x, tied=True)
    assert model.labels.embedding.weight.equal(before)
