"""Descriptors and fingerprints of whole molecules, computed from ``smiles`` by RDKit."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, get_args

import torch
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform, Compose

from tg_mlc._optional import require
from tg_mlc._options import check_choice

FingerprintKind = Literal["morgan", "atom_pair", "torsion", "maccs"]

# RDKit's names of the generators. Morgan substructures of radius 2 are the usual ECFP4.
_GENERATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "morgan": ("GetMorganGenerator", {"radius": 2}),
    "atom_pair": ("GetAtomPairGenerator", {}),
    "torsion": ("GetTopologicalTorsionGenerator", {}),
}


class Fingerprint(BaseTransform):  # type: ignore[misc, unused-ignore]
    r"""Adds a vector of the substructures that a molecule has.

    Args:
        kind (str): The substructures: :obj:`"morgan"`, circular ones of radius 2 as in the `"Extended-Connectivity
            Fingerprints" <https://doi.org/10.1021/ci100050t>`_ paper; :obj:`"atom_pair"`, two atoms and the distance
            between them as in the `"Atom Pairs as Molecular Features in Structure-Activity Studies"
            <https://doi.org/10.1021/ci00046a002>`_ paper; :obj:`"torsion"`, paths of four atoms as in the
            `"Topological Torsion" <https://doi.org/10.1021/ci00054a008>`_ paper; these three are counts, folded to
            :obj:`num_bits`. Or :obj:`"maccs"`, the 166 keys of the `"Reoptimization of MDL Keys for Use in Drug
            Discovery" <https://doi.org/10.1021/ci010132r>`_ paper, 0 or 1, after an unused entry 0.
            It is also the attribute to write.
        num_bits (int, optional): The size of a vector of counts. (default: :obj:`2048`)

    Shapes:
        - **output:** counts or bits :math:`(1, F)`

    Raises:
        ValueError: If :obj:`kind` is unknown or, on use, the molecule's SMILES invalid.
        ImportError: On use, if RDKit is not installed (extra ``molecules``).
    """

    def __init__(self, kind: FingerprintKind, num_bits: int = 2048) -> None:
        check_choice("kind", kind, get_args(FingerprintKind))
        self.kind = kind
        self.num_bits = num_bits

    def forward(self, data: Data) -> Data:
        """The sample with its fingerprint."""
        molecule = _molecule(data)
        if self.kind == "maccs":
            values = list(require("rdkit.Chem.MACCSkeys", extra="molecules").GenMACCSKeys(molecule))
        else:
            generators = require("rdkit.Chem.rdFingerprintGenerator", extra="molecules")
            name, options = _GENERATORS[self.kind]
            generator = getattr(generators, name)(fpSize=self.num_bits, **options)
            values = generator.GetCountFingerprintAsNumPy(molecule).astype("float32")
        data[self.kind] = torch.as_tensor(values, dtype=torch.float).unsqueeze(0)
        return data

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}('{self.kind}', num_bits={self.num_bits})"


class MoleculeDescriptors(BaseTransform):  # type: ignore[misc, unused-ignore]
    r"""Adds RDKit's physicochemical descriptors (weight, lipophilicity, polar surface, counts of groups, ...) as
    :obj:`descriptors`.

    Left out are :obj:`Ipc` and :obj:`AvgIpc`, the information contents of `"Information Theory, Distance Matrix, and
    Molecular Branching" <https://doi.org/10.1063/1.1674955>`_: of over two hundred descriptors, these two alone take
    most of the time, and the first grows beyond single precision.

    A descriptor that RDKit cannot compute for a molecule is NaN.

    Shapes:
        - **output:** descriptors :math:`(1, F)`, with as many :math:`F` as the installed RDKit has,
          :attr:`num_descriptors`

    Raises:
        ValueError: On use, if the molecule's SMILES is invalid.
        ImportError: On use, if RDKit is not installed (extra ``molecules``).
    """

    @property
    def num_descriptors(self) -> int:
        """The number of descriptors of the installed RDKit."""
        return len(_descriptors())

    def forward(self, data: Data) -> Data:
        """The sample with its descriptors."""
        molecule = _molecule(data)
        values = torch.tensor([[_value(compute, molecule) for compute in _descriptors()]], dtype=torch.double)
        limit = torch.finfo(torch.float).max
        data.descriptors = values.clamp(-limit, limit).float()  # a huge value is no infinity; NaN stays
        return data


def _value(compute: Callable[[Any], float], molecule: Any) -> float:
    try:
        return float(compute(molecule))
    except ZeroDivisionError:  # a mean over the heavy atoms of a molecule that has none
        return math.nan


@cache
def _descriptors() -> list[Callable[[Any], float]]:
    named = require("rdkit.Chem.Descriptors", extra="molecules").descList
    return [compute for name, compute in named if name not in ("Ipc", "AvgIpc")]


def _molecule(data: Data) -> Any:
    with require("rdkit.rdBase", extra="molecules").BlockLogs():
        molecule = require("rdkit.Chem", extra="molecules").MolFromSmiles(data.smiles)
    if molecule is None:
        raise ValueError(f"Expected 'data.smiles' to be a valid SMILES (got '{data.smiles}')")
    return molecule


def molecule_features() -> Compose:
    """The transform that adds all vectors to molecules."""
    fingerprints = [Fingerprint(kind) for kind in ("morgan", "atom_pair", "torsion", "maccs")]
    return Compose([*fingerprints, MoleculeDescriptors()])
