from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch, Data

from tests.models.samples import molecules
from tg_mlc.nn import FeatureMessagePassing
from tg_mlc.nn.encoders import BagEncoder, MessageEncoder, MoleculeEncoder
from tg_mlc.nn.encoders.components import RecurrentEncoder


def documents(*words: list[int]) -> Batch:
    return Batch.from_data_list([Data(x=torch.tensor(x, dtype=torch.long), num_nodes=len(x)) for x in words])


def test_messages_are_those_of_feature_message_passing_along_the_bonds() -> None:
    encoder = MessageEncoder(MoleculeEncoder(16), 2, heads=2).eval()
    batch = Batch.from_data_list(molecules(4))
    assert isinstance(encoder.features, FeatureMessagePassing)
    x, ptr, edge_index, edge_attr, _ = encoder.encoder(batch)
    out = encoder(batch)
    torch.testing.assert_close(out.x, encoder.features(x, ptr=ptr, edge_index=edge_index, edge_attr=edge_attr))
    assert torch.equal(out.ptr, batch.ptr)
    assert encoder.channels == 16


@pytest.mark.parametrize("num_layers", [1, 3])
def test_a_recurrent_encoder_reads_every_sample_on_its_own_in_both_directions(num_layers: int) -> None:
    encoder = RecurrentEncoder(BagEncoder(9, 8), num_layers).eval()
    words = [[1, 5, 2], [], [7], [3, 3, 8, 0]]
    x, ptr, *_ = encoder(documents(*words))
    assert ptr.tolist() == [0, 3, 3, 4, 8]
    for i, sample in enumerate(words):
        if sample:
            embedded = encoder.encoder.embedding.weight[sample]
            torch.testing.assert_close(x[ptr[i] : ptr[i + 1]], encoder.gru(embedded)[0])
    changed, *_ = encoder(documents([1, 5, 4], *words[1:]))
    assert not torch.isclose(x[:3], changed[:3]).all(dim=1).any()
    torch.testing.assert_close(changed[3:], x[3:])


def test_a_recurrent_encoder_takes_a_document_without_words() -> None:
    out = RecurrentEncoder(BagEncoder(9, 8)).eval()(documents([]))
    assert out.x.shape == (0, 8)


def test_half_of_the_channels_are_for_each_direction() -> None:
    with pytest.raises(ValueError, match=r"even number of 'channels'.*\(got 7\)"):
        RecurrentEncoder(BagEncoder(9, 7))
