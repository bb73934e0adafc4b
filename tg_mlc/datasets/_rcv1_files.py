"""The files of RCV1: where they come from, and where they are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tg_mlc._files import SUFFIXES
from tg_mlc.datasets._download import DatasetUnavailableError
from tg_mlc.datasets._sources import DATA_FOLDER_VARIABLE, RawFile

if TYPE_CHECKING:
    from collections.abc import Sequence

LOCAL = "rcv1v2/raw"

_CLASSIFIER = (
    "https://raw.githubusercontent.com/Tencent/NeuralNLP-NeuralClassifier/52a7ede4bb0606bd873bc93fa71d62aee57180ee/data"
)
_NAMES = (
    "https://raw.githubusercontent.com/flaviosoriano/hgclr-rcv1-runpod/"
    "ee5d55f421c7b902c8670c1fa8973dd6127efaa0/data/rcv1"
)
SAMPLE = RawFile(
    "rcv1_dev.json",
    "f974713f2b0501e69c9129c656d2b316556623d23c47d020c9876536e6913e81",
    (f"{_CLASSIFIER}/rcv1_dev.json",),
    LOCAL,
)
TAXONOMY = RawFile(
    "rcv1.taxonomy",
    "54cd5a4e0201b6e9d71ec88eb0fa973dbcc4788137ed78bb3edebf99db9ce597",
    (f"{_CLASSIFIER}/rcv1.taxonomy",),
    LOCAL,
)
DESCRIPTIONS = RawFile(
    "rcv1_topic_codes.json",
    "290f49a794adc1310a11e48b10b34347f9ccf499fda6bfe7ea30ca6c8be7c2ab",
    (f"{_NAMES}/rcv1_topic_codes.json",),
    LOCAL,
)

# Of the LYRL2004 distribution, without known checksums and too large to hold in memory: the user places them.
TRAIN_TOKENS = ("lyrl2004_tokens_train.dat",)
TEST_TOKENS = tuple(f"lyrl2004_tokens_test_pt{part}.dat" for part in range(4))
QRELS = ("rcv1-v2.topics.qrels",)
PUBLISHER = "http://www.ai.mit.edu/projects/jmlr/papers/volume5/lewis04a/lyrl2004_rcv1v2_README.htm"


def find(name: str, folder: Path) -> Path | None:
    """A file of a folder by its name, with or without the suffix of a compressed one."""
    paths = (folder / f"{name}{suffix}" for suffix in ("", *SUFFIXES))
    return next((path for path in paths if path.exists()), None)


def find_placed(names: Sequence[str], raw: Path) -> list[Path]:
    """Files that the user has placed in ``root/raw`` or in the folder that ``TG_MLC_DATA`` names.

    Raises:
        DatasetUnavailableError: If one of them is in neither.
    """
    shared = os.environ.get(DATA_FOLDER_VARIABLE)
    folders = [raw.absolute(), *([Path(shared) / LOCAL] if shared else [])]
    found = [next((path for folder in folders if (path := find(name, folder))), None) for name in names]
    missing = [name for name, path in zip(names, found, strict=True) if path is None]
    if missing:
        places = " or ".join(f"'{folder}'" for folder in folders)
        raise DatasetUnavailableError(
            f"Expected {', '.join(missing)} in {places}, as they are or with {', '.join(SUFFIXES)} (got no such "
            f"file); get the LYRL2004 distribution from {PUBLISHER} and place them there, or take form='vectors'"
        )
    return [path for path in found if path is not None]
