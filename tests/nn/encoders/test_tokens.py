import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch.testing import assert_close
from torch_geometric.data import Batch, Data

from tg_mlc.nn.encoders import BagEncoder, SequenceEncoder


def documents(**kwargs):
    data = [Data(x=torch.tensor([4, 2, 7]), num_nodes=3), Data(x=torch.tensor([2]), num_nodes=1)]
    for key, values in kwargs.items():
        data[0][key], data[1][key] = torch.tensor(values[:3]), torch.tensor(values[3:])
    return Batch.from_data_list(data)


def test_words_of_the_same_documents_start_alike():
    # Two topics of five words each, and a word that no document has.
    topic = np.arange(40) % 2
    probability = np.where(np.arange(10) // 5 == topic[:, None], 0.7, 0.05)
    words = np.random.default_rng(0).random((40, 10)) < probability
    documents = sp.csr_array(np.pad(words.astype(np.float32), ((0, 0), (0, 1))))
    encoder = BagEncoder(11, 2)
    encoder.start_from_documents(documents)
    start = encoder.embedding.weight.detach().clone()
    frequency = torch.from_numpy((documents.toarray() > 0).sum(axis=0))[:10]
    length = start[:10].norm(dim=1)
    rarity = 1 + torch.log(41 / (1 + frequency))
    assert_close(length * rarity.sqrt(), (length[0] * rarity[0].sqrt()).expand(10))
    # The mean length is that of normalised states.
    assert (length @ frequency.float()) / frequency.sum() == pytest.approx(2**0.5)
    assert (start[10] == 0).all()
    cosine = torch.nn.functional.normalize(start[:10]) @ torch.nn.functional.normalize(start[:10]).T
    same_topic = torch.arange(10)[:, None] // 5 == torch.arange(10) // 5
    assert cosine[same_topic].mean() > cosine[~same_topic].mean() + 0.5
    encoder.start_from_documents(documents)
    assert torch.equal(encoder.embedding.weight, start)
    wide = BagEncoder(11, 64)  # It has more channels than there are documents or words.
    wide.start_from_documents(documents)
    assert wide.embedding.weight.isfinite().all()
    assert wide.embedding.weight[:10].std(dim=0).min() > 0.1  # All channels are used.


def test_a_bag_has_the_embeddings_of_its_words():
    encoder = BagEncoder(10, 8)
    x, ptr, edge_index, edge_attr, _ = encoder(documents())
    assert torch.equal(x, encoder.embedding.weight[[4, 2, 7, 2]])
    assert torch.equal(encoder(Data(x=torch.tensor([[4], [2]]))).x, x[:2])  # a column of words
    assert (ptr.tolist(), edge_index, edge_attr) == ([0, 3, 4], None, None)
    weighted = encoder(documents(weight=[1.0, 2.0, 0.0, 3.0])).x
    assert_close(weighted, x * torch.tensor([[1.0], [2.0], [0.0], [3.0]]))


def test_words_that_are_not_kept_are_skipped():
    kept = torch.ones(10, dtype=torch.bool)
    kept[2] = False
    encoder = BagEncoder(10, 8, kept=kept)
    batch = documents(weight=[1.0, 2.0, 3.0, 4.0])
    batch.edge_index = torch.tensor([[0, 0, 2], [1, 2, 0]])
    x, ptr, edge_index, *_ = encoder(batch)
    assert_close(x, encoder.embedding.weight[[4, 7]] * torch.tensor([[1.0], [3.0]]))
    assert ptr.tolist() == [0, 2, 2]  # nothing is left of the second document
    assert edge_index.tolist() == [[0, 1], [1, 0]]
    words = sp.csr_array(np.random.default_rng(0).random((6, 10)).astype(np.float32))
    encoder.start_from_documents(words)
    assert (encoder.embedding.weight.norm(dim=1) > 0).equal(kept)


def test_normalised_weights_have_a_mean_square_of_one():
    encoder = BagEncoder(10, 8, normalized=True)
    x = encoder(documents(weight=[1.0, 2.0, 2.0, 0.0])).x
    factor = torch.tensor([1.0, 2.0, 2.0, 0.0]).unsqueeze(-1) / 3**0.5
    assert_close(x, encoder.embedding.weight[[4, 2, 7, 2]] * factor)


def test_positions_start_again_in_every_document():
    encoder = SequenceEncoder(10, 8)
    x, ptr, *_ = encoder(documents())
    assert ptr.tolist() == [0, 3, 4]
    position = x - encoder.embedding.weight[[4, 2, 7, 2]]
    assert_close(position[0], position[3])
    for row, number in enumerate((1, 2, 3)):  # Positions are counted from one.
        angles = [number / 10000 ** ((c - c % 2) / 8) for c in range(8)]
        expected = [(math.cos if c % 2 else math.sin)(angle) for c, angle in enumerate(angles)]
        assert_close(position[row], torch.tensor(expected), atol=1e-6, rtol=0)


def test_positions_may_come_from_a_table():
    table = torch.randn(3, 8)
    encoder = SequenceEncoder(10, 8, positions=table)
    x = encoder(documents()).x
    assert_close(x, encoder.embedding.weight[[4, 2, 7, 2]] + table[[0, 1, 2, 0]])
    assert "positions" in encoder.state_dict()
