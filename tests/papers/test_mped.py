from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch

from tests.models.samples import molecules
from tg_mlc.data import ArrayDataset
from tg_mlc.data.samples import Samples
from tg_mlc.graphs import LabelGraph, edgeless, fully_connected
from tg_mlc.models import table_lamp
from tg_mlc.nn.encoders import MoleculeEncoder
from tg_mlc.papers import graph2graph, mped

NAMES = ["a", "b", "c", "d"]
PRIOR = LabelGraph(torch.tensor([[0, 1, 2], [1, 0, 2]]), label_names=NAMES)


def hidden_sizes(model):
    convs = [*model.features.convs, *model.labels.feature_to_label, *model.labels.label_to_label]
    return {conv.mlp[0].out_channels for conv in convs}, len(convs)


def test_presets_have_the_sizes_of_their_papers(train):
    model = mped(train, PRIOR)
    assert hidden_sizes(model) == ({128}, 9)
    assert (model.labels.channels, model.labels.feature_to_label[0].heads) == (64, 4)
    assert {conv.dropout for conv in model.labels.feature_to_label} == {0.2}
    assert hidden_sizes(graph2graph(train, PRIOR, channels=16)) == ({16}, 9)
    small = mped(train, PRIOR, channels=16, encoder_steps=1, decoder_steps=2)
    assert hidden_sizes(small) == ({32}, 5)
    assert mped(train, PRIOR, False, channels=16).features is None


@pytest.mark.parametrize("build", [mped, graph2graph])
def test_no_label_attends_to_itself_in_the_complete_graph(train, build):
    graph = build(train, fully_connected(NAMES), channels=16).labels.label_graph
    assert graph.num_edges == 12
    assert not graph.has_self_loops()
    assert build(train, PRIOR, channels=16).labels.label_graph.has_self_loops()


def test_edgeless_models_have_no_blocks_among_labels(train):
    model = mped(train, edgeless(NAMES), channels=16).eval()
    assert hidden_sizes(model) == ({32}, 6)
    batch = Batch.from_data_list(train[:5])
    output = model(batch, return_intermediate=True, return_attention_weights=True)
    assert len(output.intermediate) == 2  # 1.1 and 2.1; the third is final.
    assert [step.label_to_label for step in output.attention] == [None] * 3
    torch.testing.assert_close(output.logits, model(batch))
    logits = model(batch)
    with torch.no_grad():
        model.labels.embedding.weight[0] += 1.0
    changed = (model(batch) != logits).any(dim=0)
    assert changed.tolist() == [True, False, False, False]


def test_molecules_pass_messages_along_their_bonds():
    samples = molecules(6)
    for data in samples:
        data.y = torch.tensor([[1.0, 0.0, torch.nan, 1.0]])
    train = ArrayDataset(Samples.collate(samples, NAMES, None))
    model = mped(train, fully_connected(NAMES), channels=16).eval()
    assert isinstance(model.encoder, MoleculeEncoder)
    assert model(Batch.from_data_list(samples)).shape == (6, 4)


def test_embeddings_start_from_documents_as_in_lamp(train):
    model = mped(train, PRIOR, channels=8, latent=True)
    lamp = table_lamp(train, PRIOR, channels=8, latent=True)
    torch.testing.assert_close(model.encoder.embedding.weight, lamp.encoder.embedding.weight)
    torch.testing.assert_close(model.labels.embedding.weight, lamp.labels.embedding.weight)
    # A saved model is built anew from a sample with unknown labels.
    unknown = ArrayDataset(train[:1].copy().samples())
    unknown._data.y = torch.full_like(unknown._data.y, torch.nan)
    mped(unknown, PRIOR, channels=8, latent=True).load_state_dict(model.state_dict())


def test_options_reach_the_encoder_and_the_labels(train):
    model = mped(train, PRIOR, channels=16, input_dropout=0.7, heads=2)
    assert model.encoder.dropout == 0.7
    assert model.labels.label_to_label[0].heads == 2
    with pytest.raises(TypeError, match="head"):
        mped(train, PRIOR, channels=16, head=2)
    with pytest.raises(ValueError, match=r"'node_messages' .*'emb'"):
        mped(train, PRIOR, "emb", channels=16)
