from copy import copy

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch.testing import assert_close
from torch_geometric.data import Batch
from torch_geometric.transforms import Compose

from tg_mlc.data import ArrayDataset, MoleculeDataset
from tg_mlc.data.bags import with_attribute
from tg_mlc.data.records import Records
from tg_mlc.graphs import fully_connected
from tg_mlc.inputs import Fingerprint, MoleculeDescriptors
from tg_mlc.models import LaMP, molecule_lamp, table_lamp
from tg_mlc.models.factories import start_from_documents
from tg_mlc.nn.base_scores import SharedLogits
from tg_mlc.nn.encoders import BagEncoder, MoleculeEncoder
from tg_mlc.papers.base_scores import table_preprocessor
from tg_mlc.papers.recipes import RECIPES

rng = np.random.default_rng(0)
WORDS = (rng.random((200, 30)) < 0.2).astype(np.float32)
Y = (WORDS @ rng.standard_normal((30, 4)) > 0.3).astype(np.float32)


@pytest.fixture(params=["bag", "vector"])
def dataset(request):
    x = sp.csr_array(WORDS) if request.param == "bag" else WORDS
    names = ["a", "b", "c", "d"]
    rows = np.arange(160), np.arange(160, 200)
    return ArrayDataset(Records(x, Y, names, None, *rows).to_samples())


@pytest.fixture
def prepared(dataset):
    """Returns the samples with the scores of two classifiers."""
    return table_preprocessor(dataset.kind).fit_transform(dataset, dataset.official_split())


@pytest.mark.parametrize("node_messages", [False, True])
def test_table_lamp_starts_from_frequencies(dataset, node_messages):
    options = {"channels": 8, "frequency_strength": 1.0}
    model = table_lamp(dataset[:160], fully_connected(4), node_messages, **options)
    frequency = torch.tensor(Y[:160].mean(axis=0))
    assert_close(model.readout.bias.sigmoid(), frequency)


def test_table_lamp_fits_its_score_skip_to_its_samples(dataset, prepared):
    train = prepared[dataset.official_split().train]
    options = {"channels": 8, "score_skip": True}
    model = table_lamp(train, fully_connected(4), **options)
    skip = SharedLogits(2)
    initial_state = {name: value.clone() for name, value in skip.state_dict().items()}
    skip.start_from_scores(train.rows("base_scores"), train.y, model.readout.bias)
    assert_close(model.score_skip.state_dict(), skip.state_dict())
    second = table_lamp(train, fully_connected(4), **options).eval()
    batch = Batch.from_data_list(train[:5])
    expected = second.score_skip(batch.base_scores) + second.readout.bias
    assert_close(second(batch), expected)
    # Samples with unknown labels determine only the sizes of layers.
    unknown = copy(train)
    unknown._data = copy(train._data)
    unknown._data.y = torch.full_like(train._data.y, torch.nan)
    rebuilt = table_lamp(unknown[:1], fully_connected(4), latent=True, **options)
    assert_close(rebuilt.score_skip.state_dict(), initial_state)
    rebuilt.load_state_dict(model.state_dict())


@pytest.mark.parametrize("kind", ["bibtex", "yeast"])
def test_lamp_as_published_ignores_base_scores(kind, prepared):
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
    assert logits.std() > 0.1  # Messages contribute from the start.


def test_rare_words_are_skipped_in_new_documents_too():
    # Each of the last three words is in one document.
    words = np.hstack([WORDS, np.eye(200, 3, dtype=np.float32)])
    train = ArrayDataset(Records(sp.csr_array(words), Y, list("abcd")).to_samples())
    model = table_lamp(train, fully_connected(4), channels=8, latent=True, min_df=2).eval()
    assert model.encoder.kept.tolist() == [True] * 30 + [False] * 3
    batch = Batch.from_data_list([train[0]])
    expected = model(batch)
    batch.x = torch.cat([batch.x, torch.tensor([31])])
    batch.ptr = torch.tensor([0, batch.x.numel()])
    assert_close(model(batch), expected)
    # A saved model is built again from a sample with unknown labels and few of the words.
    unknown = ArrayDataset(train[:1].copy().samples())
    unknown._data.y = torch.full_like(unknown._data.y, torch.nan)
    torch.manual_seed(1)
    rebuilt = table_lamp(unknown, fully_connected(4), channels=8, latent=True, min_df=2).eval()
    rebuilt.load_state_dict(model.state_dict())
    assert_close(rebuilt(batch), expected)


@pytest.fixture
def topics():
    """Returns documents of three topics, with five words for each topic."""
    rng = np.random.default_rng(0)
    topic = np.arange(60) % 3
    words = rng.random((60, 15)) < np.where(np.arange(15) // 5 == topic[:, None], 0.6, 0.1)
    # No document has the last label.
    y = torch.nn.functional.one_hot(torch.from_numpy(topic), 4).float()
    return sp.csr_array(words.astype(np.float32)), y


def started(y, x, **kwargs):
    """Returns a model that starts from documents, and the label embedding before that start."""
    torch.manual_seed(0)
    options = {"num_steps": 2, "num_feature_layers": 0, **kwargs}
    model = LaMP(BagEncoder(15, 16), fully_connected(4), **options)
    initial = model.labels.embedding.weight.detach().clone()
    start_from_documents(model, x, y)
    return model, initial


def test_labels_start_near_the_words_of_their_documents(topics):
    x, y = topics
    model, initial = started(y, x)
    words, labels = model.encoder.embedding.weight, model.labels.embedding.weight
    similarity = (labels[:3] @ words.T).view(3, 3, 5).mean(dim=2)
    assert similarity.argmax(dim=1).tolist() == [0, 1, 2]
    assert_close(labels[:3].norm(dim=1), torch.full((3,), 4.0))
    assert labels[3].equal(initial[3])
    for conv in model.labels.feature_to_label:
        assert conv.lin_key.weight.equal(conv.lin_query.weight)
        assert conv.lin_key.weight is not conv.lin_query.weight
    tied, initial = started(y, x, tied=True)
    assert tied.labels.embedding.weight.equal(initial)
    unknown = torch.where(torch.arange(60).view(-1, 1) % 2 == 0, torch.nan, y)
    models = (started(labels, x)[0] for labels in (unknown, unknown.nan_to_num()))
    first, second = (model.labels.embedding.weight for model in models)
    assert first.equal(second)


SMILES = ["CCO", "c1ccccc1O", "CC(=O)Nc1ccc(O)cc1", "C", "[Na+].[Cl-]", "CCN"]
GRAPH = fully_connected(3)
SMILES_Y = [[1, 0, 1], [0, 0, 1], [1, 0, 1], [0, 0, float("nan")], [1, 0, 1], [0, 0, 1]]


def molecules(*transforms):
    options = {"pre_transform": Compose(list(transforms))}
    return MoleculeDataset.from_smiles(SMILES, SMILES_Y, ["a", "b", "c"], **options)


def batch(data):
    return Batch.from_data_list(list(data))


def test_atoms_alone_start_from_the_frequencies():
    data = molecules()
    model = molecule_lamp(data, GRAPH, channels=16)
    assert isinstance(model.encoder, MoleculeEncoder)
    assert model.linear_path is None
    assert model(batch(data)).shape == (6, 3)
    bias, expected = model.readout.bias.sigmoid(), torch.tensor([0.5, 0.001, 0.999])
    assert_close(bias, expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize(("node_messages", "atoms"), [(True, True), (False, True), (True, False)])
def test_molecule_lamp_takes_vectors_beside_or_without_atoms(node_messages, atoms):
    data = molecules(Fingerprint("morgan", 64), Fingerprint("maccs"), MoleculeDescriptors())
    options = {"atoms": atoms, "channels": 16, "num_components": 2}
    model = molecule_lamp(data, GRAPH, node_messages, **options).eval()
    assert (model.features is None) == (not (node_messages and atoms))
    components = model.encoder(batch(data))
    num_atoms = sum(d.num_nodes for d in data) if atoms else 0
    assert components.x.size(0) == num_atoms + 6 * 3 * 2
    logits = model(batch(data))
    one_by_one = torch.cat([model(d) for d in data])
    assert_close(logits, one_by_one, atol=1e-5, rtol=1e-5)


def test_linear_path_starts_from_zero_and_learns():
    data = molecules(Fingerprint("morgan", 64))
    model = molecule_lamp(data, GRAPH, channels=16, vector_dropout=0.0).eval()
    path = model.linear_path
    assert (path(batch(data)) == 0).all()
    path(batch(data)).sum().backward()
    expected = model.encoder.encoders[1].vectors(batch(data)).sum(dim=0)
    assert_close(path.lins[0].weight.grad, expected.expand(3, -1))
    assert not any("encoders" in name for name, _ in path.named_parameters())


def test_molecule_lamp_starts_from_base_scores():
    plain = molecules(Fingerprint("morgan", 64))
    data = with_attribute(plain, "base_scores", torch.linspace(-1, 1, 6 * 3 * 2).view(6, 3, 2))
    model = molecule_lamp(data, GRAPH, channels=16).eval()
    assert model.linear_path is None
    expected = model.score_skip(data.rows("base_scores")) + model.readout.bias
    assert_close(model(batch(data)), expected)
    assert not any(parameter.requires_grad for parameter in model.score_skip.parameters())
    skip = SharedLogits(2)
    skip.start_from_scores(data.rows("base_scores"), data.y, model.readout.bias)
    assert_close(model.score_skip.state_dict(), skip.state_dict())
    with pytest.raises(ValueError, match="Expected samples with the attribute 'base_scores'"):
        model(batch(plain))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: table_lamp(RECIPES["planted-50"].load_dataset("unused"), GRAPH),
            r"kinds \['Mixed', 'Emb",
        ),
        (lambda: molecule_lamp(molecules(), GRAPH, atoms=False), r"'morgan'.* for atoms=False"),
        (lambda: molecule_lamp(molecules(), GRAPH, "fmp"), r"'node_messages' .*'fmp'"),
    ],
)
def test_invalid_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
