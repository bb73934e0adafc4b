from __future__ import annotations

import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data

from tg_mlc.nn.encoders import BagEncoder
from tg_mlc.papers import LabelSequenceModel
from tg_mlc.papers.decoders import AttentionDecoder, beam_search

NAN = torch.nan
Y = torch.tensor([[1, 0, 1.0], [0, NAN, 1], [NAN, NAN, NAN]])
WORDS = [[0, 3], [1, 2, 4], [2]]


@pytest.fixture
def batch():
    return Batch.from_data_list(
        [Data(x=torch.tensor(x), y=y.view(1, -1), num_nodes=len(x)) for x, y in zip(WORDS, Y, strict=True)]
    )


def make_model(max_length: int | None = None, ranks=(2, 1, 0)) -> LabelSequenceModel:
    torch.manual_seed(0)
    decoder = AttentionDecoder(8, 3, 1, heads=2)
    return LabelSequenceModel(BagEncoder(5, 8), decoder, torch.tensor(ranks), max_length).eval()


def test_teacher_forcing_follows_the_order(batch):
    model = make_model()
    log_probs, symbols = model(batch)
    assert symbols.tolist() == [[2, 0, 3], [2, 3, 3], [3, 3, 3]]
    components = model.encoder(batch)
    logits = model.decoder(components.x, components.ptr, torch.tensor([[3, 2, 0], [3, 2, 3], [3, 3, 3]]))
    torch.testing.assert_close(log_probs[0, 0], logits[0, 0].log_softmax(dim=0))
    torch.testing.assert_close(log_probs[0, 1, [0, 1, 3]], logits[0, 1, [0, 1, 3]].log_softmax(dim=0))


def test_unknown_labels_compete_with_none(batch):
    probs = make_model()(batch)[0].exp()
    assert (probs[1, 0] > 0).tolist() == [True, False, True, True]
    assert probs[2, 0].tolist() == [0, 0, 0, 1]


def test_a_search_is_that_of_the_decoder_up_to_the_longest_set(batch):
    model = make_model(max_length=1)
    with torch.no_grad():
        model.decoder.readout.bias[3] = -10.0  # it would never stop
    with pytest.warns(UserWarning, match="1 labels"):
        found = model.search(batch, beam_size=2, length_penalty=0.5)
    x, ptr, *_ = model.encoder(batch)
    with pytest.warns(UserWarning, match="1 labels"):
        expected = beam_search(model.decoder, x, ptr, beam_size=2, length_penalty=0.5, max_length=1)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_weights_bring_the_order_and_the_longest_set_along(batch):
    model, other = make_model(2), make_model(ranks=(0, 1, 2))
    other.load_state_dict(model.state_dict())
    torch.testing.assert_close(other(batch)[0], model(batch)[0])
    assert int(other.max_length) == 2


def test_options_are_checked():
    decoder = AttentionDecoder(8, 3, 1, heads=2)
    with pytest.raises(ValueError, match=r"'ranks' of shape \[3\] \(got \[2\]\)"):
        LabelSequenceModel(nn.Identity(), decoder, torch.arange(2))
    with pytest.raises(ValueError, match="'max_length'"):
        make_model(max_length=0)
