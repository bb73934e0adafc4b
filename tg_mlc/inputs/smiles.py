"""SMILES strings as PyG graphs, with the reason where one cannot become a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_geometric.data import Data
from torch_geometric.utils import from_rdmol

from tg_mlc._optional import require

if TYPE_CHECKING:
    from rdkit.Chem import Mol


class MoleculeError(ValueError):
    """A SMILES string that cannot become a molecule graph; the message is the reason."""


def molecule_from_smiles(smiles: str) -> Data:
    """Converts a SMILES string to the graph of its molecule, with the features of
    :func:`torch_geometric.utils.from_smiles`.

    Unlike that function, it says why a string is refused instead of returning a graph without nodes, and leaves
    RDKit's global log settings as they are. Molecules of several fragments become one graph of several components;
    a single atom has ``edge_index`` of shape ``[2, 0]``.

    Args:
        smiles (str): The SMILES string.

    Raises:
        MoleculeError: If the string is no SMILES, if the molecule is chemically impossible (*e.g.* a valence), has no
            atom, or lies outside the categories of PyG's features.
    """
    with require("rdkit.rdBase", extra="molecules").BlockLogs():
        return molecule_from_rdmol(parse_smiles(smiles), smiles)


def parse_smiles(smiles: str) -> Mol:
    """Parses and sanitizes a SMILES string with RDKit, raising :class:`MoleculeError` instead of returning nothing."""
    chem = require("rdkit.Chem", extra="molecules")
    mol: Mol | None = chem.MolFromSmiles(smiles)
    if mol is None:
        raise MoleculeError(_why_refused(smiles))
    if mol.GetNumAtoms() == 0:
        raise MoleculeError("the SMILES has no atoms")
    return mol


def molecule_from_rdmol(mol: Mol, smiles: str) -> Data:
    """Converts an RDKit molecule to a PyG graph that remembers its SMILES string."""
    try:
        data = from_rdmol(mol)
    except ValueError as error:  # PyG looks categories up with `list.index`.
        raise MoleculeError(f"PyG's features have no category for one of its atoms or bonds ({error})") from error
    data.smiles = smiles
    return data


def _why_refused(smiles: str) -> str:
    chem = require("rdkit.Chem", extra="molecules")
    mol = chem.MolFromSmiles(smiles, sanitize=False)
    if mol is None:
        return "not a valid SMILES"
    problems = [problem.Message() for problem in chem.DetectChemistryProblems(mol)]
    return "; ".join(problems) or "RDKit cannot sanitize the molecule"
