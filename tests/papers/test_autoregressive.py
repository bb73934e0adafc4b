from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Batch

from tg_mlc.data import ArrayDataset
from tg_mlc.data.records import Records
from tg_mlc.nn.encoders import BagEncoder
from tg_mlc.papers import graph2graph_autoregressive, mped_autoregressive, seq2seq

rng = np.random.default_rng(0)
WORDS = (rng.random((60, 30)) < 0.2).astype(np.float32)
WORDS[:, 0] = 1.0  # no document without words
Y = (WORDS @ rng.standard_normal((30, 4)) > 0.3).astype(np.float32)
Y[:, 3] = np.arange(60) < 2
BUILDERS = [mped_autoregressive, graph2graph_autoregressive, seq2seq]


@pytest.fixture
def train():
    return ArrayDataset(Records(sp.csr_array(WORDS), Y, list("abcd")).to_samples())


@pytest.mark.parametrize("encoder", ["fmp", "emb"])
@pytest.mark.parametrize("build", BUILDERS)
def test_steps_know_of_the_input_and_of_labels_before(train, build, encoder):
    torch.manual_seed(0)
    model = build(train, None, encoder, channels=16).eval()
    batch = Batch.from_data_list(train[:8])
    log_probs, symbols = model(batch)
    torch.testing.assert_close(log_probs.exp().sum(dim=-1), torch.ones(symbols.shape))
    alone = [model(Batch.from_data_list([data]))[0][0] for data in train[:8]]
    for together, single in zip(log_probs, alone, strict=True):
        torch.testing.assert_close(together[: len(single)], single)
    assert log_probs[:, 0].std(dim=0).max() > 1e-3


def test_presets_have_the_sizes_of_their_papers(train):
    model = mped_autoregressive(train)
    assert (len(model.encoder.features.convs), len(model.decoder.feature_to_label)) == (3, 3)
    assert [conv.mlp[0].out_channels for conv in model.decoder.label_to_label] == [128] * 3
    assert model.encoder.features.convs[0].mlp[0].out_channels == 128
    model = graph2graph_autoregressive(train, channels=16, encoder_steps=1, decoder_steps=2)
    assert [conv.mlp[0].out_channels for conv in model.decoder.label_to_label] == [16] * 2
    model = seq2seq(train)
    assert (model.encoder.gru.num_layers, model.decoder.gru.num_layers, model.encoder.channels) == (3, 3, 64)
    assert model.encoder.gru.bidirectional
    assert isinstance(seq2seq(train, None, "emb", channels=16).encoder, BagEncoder)


@pytest.mark.parametrize("build", BUILDERS)
def test_order_and_longest_set_come_from_training_samples(train, build):
    model = build(train, channels=16)
    frequent_first = sorted(range(4), key=lambda label: -Y[:, label].sum())
    assert model.ranks.argsort().tolist() == frequent_first
    assert build(train, channels=16, label_order="reverse").ranks.argsort().tolist() == frequent_first[::-1]
    assert int(model.max_length) == Y.sum(axis=1).max()


def test_unknown_options_are_refused(train):
    for build in BUILDERS:
        with pytest.raises(ValueError, match="'encoder' to be 'fmp' or 'emb'"):
            build(train, None, "vectors", channels=16)
        with pytest.raises(ValueError, match="'label_order' to be one of"):
            build(train, channels=16, label_order="longest")
        with pytest.raises(TypeError, match="width"):
            build(train, channels=16, width=2)
    with pytest.raises(ValueError, match="'num_layers' among 1, 2 and 3"):
        seq2seq(train, channels=16, num_layers=4)


@pytest.mark.parametrize("build", BUILDERS)
def test_a_saved_model_is_built_anew_from_a_sample_whose_labels_nobody_knows(train, build):
    model = build(train, channels=16, latent=True).eval()
    unknown = ArrayDataset(train[:1].copy().samples())
    unknown._data.y = torch.full_like(unknown._data.y, torch.nan)
    again = build(unknown, channels=16, latent=True).eval()
    again.load_state_dict(model.state_dict())
    batch = Batch.from_data_list(train[:5])
    torch.testing.assert_close(again.search(batch).scores(), model.search(batch).scores())
