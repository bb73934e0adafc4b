from __future__ import annotations

from copy import copy

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Batch

from tg_mlc.data import ArrayDataset
from tg_mlc.data.records import Records
from tg_mlc.graphs import fully_connected
from tg_mlc.models import table_lamp
from tg_mlc.nn.base_scores import SharedLogits
from tg_mlc.papers.recipes import RECIPES
from tg_mlc.stacking import table_preprocessor

rng = np.random.default_rng(0)
WORDS = (rng.random((200, 30)) < 0.2).astype(np.float32)
Y = (WORDS @ rng.standard_normal((30, 4)) > 0.3).astype(np.float32)


@pytest.fixture(params=["bag", "vector"])
def dataset(request):
    x = sp.csr_array(WORDS) if request.param == "bag" else WORDS
    names = ["a", "b", "c", "d"]
    return ArrayDataset(Records(x, Y, names, None, np.arange(160), np.arange(160, 200)).to_samples())


@pytest.fixture
def prepared(dataset):
    """The samples with the scores of two classifiers."""
    return table_preprocessor(dataset.kind).fit_transform(dataset, dataset.official_split())


@pytest.mark.parametrize("node_messages", [False, True])
def test_table_lamp_starts_from_frequencies(dataset, node_messages):
    model = table_lamp(dataset[:160], fully_connected(4), node_messages, channels=8, frequency_strength=1.0)
    frequency = torch.tensor(Y[:160].mean(axis=0))
    torch.testing.assert_close(model.readout.bias.sigmoid(), frequency)


def test_table_lamp_starts_with_what_the_scores_of_its_samples_mean(dataset, prepared):
    train = prepared[dataset.official_split().train]
    options = {"channels": 8, "score_skip": True}
    model = table_lamp(train, fully_connected(4), **options)
    expected = SharedLogits(2)
    plain = {name: value.clone() for name, value in expected.state_dict().items()}
    expected.start_from_scores(train.rows("base_scores"), train.y, model.readout.bias)
    torch.testing.assert_close(model.score_skip.state_dict(), expected.state_dict())
    silent = table_lamp(train, fully_connected(4), **options).eval()
    batch = Batch.from_data_list(train[:5])
    torch.testing.assert_close(silent(batch), silent.score_skip(batch.base_scores) + silent.readout.bias)
    # Samples whose labels nobody knows tell only the sizes of layers.
    unknown = copy(train)
    unknown._data = copy(train._data)
    unknown._data.y = torch.full_like(train._data.y, torch.nan)
    unaware = table_lamp(unknown[:1], fully_connected(4), latent=True, **options)
    torch.testing.assert_close(unaware.score_skip.state_dict(), plain)
    unaware.load_state_dict(model.state_dict())


@pytest.mark.parametrize("kind", ["bibtex", "yeast"])
def test_lamp_as_published_stands_alone(kind, prepared):
    recipe = RECIPES[kind].as_published()
    assert recipe.model != RECIPES[kind].model
    assert recipe.module["weight_decay"] == RECIPES[kind].module["weight_decay"]
    model = recipe.build(prepared, fully_connected(4), node_messages=False, **recipe.model)
    assert model.base_scores is model.score_skip is model.linear_path is None
    assert model.encoder.channels == 128
    batch = Batch.from_data_list(prepared[:5])
    logits = model.eval()(batch)
    batch.base_scores = torch.zeros_like(batch.base_scores)
    assert torch.equal(model(batch), logits)
    assert logits.std() > 0.1  # messages have something to say from the start


def test_kinds_without_a_table_are_refused():
    planted = RECIPES["planted-50"].load_dataset("unused")
    with pytest.raises(ValueError, match=r"kinds \['Words', 'Vectors'"):
        table_lamp(planted, fully_connected(24))


def test_rare_words_are_left_out_of_new_documents_too():
    words = np.hstack([WORDS, np.eye(200, 3, dtype=np.float32)])  # the last three are in one document each
    train = ArrayDataset(Records(sp.csr_array(words), Y, list("abcd")).to_samples())
    model = table_lamp(train, fully_connected(4), channels=8, latent=True, min_df=2).eval()
    assert model.encoder.kept.tolist() == [True] * 30 + [False] * 3
    batch = Batch.from_data_list([train[0]])
    expected = model(batch)
    batch.x = torch.cat([batch.x, torch.tensor([31])])
    batch.ptr = torch.tensor([0, batch.x.numel()])
    torch.testing.assert_close(model(batch), expected)
    # As a saved model is built anew: from a sample whose labels nobody knows, which has few of the words.
    unknown = ArrayDataset(train[:1].copy().samples())
    unknown._data.y = torch.full_like(unknown._data.y, torch.nan)
    torch.manual_seed(1)
    again = table_lamp(unknown, fully_connected(4), channels=8, latent=True, min_df=2).eval()
    again.load_state_dict(model.state_dict())
    torch.testing.assert_close(again(batch), expected)
