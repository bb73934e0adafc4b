"""Descriptors of RDKit that take most of the time of all, without loops over pairs of atoms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tg_mlc._optional import require

_require = partial(require, extra="molecules")
#: The properties of atoms on the diagonal of Burden matrices, in RDKit's order.
_BURDEN = ("MWHI", "MWLOW", "CHGHI", "CHGLO", "LOGPHI", "LOGPLOW", "MRHI", "MRLOW")


def fast_descriptors() -> dict[str, Callable[[Any], float]]:
    """Returns functions of molecules, equal to RDKit's up to rounding, by the descriptor's name."""
    return {
        "MaxEStateIndex": partial(_estate, select=np.max),
        "MinEStateIndex": partial(_estate, select=np.min),
        "MaxAbsEStateIndex": partial(_estate, select=np.max, change=np.abs),
        "MinAbsEStateIndex": partial(_estate, select=np.min, change=np.abs),
        "BalabanJ": _balaban_index,
        **{f"BCUT2D_{name}": partial(_burden, index=i) for i, name in enumerate(_BURDEN)},
    }


def _estate(mol: Any, select: Any, change: Any = np.asarray) -> float:
    """Returns the largest or smallest electrotopological state."""
    return float(select(change(_estate_indices(mol))))


def _estate_indices(mol: Any) -> np.ndarray:
    """Returns the electrotopological states of atoms, once for each molecule, where RDKit's other
    descriptors of these states find them.
    """
    if hasattr(mol, "_eStateIndices"):
        return np.asarray(mol._eStateIndices)
    chem, estate = _require("rdkit.Chem"), _require("rdkit.Chem.EState.EState")
    outer_electrons, intrinsic = chem.GetPeriodicTable().GetNOuterElecs, list[float]()
    for atom in mol.GetAtoms():
        number, degree = atom.GetAtomicNum(), atom.GetDegree()
        shell = estate.GetPrincipleQuantumNumber(number)
        valence = outer_electrons(number) - atom.GetTotalNumHs()
        intrinsic.append((4.0 / shell**2 * valence + 1) / degree if degree else 0.0)
    states = np.array(intrinsic)
    distances = chem.GetDistanceMatrix(mol, useBO=False, useAtomWts=False) + 1
    weights = np.where(distances < 1e6, 1 / distances**2, 0.0)  # Fragments are 1e8 apart.
    mol._eStateIndices = states + (np.subtract.outer(states, states) * weights).sum(axis=1)
    return np.asarray(mol._eStateIndices)


def _balaban_index(mol: Any) -> float:
    """Returns the index of Balaban (1982), doi:10.1016/0009-2614(82)80009-2."""
    chem = _require("rdkit.Chem")
    distances = chem.GetDistanceMatrix(mol, useBO=1, useAtomWts=0, force=0, prefix="Balaban")
    adjacency = chem.GetAdjacencyMatrix(mol, useBO=0, emptyVal=0, force=0, prefix="NoBO")
    num_bonds, num_rings = mol.GetNumBonds(), mol.GetNumBonds() - mol.GetNumAtoms() + 1
    start, end = np.nonzero(np.triu(adjacency == 1))
    degrees = distances.sum(axis=1)
    total = (1 / np.sqrt(degrees[start] * degrees[end])).sum()
    return float(num_bonds / (num_rings + 1) * total) if num_rings + 1 else 0.0


def _burden(mol: Any, index: int) -> float:
    """Returns an eigenvalue of the Burden matrices, NaN if an atom has no parameters of charge."""
    if not hasattr(mol, "_burden_eigenvalues"):
        with _require("rdkit.rdBase").BlockLogs():
            mol._burden_eigenvalues = _burden_eigenvalues(mol)
    return float(mol._burden_eigenvalues[index])


def _burden_eigenvalues(mol: Any) -> np.ndarray:
    """Returns the largest and the smallest eigenvalue of the Burden matrix (Burden 1989,
    doi:10.1021/ci00063a011) of each property of atoms: mass, charge, log P and refractivity.
    """
    mol, descriptors = _require("rdkit.Chem").RemoveHs(mol), "rdkit.Chem.rdMolDescriptors"
    atoms = list(mol.GetAtoms())
    try:
        _require("rdkit.Chem.rdPartialCharges").ComputeGasteigerCharges(mol, 12, True)
    except ValueError:
        return np.full(len(_BURDEN), np.nan)
    charges = [atom.GetDoubleProp("_GasteigerCharge") for atom in atoms]
    log_p, refractivity = zip(*_require(descriptors)._CalcCrippenContribs(mol), strict=True)
    properties = [atom.GetMass() for atom in atoms], charges, log_p, refractivity
    matrices = np.full((len(properties), len(atoms), len(atoms)), 0.001)
    for bond in mol.GetBonds():
        start, end = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        matrices[:, [start, end], [end, start]] = bond.GetBondTypeAsDouble() ** -0.5
    diagonal = np.arange(len(atoms))
    matrices[:, diagonal, diagonal] = properties
    return np.linalg.eigvalsh(matrices)[:, [-1, 0]].ravel()
