import gzip
import time

import numpy as np
import pytest
import torch
from rdkit import Chem, RDLogger
from rdkit.Chem import AllChem, Descriptors, MACCSkeys, rdFingerprintGenerator
from torch_geometric.data import Data
from torch_geometric.utils import from_smiles

from tg_mlc.data import (
    MoleculeDataset,
    MoleculeError,
    from_csv,
    from_sdf,
    molecule_from_smiles,
    scaffold_split,
)
from tg_mlc.inputs import Fingerprint, MoleculeDescriptors, Molecules
from tg_mlc.inputs import smiles as module
from tg_mlc.inputs._descriptors import fast_descriptors
from tg_mlc.inputs.molecules import EXAMPLES
from tg_mlc.inputs.smiles import STRUCTURE
from tg_mlc.inputs.tables import read_table

SMILES = "CC(=O)Nc1ccc(O)cc1"
PYG_SMILES = (
    "CC(=O)Oc1ccccc1C(=O)O F[C@H](Cl)Br C/C=C/C [Na+].[Cl-] O=C([O-])C.[K+] "
    "N->[Pt](Cl)(Cl)<-N [235U] *CC*"
)
SDF_SMILES = ["CCO", "F[C@H](Cl)Br", "C/C=C/C", "[Na+].[Cl-]", "c1cc[nH]c1"]
SDF_SMILES += ["C[N+](C)(C)CC(=O)[O-]"]
GENERATORS = {
    "morgan": rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=512),
    "atom_pair": rdFingerprintGenerator.GetAtomPairGenerator(fpSize=512),
    "torsion": rdFingerprintGenerator.GetTopologicalTorsionGenerator(fpSize=512),
}


@pytest.mark.parametrize("smiles", PYG_SMILES.split())
def test_the_features_are_those_of_pyg(smiles):
    data, expected = molecule_from_smiles(smiles), from_smiles(smiles)
    assert data.smiles == smiles
    for key in ("x", "edge_index", "edge_attr"):
        assert torch.equal(data[key], expected[key])


@pytest.mark.parametrize(
    "smiles",
    [
        "C[C@H](N)C(=O)O",
        "C[C@@H]1CN([C@H]2CC[C@](C#N)(c3ccc(F)cc3)CC2)CC[C@]1(C(=O)O)c1ccccc1",
        "O[C@H]1[C@@H](O)[C@H](O)[C@@H](O)[C@H](O)[C@@H]1O",
        "C[S@](=O)c1ccccc1.F/C=C/[C@@](Cl)(Br)I",
    ],
)
def test_all_spellings_of_a_molecule_have_the_same_features(smiles):
    mol = Chem.MolFromSmiles(smiles)
    roots = range(mol.GetNumAtoms())
    texts = {Chem.MolToSmiles(mol, canonical=False, rootedAtAtom=root) for root in roots}
    assert len(texts) > 4
    atoms = {str(sorted(molecule_from_smiles(text).x.tolist())) for text in (smiles, *texts)}
    assert atoms == {str(sorted(from_smiles(Chem.MolToSmiles(mol)).x.tolist()))}
    # The parsed molecule, from which fingerprints and explanations are made, stays as it is.
    assert Chem.MolToSmiles(module.find_molecule(smiles)) == Chem.MolToSmiles(mol)


def test_mirror_images_have_different_features():
    left, right = map(molecule_from_smiles, ("C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O"))
    assert not torch.equal(left.x, right.x)


def test_a_single_atom_has_empty_edges_of_the_right_shape():
    data = molecule_from_smiles("[Li+]")
    assert data.x.shape == (1, 9)
    assert data.edge_index.shape == (2, 0)
    assert data.edge_attr.shape == (0, 3)
    assert data.edge_index.dtype == data.edge_attr.dtype == torch.long


def test_fragments_become_components_of_one_graph():
    data = molecule_from_smiles("CC.O")
    assert data.num_nodes == 3
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("smiles", "reason"),
    [
        ("", "no atoms"),
        ("C1CC", "not a valid SMILES"),
        ("hello", "not a valid SMILES"),
        ("CN(C)(C)(C)C", "Explicit valence for atom # 1 N, 5"),
        ("c1cccc1", "kekulize"),
        ("[Fe-9]", "no category"),
        ("CCO>>CC=O", "a reaction; pass its reactants or its products"),
        ("CCO>[Na+]>CC=O", "a reaction"),
        ("[C][=C][Branch1][C][O]", "SELFIES; turn it into SMILES with 'selfies.decoder'"),
        ("[C][C][O]", "SELFIES"),
        ("BSYNRYMUTXBXSQ-UHFFFAOYSA-N", "an InChIKey.*pass the InChI or the SMILES"),
        ("InChI=1S/nothing", "not a valid InChI"),
    ],
)
def test_refused_smiles_come_with_a_reason(smiles, reason):
    with pytest.raises(MoleculeError, match=reason):
        molecule_from_smiles(smiles)


def test_the_logs_of_rdkit_are_muted_and_restored(capfd):
    RDLogger.EnableLog("rdApp.*")
    with pytest.raises(MoleculeError):
        molecule_from_smiles("C1CC")
    assert capfd.readouterr().err == ""
    Chem.MolFromSmiles("C1CC")
    assert "SMILES Parse Error" in capfd.readouterr().err


def test_an_unknown_sanitization_problem_still_has_a_reason(monkeypatch):
    monkeypatch.setattr(Chem, "DetectChemistryProblems", lambda mol: [])
    reason = module.why_refused(Chem.MolFromSmiles("CC"), "a molecule")
    assert reason == "RDKit cannot sanitize the molecule"


@pytest.mark.parametrize("kind", GENERATORS)
def test_fingerprints_are_counts_of_rdkit(kind):
    data = Fingerprint(kind, num_bits=512)(Data(smiles=SMILES))
    expected = GENERATORS[kind].GetCountFingerprintAsNumPy(Chem.MolFromSmiles(SMILES))
    assert data[kind].dtype == torch.float
    np.testing.assert_array_equal(data[kind][0].numpy(), expected)
    assert data[kind].max() > 1


def test_maccs_keys_are_those_of_rdkit():
    data = Fingerprint("maccs")(Data(smiles=SMILES))
    assert data.maccs.shape == (1, 167)
    keys = MACCSkeys.GenMACCSKeys(Chem.MolFromSmiles(SMILES)).GetOnBits()
    assert data.maccs[0].nonzero().flatten().tolist() == list(keys)


def test_descriptors_are_those_of_rdkit_without_ipc():
    transform = MoleculeDescriptors()
    data = transform(Data(smiles=SMILES))
    assert data.descriptors.shape == (1, transform.num_descriptors)
    by_name = Descriptors.CalcMolDescriptors(Chem.MolFromSmiles(SMILES))
    expected = [value for name, value in by_name.items() if name not in ("Ipc", "AvgIpc")]
    torch.testing.assert_close(data.descriptors, torch.tensor([expected], dtype=torch.float))


def test_descriptors_that_rdkit_cannot_compute_are_nan():
    data = MoleculeDescriptors()(Data(smiles="[Na+]"))
    assert data.descriptors.isnan().any()
    assert not data.descriptors.isinf().any()


def test_wrong_fingerprints_are_refused():
    with pytest.raises(ValueError, match=r"'kind' to be one of .* \(got 'ecfp'\)"):
        Fingerprint("ecfp")
    with pytest.raises(ValueError, match=r"'data.smiles' to be a valid SMILES \(got 'nonsense'\)"):
        Fingerprint("morgan")(Data(smiles="nonsense"))
    assert repr(Fingerprint("torsion", num_bits=16)) == "Fingerprint('torsion', num_bits=16)"


@pytest.mark.parametrize(
    "smiles", ["C" * 1_001, "C" * 2_000_000, "C(" * 500_000, "[" * 10**6, "C1CC1" * 400]
)
def test_large_molecules_are_refused_at_once(smiles):
    start = time.monotonic()
    with pytest.raises(MoleculeError, match=r"more than 1,000 atoms.*TG_MLC_MAX_ATOMS") as error:
        molecule_from_smiles(smiles)
    assert len(str(error.value)) < 300
    data = Data(smiles=smiles)
    with pytest.raises(ValueError, match=r"valid SMILES \(got '.{77}\.\.\.'\)"):
        MoleculeDescriptors()(data)
    dataset = MoleculeDataset.from_smiles(["CCO", smiles, "CC"], [[0], [1], [0]])
    assert [(row.row, row.reason) for row in dataset.report.invalid] == [(1, str(error.value))]
    assert len(str(dataset.report)) < 500
    assert time.monotonic() - start < 10


def test_the_largest_size_can_be_set(monkeypatch):
    monkeypatch.setenv("TG_MLC_MAX_ATOMS", "3")
    assert molecule_from_smiles("[13CH3][13CH2][OH]").num_nodes == 3
    with pytest.raises(MoleculeError, match="more than 3 atoms"):
        molecule_from_smiles("CCCO")
    monkeypatch.setenv("TG_MLC_MAX_ATOMS", "1200")
    assert molecule_from_smiles("C" * 1_100).num_nodes == 1_100
    monkeypatch.setenv("TG_MLC_MAX_ATOMS", "many")
    with pytest.raises(ValueError, match=r"'TG_MLC_MAX_ATOMS' to be a whole number.*'many'"):
        molecule_from_smiles("C")


@pytest.mark.parametrize(
    "long_smiles", ["x" * 10**6, "C" * 900 + "(", "c1" * 300, "N(C)(C)(C)C." * 70 + "C"]
)
def test_no_message_quotes_a_long_smiles_whole(long_smiles):
    smiles, y = ["CCO", long_smiles, "CC"], [[0.0], [1.0], [1.0]]
    with pytest.raises(ValueError, match="row 1") as error:
        MoleculeDataset.from_smiles(smiles, y, on_error="raise")
    messages = [str(error.value), str(MoleculeDataset.from_smiles(smiles, y).report)]
    with pytest.raises(ValueError, match="for sample 1") as error:
        scaffold_split(smiles, torch.tensor(y), (0.5, 0.0, 0.5))
    messages.append(str(error.value))
    with pytest.raises(ValueError, match="in row 1") as error:
        Molecules.claims(smiles)
    messages.append(str(error.value))
    assert all(len(message) < 500 for message in messages), [len(message) for message in messages]


@pytest.mark.parametrize(
    ("smiles", "expected"),
    [
        ("CC=O", {"*C.*C=O", "*=CC.*=O"}),
        ("c1ccccc1", {"*C=CC=CC=C*"}),  # All bonds of benzene are alike.
        # Two of the five bonds of imidazole are double.
        ("c1c[nH]cn1", {"*=CN=CNC=*", "*C=CN=CN*", "*C=NC=CN*", "*=CNC=CN=*", "*C=CNC=N*"}),
        ("C[N+](C)(C)C", {"*C.*[N+](C)(C)C"}),
        ("[Na+].[Cl-]", set()),
    ],
)
def test_cut_bonds_leave_dummy_atoms(smiles, expected):
    bonds = range(Chem.MolFromSmiles(smiles).GetNumBonds())
    cut = {module.without_bond(smiles, bond) for bond in bonds}
    assert cut == {Chem.CanonSmiles(fragments) for fragments in expected}


def test_rings_that_are_not_cut_stay_aromatic():
    assert module.without_bond("Cc1ccccc1", 0) == "*C.*c1ccccc1"
    naphthalene = [module.without_bond("c1ccc2ccccc2c1", bond) for bond in range(11)]
    assert len(set(naphthalene)) == 4
    assert "*C=Cc1ccccc1C=C*" in naphthalene


def write_sdf(path, names=("toxic", "bitter")):
    """Writes molecules to a file, in turn with 2D coordinates and with hydrogens in 3D."""
    with Chem.SDWriter(str(path)) as writer:
        for number, smiles in enumerate(SDF_SMILES * 2):
            mol = Chem.MolFromSmiles(smiles)
            if number % 2:
                mol = Chem.AddHs(mol)
                AllChem.EmbedMolecule(mol, randomSeed=1)
            else:
                AllChem.Compute2DCoords(mol)
            for name, value in zip(names, (number % 2, "" if number % 3 else 1), strict=True):
                mol.SetProp(name, str(value))
            mol.SetProp("note", "two\nlines")
            writer.write(mol)
    return path


@pytest.fixture(scope="module")
def sdf(tmp_path_factory):
    return write_sdf(tmp_path_factory.mktemp("sdf") / "drugs.sdf")


def test_sdf_molecules_equal_those_of_their_smiles(sdf):
    dataset = from_sdf(sdf, ["toxic", "bitter"])
    assert dataset.label_names == ["toxic", "bitter"]
    assert dataset.y.nan_to_num(-1)[:3].tolist() == [[0, 1], [1, -1], [0, -1]]
    for sample, smiles in zip(dataset, SDF_SMILES * 2, strict=True):
        expected = molecule_from_smiles(Chem.CanonSmiles(smiles))
        assert sample.smiles == expected.smiles
        for key in ("x", "edge_index", "edge_attr"):
            assert torch.equal(sample[key], expected[key])


def test_sdf_properties_are_columns(sdf, tmp_path):
    compressed = tmp_path / "drugs.sdf.gz"
    compressed.write_bytes(gzip.compress(sdf.read_bytes().replace(b"\n", b"\r\n")))
    for path in (sdf, compressed):
        table = read_table(path)
        assert table.header == [STRUCTURE, "toxic", "bitter", "note"]
        assert len(table) == 12
        assert table.texts("note")[0] == "two\nlines"
    assert from_sdf(sdf, ["rest"], ignore=["note"]).label_names == ["toxic", "bitter"]


def test_broken_records_are_refused_by_number_and_no_row_is_lost(sdf, tmp_path):
    records = sdf.read_text().split("$$$$\n")
    records[2] = "nonsense\n" + records[2][records[2].index("M  END") :]
    records[4] = records[4].replace(" C ", " F ", 1)
    path = tmp_path / "broken.sdf"
    path.write_text("$$$$\n".join(records))
    table = read_table(path)
    assert len(table) == 12
    assert table.texts("toxic") == ["0", "1"] * 6
    with pytest.warns(UserWarning, match="2 of 12 rows cannot be read") as caught:
        dataset = from_sdf(path, ["toxic"])
    message = str(caught[0].message)
    assert "row 2: 'record 3: not a valid molblock'" in message
    assert "row 4: 'record 5: " in message
    assert dataset.y[:, 0].tolist() == [0, 1, 1, 1, 0, 1, 0, 1, 0, 1]


def test_new_molecules_get_the_old_labels(sdf, tmp_path):
    old = from_sdf(sdf, ["toxic", "bitter"])
    table = tmp_path / "new.csv"
    table.write_text("smiles,bitter\nCCN,1\nCCCl,\n")
    new = from_csv(table, smiles_column="smiles", like=old)
    assert new.label_names == old.label_names
    assert new.y.nan_to_num(-1).tolist() == [[-1, 1], [-1, -1]]
    assert new[0].keys() == old[0].keys()


def test_more_unreadable_rows_are_skipped_on_request(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("smiles,toxic\n" + "C,1\nCC,0\n?,1\n" * 10)
    with pytest.raises(ValueError, match=r"10 of 30 rows .*; mend them, or pass max_lost=0\.334"):
        from_csv(path, ["toxic"], smiles_column="smiles")
    with pytest.warns(UserWarning, match="10 of 30 rows"):
        assert len(from_csv(path, ["toxic"], smiles_column="smiles", max_lost=0.334)) == 20


def test_wrong_sdf_files_are_refused(tmp_path):
    path = write_sdf(tmp_path / "a.sdf", ("toxic", STRUCTURE))
    with pytest.raises(ValueError, match="no property 'structure' in an SDF"):
        from_sdf(path, ["toxic"])
    for text in ("", "\n\n$$$$\n"):
        path.write_text(text)
        with pytest.raises(ValueError, match="at least one row"):
            from_sdf(path, ["toxic"])


def test_fast_descriptors_equal_those_of_rdkit():
    descriptors = dict(Descriptors.descList)
    fast = fast_descriptors()
    assert fast.keys() <= descriptors.keys()
    for smiles in (*EXAMPLES, "C1=CC2=C(C=C1)C3CC2N3.[Cl-]", "C#CC(=O)N1C=CN=C1[N+](=O)[O-]"):
        for name, compute in fast.items():
            expected = descriptors[name](Chem.MolFromSmiles(smiles))
            value = compute(Chem.MolFromSmiles(smiles))
            assert value == pytest.approx(expected, rel=1e-9, nan_ok=True), (smiles, name)
