"""Bemis-Murcko scaffolds of molecules, computed by RDKit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tg_mlc._optional import require

if TYPE_CHECKING:
    from collections.abc import Sequence


def murcko_scaffolds(smiles: Sequence[str]) -> list[str]:
    """The Bemis-Murcko scaffold of each molecule as SMILES without stereochemistry, empty where there is no ring.

    Raises:
        ValueError: If a SMILES string is invalid.
    """
    with require("rdkit.rdBase", extra="molecules").BlockLogs():
        return [_scaffold(row, text) for row, text in enumerate(smiles)]


def _scaffold(row: int, smiles: str) -> str:
    chem = require("rdkit.Chem", extra="molecules")
    murcko = require("rdkit.Chem.Scaffolds.MurckoScaffold", extra="molecules")
    if not isinstance(smiles, str):
        raise ValueError(
            f"Expected 'smiles' to hold strings (got {type(smiles).__name__} for sample {row}); of a data set take "
            f"'dataset.smiles'"
        )
    mol = chem.MolFromSmiles(smiles)
    if mol is None:
        raise ValueError(f"Expected a valid SMILES for every sample (got '{smiles}' for sample {row})")
    scaffold: str = murcko.MurckoScaffoldSmiles(mol=mol, includeChirality=False)
    return scaffold
