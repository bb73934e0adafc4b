"""What describes a molecule as a whole, computed from its ``smiles`` by RDKit."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from tg_mlc._optional import require


class MorganCounts(BaseTransform):  # type: ignore[misc, unused-ignore]
    r"""Adds the counts of circular substructures from the `"Extended-Connectivity Fingerprints"
    <https://doi.org/10.1021/ci100050t>`_ paper, folded to a vector.

    Args:
        radius (int, optional): The radius of a substructure in bonds. (default: :obj:`2`)
        num_bits (int, optional): The size of the vector. (default: :obj:`2048`)
        key (str, optional): The attribute to write. (default: :obj:`"morgan"`)

    Shapes:
        - **output:** counts :math:`(1, F)`
    """

    def __init__(self, radius: int = 2, num_bits: int = 2048, key: str = "morgan") -> None:
        self.radius = radius
        self.num_bits = num_bits
        self.key = key

    def forward(self, data: Data) -> Data:
        generators = require("rdkit.Chem.rdFingerprintGenerator", extra="molecules")
        generator = generators.GetMorganGenerator(radius=self.radius, fpSize=self.num_bits)
        counts = generator.GetCountFingerprintAsNumPy(_molecule(data))
        data[self.key] = torch.from_numpy(counts.astype("float32")).unsqueeze(0)
        return data

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}(radius={self.radius}, num_bits={self.num_bits})"


class MoleculeDescriptors(BaseTransform):  # type: ignore[misc, unused-ignore]
    r"""Adds RDKit's physicochemical descriptors (weight, lipophilicity, polar surface, counts of groups, ...).

    A descriptor that RDKit cannot compute for a molecule is NaN.

    Args:
        key (str, optional): The attribute to write. (default: :obj:`"descriptors"`)

    Shapes:
        - **output:** descriptors :math:`(1, F)`, with as many :math:`F` as the installed RDKit has,
          :attr:`num_descriptors`
    """

    def __init__(self, key: str = "descriptors") -> None:
        self.key = key

    @property
    def num_descriptors(self) -> int:
        """The number of descriptors of the installed RDKit."""
        return len(require("rdkit.Chem.Descriptors", extra="molecules").descList)

    def forward(self, data: Data) -> Data:
        descriptors = require("rdkit.Chem.Descriptors", extra="molecules").descList
        molecule = _molecule(data)
        values = [float(compute(molecule)) for _, compute in descriptors]
        # Beyond single precision lies one known to overflow, Ipc (doi:10.1063/1.1674955); a huge value is no infinity.
        limit = torch.finfo(torch.float32).max
        values = [value if math.isnan(value) else max(-limit, min(limit, value)) for value in values]
        data[self.key] = torch.tensor([values])
        return data


def _molecule(data: Data) -> Any:
    with require("rdkit.rdBase", extra="molecules").BlockLogs():
        molecule = require("rdkit.Chem", extra="molecules").MolFromSmiles(data.smiles)
    if molecule is None:
        raise ValueError(f"Expected 'data.smiles' to be a valid SMILES (got '{data.smiles}')")
    return molecule
