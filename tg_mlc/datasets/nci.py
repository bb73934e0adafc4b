"""Functional groups of the NCI molecules that ship with RDKit."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tg_mlc._files import sha256
from tg_mlc._optional import require
from tg_mlc.datasets.base import PublishedMolecules
from tg_mlc.inputs.smiles import MoleculeError, parse_smiles

logger = logging.getLogger(__name__)

# Files in RDKit's data folder, and the SHA-256 of the files that the card was computed from.
MOLECULES = "NCI/first_5K.smi"
HIERARCHY = "Functional_Group_Hierarchy.txt"
SHA256 = {
    MOLECULES: "91e71c015f14939837f2943dcc904f7c87e5a3a0124d82b05c28ad2f23004def",
    HIERARCHY: "3f50f5169183643cd88d60e5212968277f96e4a5a7b77858d3729d58342611c3",
}


class NCIFunctionalGroups(PublishedMolecules):
    """The first molecules of the National Cancer Institute's open collection, with their functional
    groups. The files come with RDKit (http://www.rdkit.org), and nothing is downloaded.

    The labels are the 52 groups of RDKit's functional group hierarchy, found by
    :func:`rdkit.Chem.FunctionalGroups.CreateMolFingerprint`. A molecule that has a group has the
    group's parent too: the hierarchy is the known label graph, see :attr:`label_parents`.

    Arguments and errors are those of :class:`~tg_mlc.datasets.base.PublishedDataset`, and a
    :class:`FileNotFoundError` if the installed RDKit lacks its data files.
    """

    @property
    def label_parents(self) -> list[tuple[str, str]]:
        """The edges of the label tree as pairs of names ``(child, parent)``, for
        :func:`tg_mlc.graphs.tree`. 12 of the groups have no parent.
        """
        # Names are paths from the root, such as 'Amine.Primary.Aromatic'.
        pairs = [(name, name.rpartition(".")[0]) for name in self.label_names]
        return [(child, parent) for child, parent in pairs if parent]

    def download(self) -> None:
        """Does nothing, because the files come with RDKit."""

    def read(self) -> tuple[Sequence[str], Tensor, Sequence[str]]:
        lines = _read_rdkit_file(MOLECULES).splitlines()
        smiles = [line.split()[0] for line in lines if line.strip()]
        _read_rdkit_file(HIERARCHY)  # Warns if the file has other content.
        return smiles, *functional_groups(smiles)


def functional_groups(smiles: Sequence[str]) -> tuple[Tensor, list[str]]:
    """Returns the groups ``[N, 52]`` of molecules (NaN if invalid), and the names of groups."""
    groups = require("rdkit.Chem.FunctionalGroups", extra="molecules")
    hierarchy = groups.BuildFuncGroupHierarchy()

    # The bits of RDKit's fingerprint have this order.
    def names_below(nodes: Iterable[Any]) -> list[str]:
        return [name for node in nodes for name in (node.label, *names_below(node.children))]

    names = names_below(hierarchy)
    y = torch.full((len(smiles), len(names)), float("nan"))
    with require("rdkit.rdBase", extra="molecules").BlockLogs():
        for row, text in enumerate(smiles):
            try:
                mol = parse_smiles(text)
            except MoleculeError:
                continue  # The labels stay unknown.
            y[row] = torch.tensor(groups.CreateMolFingerprint(mol, hierarchy)).gt(0).float()
    return y, names


def _read_rdkit_file(name: str) -> str:
    path = Path(require("rdkit.RDConfig", extra="molecules").RDDataDir) / name
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        got = "(got no such file); install the 'rdkit' wheel of PyPI"
        raise FileNotFoundError(f"Expected RDKit's data file '{path}' {got}") from error
    if sha256(content) != SHA256[name]:
        message = "RDKit's %s differs from the one of this data set's card; counts may differ"
        logger.warning(message, name)
    return content.decode()
