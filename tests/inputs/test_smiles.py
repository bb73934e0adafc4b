from __future__ import annotations

import pytest
import torch
from torch_geometric.utils import from_smiles

from tg_mlc.data import MoleculeError, molecule_from_smiles
from tg_mlc.inputs import smiles as module


@pytest.mark.parametrize(
    "smiles",
    [
        "CC(=O)Oc1ccccc1C(=O)O",
        "F[C@H](Cl)Br",
        "C/C=C/C",
        "[Na+].[Cl-]",
        "O=C([O-])C.[K+]",
        "N->[Pt](Cl)(Cl)<-N",
        "[235U]",
        "*CC*",
    ],
)
def test_the_features_are_those_of_pyg(smiles):
    data, expected = molecule_from_smiles(smiles), from_smiles(smiles)
    assert data.smiles == smiles
    for key in ("x", "edge_index", "edge_attr"):
        assert torch.equal(data[key], expected[key])


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
    ],
)
def test_refusals_come_with_their_reason(smiles, reason):
    with pytest.raises(MoleculeError, match=reason):
        molecule_from_smiles(smiles)


def test_what_pyg_has_no_category_for_is_refused():
    with pytest.raises(MoleculeError, match="no category"):
        molecule_from_smiles("[Fe-9]")


def test_rdkit_is_quiet_here_and_loud_again_afterwards(capfd, monkeypatch):
    from rdkit import Chem, RDLogger

    RDLogger.EnableLog("rdApp.*")
    with pytest.raises(MoleculeError):
        molecule_from_smiles("C1CC")
    assert capfd.readouterr().err == ""
    Chem.MolFromSmiles("C1CC")
    assert "SMILES Parse Error" in capfd.readouterr().err


def test_an_unknown_sanitization_problem_still_has_a_reason(monkeypatch):
    from rdkit import Chem

    monkeypatch.setattr(Chem, "DetectChemistryProblems", lambda mol: [])
    assert module._why_refused("CC") == "RDKit cannot sanitize the molecule"
