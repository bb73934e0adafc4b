import pytest
import torch
from torch_geometric.data import Batch

from tests.mixed import PLAIN, make_frame
from tg_mlc.data import from_arrays
from tg_mlc.data.parts import part_of
from tg_mlc.graphs import fully_connected
from tg_mlc.inputs import Mixed
from tg_mlc.nn import LabelHead, LabelMessagePassing
from tg_mlc.nn.encoders import BagEncoder, MixedEncoder, MoleculeEncoder, VectorEncoder


@pytest.fixture(scope="module")
def samples():
    frame, y = make_frame(12)
    frame.loc[6, ["age", "city", "seen"]] = None
    return from_arrays(frame, y, kind=PLAIN)


@pytest.fixture
def encoder(samples):
    size = part_of(samples, "features").num_inputs
    vocabulary = part_of(samples, "note").num_inputs
    return MixedEncoder({"note": BagEncoder(vocabulary, 8), "features": VectorEncoder(size, 8, 2)})


def components(encoder, samples):
    """Returns the components of each sample of a batch."""
    x, ptr, *_ = encoder(Batch.from_data_list(list(samples)))
    return x.split(ptr.diff().tolist())


def test_a_batch_gives_what_its_samples_give_one_by_one(encoder, samples):
    states = components(encoder, samples)
    # Four words and two images of the vector; one component if the text or the vector is missing.
    assert [len(state) for state in states] == [6, 6, 6, 3, 2, 6, 5, 6, 6, 6, 6, 6]
    for row, state in enumerate(states):
        torch.testing.assert_close(components(encoder, [samples[row]])[0], state)


def test_a_missing_part_is_a_component_of_its_own_and_an_empty_one_is_none(encoder, samples):
    states = components(encoder, samples)
    assert torch.equal(states[3][0], encoder.missing[0])
    assert torch.equal(states[6][-1], encoder.missing[1])
    text, vector = part_of(samples, "note"), part_of(samples, "features")
    alone = encoder.encoders[1](Batch.from_data_list([vector[4]])).x
    expected = encoder.scale[1] * alone + encoder.part_type[1]
    torch.testing.assert_close(states[4], expected)
    assert text[3].x.numel() == 0


def test_it_learns_in_a_network_of_ones_own(encoder, samples):
    labels = LabelMessagePassing(8, fully_connected(3), num_steps=1, heads=2)
    head = LabelHead(labels)
    x, ptr, *_ = encoder(Batch.from_data_list(list(samples)))
    logits = head(labels(x, ptr=ptr))
    assert logits.shape == (12, 3)
    logits.square().sum().backward()
    assert all(parameter.grad is not None for parameter in encoder.parameters())


def test_edges_of_a_part_join_its_own_components():
    pytest.importorskip("rdkit")
    frame, y = make_frame(8)
    samples = from_arrays(frame, y, kind={"text": "note", "smiles": "drug"})
    size = part_of(samples, "note").num_inputs
    encoder = MixedEncoder({"note": BagEncoder(size, 4), "drug": MoleculeEncoder(4)})
    assert encoder.edge_dim == 4
    joined = encoder(Batch.from_data_list(list(samples)))
    own = encoder.encoders[1](Batch.from_data_list(list(part_of(samples, "drug"))))
    assert joined.edge_index.shape == own.edge_index.shape
    assert torch.equal(joined.edge_attr, own.edge_attr)
    atoms = joined.x - encoder.part_type[1]
    torch.testing.assert_close(atoms[joined.edge_index], own.x[own.edge_index])
    # Without molecules, components still have no edges, rather than all of them.
    lone = encoder(Batch.from_data_list([samples[5]]))
    assert (lone.edge_index.shape, lone.edge_attr.shape) == ((2, 0), (0, 4))


def test_encoders_need_equal_channels():
    encoders = {"a": BagEncoder(3, 4), "b": BagEncoder(3, 8)}
    with pytest.raises(ValueError, match=r"share their 'channels' \(got \[4, 8\]\)"):
        MixedEncoder(encoders)
    with pytest.raises(ValueError, match=r"share their 'channels' \(got \[\]\)"):
        MixedEncoder({})


def test_the_kind_makes_it(samples):
    encoder = Mixed.encoder(samples, 16)
    assert (encoder.part_names, encoder.channels, encoder.edge_dim) == (
        ["note", "features"],
        16,
        None,
    )
