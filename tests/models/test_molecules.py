from __future__ import annotations

import pytest
import torch
from torch_geometric.transforms import Compose

from tg_mlc.data import MoleculeDataset
from tg_mlc.data.bags import with_attribute
from tg_mlc.graphs import fully_connected
from tg_mlc.inputs import Fingerprint, MoleculeDescriptors
from tg_mlc.models import molecule_lamp
from tg_mlc.nn.base_scores import SharedLogits
from tg_mlc.nn.encoders import MoleculeEncoder

SMILES = ["CCO", "c1ccccc1O", "CC(=O)Nc1ccc(O)cc1", "C", "[Na+].[Cl-]", "CCN"]
Y = [[1, 0, 1], [0, 0, 1], [1, 0, 1], [0, 0, float("nan")], [1, 0, 1], [0, 0, 1]]


def dataset(*transforms) -> MoleculeDataset:
    return MoleculeDataset.from_smiles(SMILES, Y, ["a", "b", "c"], pre_transform=Compose(list(transforms)))


def batch(data: MoleculeDataset):
    from torch_geometric.data import Batch

    return Batch.from_data_list(list(data))


def test_atoms_alone() -> None:
    data = dataset()
    model = molecule_lamp(data, fully_connected(3), channels=16)
    assert isinstance(model.encoder, MoleculeEncoder)
    assert model.linear_path is None
    assert model(batch(data)).shape == (6, 3)


@pytest.mark.parametrize(("node_messages", "atoms"), [(True, True), (False, True), (True, False)])
def test_vectors_beside_the_atoms(node_messages: bool, atoms: bool) -> None:
    data = dataset(Fingerprint("morgan", 64), Fingerprint("maccs"), MoleculeDescriptors())
    model = molecule_lamp(data, fully_connected(3), node_messages, atoms=atoms, channels=16, num_components=2).eval()
    assert (model.features is None) == (not (node_messages and atoms))
    components = model.encoder(batch(data))
    num_atoms = sum(d.num_nodes for d in data) if atoms else 0
    assert components.x.size(0) == num_atoms + 6 * 3 * 2
    together = model(batch(data))
    one_by_one = torch.cat([model(d) for d in data])
    torch.testing.assert_close(together, one_by_one, atol=1e-5, rtol=1e-5)


def test_readout_starts_from_the_frequencies() -> None:
    bias = molecule_lamp(dataset(), fully_connected(3), channels=16).readout.bias.sigmoid()
    torch.testing.assert_close(bias, torch.tensor([0.5, 0.001, 0.999]), atol=1e-4, rtol=0)


def test_linear_path_starts_from_zero_and_learns() -> None:
    data = dataset(Fingerprint("morgan", 64))
    model = molecule_lamp(data, fully_connected(3), channels=16, vector_dropout=0.0).eval()
    path = model.linear_path
    assert (path(batch(data)) == 0).all()
    path(batch(data)).sum().backward()
    expected = model.encoder.encoders[1].vectors(batch(data)).sum(dim=0)
    torch.testing.assert_close(path.lins[0].weight.grad, expected.expand(3, -1))
    assert not any("encoders" in name for name, _ in path.named_parameters())


def test_evidence_is_where_training_starts() -> None:
    molecules = dataset(Fingerprint("morgan", 64))
    data = with_attribute(molecules, "base_scores", torch.linspace(-1, 1, 6 * 3 * 2).view(6, 3, 2))
    model = molecule_lamp(data, fully_connected(3), channels=16).eval()
    assert model.linear_path is None
    torch.testing.assert_close(model(batch(data)), model.score_skip(data.rows("base_scores")) + model.readout.bias)
    assert not any(parameter.requires_grad for parameter in model.score_skip.parameters())
    expected = SharedLogits(2)
    expected.start_from_scores(data.rows("base_scores"), data.y, model.readout.bias)
    torch.testing.assert_close(model.score_skip.state_dict(), expected.state_dict())
    with pytest.raises(ValueError, match="Expected samples with the attribute 'base_scores'"):
        model(batch(molecules))


def test_vectors_need_a_vector() -> None:
    with pytest.raises(ValueError, match=r"Expected samples with one of \('morgan'.* for atoms=False"):
        molecule_lamp(dataset(), fully_connected(3), atoms=False)


def test_other_answers_than_yes_and_no_are_refused() -> None:
    with pytest.raises(ValueError, match=r"'node_messages' .*'fmp'"):
        molecule_lamp(dataset(), fully_connected(3), "fmp")  # type: ignore[arg-type]
