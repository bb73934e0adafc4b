from __future__ import annotations

import gzip

import pytest
import torch

from tg_mlc.data import from_csv, from_sdf, molecule_from_smiles
from tg_mlc.inputs.smiles import STRUCTURE
from tg_mlc.inputs.tables import read_table

Chem = pytest.importorskip("rdkit.Chem")
AllChem = pytest.importorskip("rdkit.Chem.AllChem")
SMILES = ["CCO", "F[C@H](Cl)Br", "C/C=C/C", "[Na+].[Cl-]", "c1cc[nH]c1", "C[N+](C)(C)CC(=O)[O-]"]


def write_sdf(path, names=("toxic", "bitter")):
    """Molecules with coordinates in a plane, or with all hydrogens in space."""
    with Chem.SDWriter(str(path)) as writer:
        for number, smiles in enumerate(SMILES * 2):
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


def test_molecules_are_those_of_their_smiles(sdf):
    dataset = from_sdf(sdf, ["toxic", "bitter"])
    assert dataset.label_names == ["toxic", "bitter"]
    assert dataset.y.nan_to_num(-1)[:3].tolist() == [[0, 1], [1, -1], [0, -1]]
    for sample, smiles in zip(dataset, SMILES * 2, strict=True):
        expected = molecule_from_smiles(Chem.CanonSmiles(smiles))
        assert sample.smiles == expected.smiles
        for key in ("x", "edge_index", "edge_attr"):
            assert torch.equal(sample[key], expected[key])


def test_properties_are_columns(sdf, tmp_path):
    packed = tmp_path / "drugs.sdf.gz"
    packed.write_bytes(gzip.compress(sdf.read_bytes().replace(b"\n", b"\r\n")))
    for path in (sdf, packed):
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


def test_new_molecules_are_like_old_ones(sdf, tmp_path):
    old = from_sdf(sdf, ["toxic", "bitter"])
    table = tmp_path / "new.csv"
    table.write_text("smiles,bitter\nCCN,1\nCCCl,\n")
    new = from_csv(table, smiles_column="smiles", like=old)
    assert new.label_names == old.label_names
    assert new.y.nan_to_num(-1).tolist() == [[-1, 1], [-1, -1]]
    assert new[0].keys() == old[0].keys()


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "at least one row"), ("\n\n$$$$\n", "at least one row")],
)
def test_files_without_molecules_are_refused(text, message, tmp_path):
    (tmp_path / "a.sdf").write_text(text)
    with pytest.raises(ValueError, match=message):
        from_sdf(tmp_path / "a.sdf", ["toxic"])


def test_a_property_with_the_name_of_the_structure_is_refused(tmp_path):
    path = write_sdf(tmp_path / "a.sdf", ("toxic", STRUCTURE))
    with pytest.raises(ValueError, match="no property 'structure' in an SDF"):
        from_sdf(path, ["toxic"])
