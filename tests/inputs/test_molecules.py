import numpy as np
import pytest
from torch_geometric.data import Batch, Data

from tests.inputs.test_kinds import fitted
from tg_mlc.data import MoleculeDataset, random_split
from tg_mlc.inputs import Fingerprint, Molecules
from tg_mlc.inputs.smiles import VECTORS, find_molecule

Chem = pytest.importorskip("rdkit.Chem")
SMILES, Y = ["C", "CC", "CO", "CN"], np.eye(4, 2)
SPLIT = random_split(4, (0.5, 0.25, 0.25), seed=0)


def molecules(**options):
    return MoleculeDataset.from_smiles(SMILES, Y, ["a", "b"], **options)


def test_new_molecules_get_the_vectors_of_training():
    dataset = molecules(pre_transform=Fingerprint("morgan", 64))
    kind = fitted(Molecules(), dataset)
    (sample,) = kind.transform(["CO"])
    assert sample.morgan.equal(dataset[2].morgan)
    assert sample.edge_index.equal(dataset[2].edge_index)
    assert "maccs" not in sample
    # Vectors are added to samples without vectors.
    assert kind.transform(molecules()).rows("morgan").equal(dataset.rows("morgan"))
    with pytest.raises(ValueError, match=r"valid molecule in row 1 \(got 'C\(':"):
        kind.transform(["C", "C("])
    kind.sizes["descriptors"] = 7
    with pytest.raises(ValueError, match=r"RDKit of 7 descriptors.*install the same version"):
        kind.transform(["C"])


def test_steps_add_vectors_unless_scaled():
    (described,), (plain,) = Molecules.steps(), Molecules.steps(scaled=True)
    samples = described.fit_transform(molecules(), SPLIT)
    assert tuple(described.sizes) == VECTORS
    assert all(key in samples[0] for key in VECTORS)
    assert samples.rows("morgan").equal(described.transform(SMILES).rows("morgan"))
    assert plain.fit_transform(molecules(), SPLIT)[0].keys() == molecules()[0].keys()
    assert plain.sizes == {}


def test_a_smiles_is_parsed_once(monkeypatch):
    (kind,) = Molecules.steps()
    kind.fit(molecules(), SPLIT)
    parsed, parse = [], Chem.MolFromSmiles
    record = lambda smiles: parsed.append(smiles) or parse(smiles)  # noqa: E731
    monkeypatch.setattr(Chem, "MolFromSmiles", record)
    find_molecule.cache_clear()
    samples = kind.transform(["CCO", "CCN"])
    assert parsed == ["CCO", "CCN"]
    assert all(key in samples[0] for key in VECTORS)


def test_the_atoms_are_the_components():
    dataset = molecules()
    sample = dataset[2]
    assert Molecules().components(sample) == ["C0", "O1"]
    assert Molecules.encoder(dataset, 8)(Batch.from_data_list([sample])).ptr.tolist() == [0, 2]


def test_bonds_have_names_and_atoms():
    [acid, salt] = MoleculeDataset.from_smiles(["CC(=O)O", "[Na+].[Cl-]"], np.eye(2), ["a", "b"])
    names, atoms, _ = Molecules().links(acid)
    assert names == ["C0-C1", "C1=O2", "C1-O3"]
    assert atoms.tolist() == [[0, 1], [1, 2], [1, 3]]
    assert Molecules().links(salt).ends.shape == (0, 2)


def test_symmetric_atoms_and_bonds_are_alike():
    [toluene] = MoleculeDataset.from_smiles(["Cc1ccccc1"], np.eye(1), ["a"])
    atoms, bonds = Molecules().symmetry(toluene), Molecules().links(toluene).symmetry
    assert atoms[2] == atoms[6] != atoms[4]
    assert bonds[1] == bonds[6] != bonds[3]
    assert [int(group.sum()) for group in Molecules().groups(toluene)] == [6]


def test_a_bond_is_cut_in_both_directions_and_in_vectors():
    describe = Fingerprint("morgan", 64)
    [acid] = MoleculeDataset.from_smiles(["CC(=O)O"], np.eye(1), ["a"], pre_transform=describe)
    cut = Molecules().without_link(acid, 1)
    assert cut.edge_index.tolist() == [[0, 1, 1, 3], [1, 0, 3, 1]]
    edges = [acid.edge_index.T.tolist().index(pair) for pair in cut.edge_index.T.tolist()]
    assert cut.edge_attr.equal(acid.edge_attr[edges])
    assert cut.x.equal(acid.x)
    assert cut.smiles == acid.smiles
    assert cut.morgan.equal(Fingerprint("morgan", 64)(Data(smiles="*=C(C)O.*=O")).morgan)
    assert acid.num_edges == 6


@pytest.mark.parametrize("name", Molecules.views)
def test_views_are_of_unit_length_and_are_restored(name):
    (kind,) = Molecules.steps()
    samples = kind.fit_transform(molecules(), SPLIT)
    view = Molecules.views[name]().fit(samples)
    lengths = np.square(view.matrix(samples)).sum(axis=1)
    assert (lengths > 0.5).all()
    assert (lengths < 1 + 1e-5).all()
    restored = Molecules.views[name]().load_state_dict(view.state_dict())
    np.testing.assert_array_equal(restored.matrix(samples), view.matrix(samples))
    with pytest.raises(ValueError, match="molecules with one of the vectors"):
        Molecules.views[name]().fit(molecules())
