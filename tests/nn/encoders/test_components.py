import pytest
import torch
from torch.testing import assert_close
from torch_geometric.data import Batch, Data

from tests.models.samples import molecules
from tg_mlc.nn import FeatureMessagePassing
from tg_mlc.nn.encoders import BagEncoder, GivenComponents, MessageEncoder, MoleculeEncoder
from tg_mlc.nn.encoders.components import RecurrentEncoder, ptr_of

NAN = float("nan")


def documents(*words):
    samples = [Data(x=torch.tensor(x, dtype=torch.long), num_nodes=len(x)) for x in words]
    return Batch.from_data_list(samples)


def test_ptr_of():
    data = [Data(x=torch.zeros(n, 2)) for n in (3, 0, 2, 0)]
    assert ptr_of(data[0]).tolist() == [0, 3]
    batch = Batch.from_data_list(data)
    assert ptr_of(batch).tolist() == [0, 3, 3, 5, 5]
    del batch.ptr
    assert ptr_of(batch).tolist() == [0, 3, 3, 5, 5]
    assert ptr_of(Data(x=torch.zeros(3, 2), batch=torch.tensor([0, 0, 1]))).tolist() == [0, 2, 3]


def test_each_known_label_is_a_component_of_its_sample():
    batch, encoder = documents([0, 2], []), GivenComponents(BagEncoder(3, 4), num_labels=2)
    alone = encoder(batch)
    for given, ptr, rows in (
        ([[NAN, 1.0], [0.0, 1.0]], [0, 3, 5], [3, 0, 3]),
        ([[NAN, NAN], [NAN, NAN]], [0, 2, 2], []),
    ):
        batch.given = torch.tensor(given)
        out = encoder(batch)
        assert out.ptr.tolist() == ptr
        assert torch.equal(out.x, torch.cat([alone.x, encoder.embedding.weight[rows]]))
    batch.given = torch.zeros(2, 3)
    with pytest.raises(ValueError, match=r"Expected 'given' of shape \[2, 2\] \(got \[2, 3\]\)"):
        encoder(batch)


def test_messages_are_those_of_feature_message_passing_along_the_bonds():
    encoder = MessageEncoder(MoleculeEncoder(16), 2, heads=2).eval()
    batch = Batch.from_data_list(molecules(4))
    assert isinstance(encoder.features, FeatureMessagePassing)
    x, ptr, edge_index, edge_attr, _ = encoder.encoder(batch)
    out = encoder(batch)
    assert_close(out.x, encoder.features(x, ptr=ptr, edge_index=edge_index, edge_attr=edge_attr))
    assert torch.equal(out.ptr, batch.ptr)
    assert encoder.channels == 16


@pytest.mark.parametrize("num_layers", [1, 3])
def test_a_recurrent_encoder_reads_every_sample_on_its_own_in_both_directions(num_layers):
    encoder = RecurrentEncoder(BagEncoder(9, 8), num_layers).eval()
    words = [[1, 5, 2], [], [7], [3, 3, 8, 0]]
    x, ptr, *_ = encoder(documents(*words))
    assert ptr.tolist() == [0, 3, 3, 4, 8]
    for i, sample in enumerate(words):
        if sample:
            embedded = encoder.encoder.embedding.weight[sample]
            assert_close(x[ptr[i] : ptr[i + 1]], encoder.gru(embedded)[0])
    changed, *_ = encoder(documents([1, 5, 4], *words[1:]))
    assert not torch.isclose(x[:3], changed[:3]).all(dim=1).any()
    assert_close(changed[3:], x[3:])


def test_a_recurrent_encoder_takes_a_document_without_words_and_an_even_number_of_channels():
    assert RecurrentEncoder(BagEncoder(9, 8)).eval()(documents([])).x.shape == (0, 8)
    with pytest.raises(ValueError, match=r"even number of 'channels'.*\(got 7\)"):
        RecurrentEncoder(BagEncoder(9, 7))
