"""The published multi-label tables and their files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from tg_mlc.datasets._sources import RawFile

if TYPE_CHECKING:
    from pathlib import Path

TableKind = Literal["bag", "vector"]

# The authors' own copy of the files of http://mulan.sourceforge.net/datasets-mlc.html, in which they lie unpacked.
URL = "https://raw.githubusercontent.com/tsoumakas/mulan/master/data/multi-label/{folder}/{name}"
_ARCHIVES = {"NUS-WIDE": "nuswide-cVLADplus"}


class Published(NamedTuple):
    """A published table, in any of several forms."""

    name: str
    kind: TableKind
    forms: tuple[tuple[RawFile, ...], ...]  #: each the files that have all of it, in the order in which to prefer them

    def find_form(self, folder: Path) -> tuple[RawFile, ...]:
        """The first form whose files are all in a folder; if there is none, the first form."""
        there = (form for form in self.forms if all((folder / file.name).exists() for file in form))
        return next(there, self.forms[0])


def find_published(name: str) -> Published:
    """The table of that name, however it is spelled.

    Raises:
        ValueError: If there is none.
    """
    found = PUBLISHED.get(_key(name)) if isinstance(name, str) else None
    if found is None:
        known = ", ".join(published.name for published in PUBLISHED.values())
        raise ValueError(
            f"Expected 'name' to be one of {known} (got {name!r}); for other files see 'tg_mlc.data.from_arff'"
        )
    return found


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


# The files of each table in the order in which they are read: training part, test part, labels.
_SHA256: dict[str, tuple[TableKind, dict[str, str | None]]] = {
    "Bibtex": (
        "bag",
        {
            "bibtex-train.arff": "8dcc9de6e0b2cebaec8c1f4fac78431adeeb73cfd3ab879b530a66d366e59174",
            "bibtex-test.arff": "9b03329cde64d3f994bdf7fbbac3f3b10fe185c311cb9ae725475f59c7f3f922",
            "bibtex.xml": "08fe20013c1e75dcf1888c185f5187c95e76495b8518ce289b4d3afce38d1232",
        },
    ),
    "Delicious": (
        "bag",
        {
            "delicious-train.arff": "030186cdb542ebdd32052fcdbb1ebe30115b3a22518c1b4b198c45eb827aebe1",
            "delicious-test.arff": "2dfb01723a819914b0ca83361177ed413ce3f2169851d9f228d4692915d63944",
            "delicious.xml": "4e0c0f93c7d86a39b9fca4aaefaa00e9428f2c80277732dfbf03ca48e2c14da2",
        },
    ),
    "Yeast": (
        "vector",
        {
            "yeast-train.arff": "e759dc991ff54694a4ff9c4314f3be0d6fd2b1994a4b563f57e416394c6aebbd",
            "yeast-test.arff": "4aaac102bff9669a765bf0b378602e5cc8c3b181048282e2f003117b496d552a",
            "yeast.xml": "c3056cc26444b5158b1588d1b73bec9c45429e10f0957ad085903423cb81f247",
        },
    ),
    "Scene": (
        "vector",
        {
            "scene-train.arff": "b53ba93bdf412de922e3960389bcee24744fa3e872ce610511fc1d750888b64d",
            "scene-test.arff": "ea38d20296b3ff7e220f477a3b802a9bcb2d768881fe6ee163efbc97ea527a42",
            "scene.xml": "55d8b247b949ad5c52e5a73d8c6775ec6e5469ce9682465b45b333b68ee4bcc5",
        },
    ),
    "Emotions": (
        "vector",
        {
            "emotions-train.arff": "bbe704106c79bb8fb99c1d1d2e9bde081d6a2daeb01f100862f11fd91a3c1f98",
            "emotions-test.arff": "f13d4b746b7b5c8eb484bd751d6ac463d4560dff998a93516a5c1fe35daf6c8f",
            "emotions.xml": "dbce8e6ccbbb2fcbfd9e9edbb230d7ed12692c6e13f59fdbc0161fa9b6cf2dc0",
        },
    ),
    "Genbase": (
        "bag",
        {
            "genbase-train.arff": "37670db2c2b308a1c163d05501819526f1d65d659638ddfb76812d4ce384b5c6",
            "genbase-test.arff": "0e988520bedab39aa3f23f08f646c769bcdb6f9119ee298fd92b37127b226a36",
            "genbase.xml": "198e8a1d7070e9603119e02e626cedc589db7577339b307b06f5192047b69eb9",
        },
    ),
    "Corel5k": (
        "bag",
        {
            "Corel5k-train-sparse.arff": "19eb253c447144bea74ffa86b4731a56022addae2ba7d0aab72ad07fdc02e9b3",
            "Corel5k-test-sparse.arff": "e8f8e9cd052c43ba7bdfdf99d242f461fc8c2a03163466d921e576887b51d8a7",
            "Corel5k.xml": "54ef6a6ccb7ca9b77524052b34b306d5d501661a5609b9d1cc7085b2b597679d",
        },
    ),
    "Bookmarks": (
        "bag",
        {
            "bookmarks.arff": None,
            "bookmarks.xml": None,
        },
    ),
    "NUS-WIDE": (
        "vector",
        {
            "nus-wide-full-cVLADplus-train.arff": None,
            "nus-wide-full-cVLADplus-test.arff": None,
            "nus-wide-full-cVLADplus.xml": None,
        },
    ),
}
_MEDIAMILL_ARFF = ("mediamill-train.arff", "mediamill-test.arff", "mediamill.xml")
_MEDIAMILL_PICKLES = {
    "mediamill-train.dump": "615e9f2645f0f7eb798cf936b83f2322b6cb4071aff5f55e604b74aefae73927",
    "mediamill-test.dump": "d1759601cabfb130b0cbd002164f74d4178b2c43d86050be2065b3e777ae200f",
}
_RCV1 = (
    "b2ee886a52fc33753a246afd5025e5e1bc91be8bc95533798e9abf87974f8495",
    "dcf47e73085ddc9ecd845c7574fe7762559db66dcdd6dd47a2864424ddda28b6",
    "09acb20453492a62b34fdd41190551a00caf21851fb4d63aa1f81d58a301640a",
    "983864d627187b91177958308aed1c5f27fa89aaa77c1389d1987b8418183053",
    "d7353bc859b4e604f3d0645e9a73b6417f2becc38c35eaa483348e08001e9312",
)


def _mulan(name: str, sha256: dict[str, str | None]) -> tuple[RawFile, ...]:
    folder = name.lower().replace("-", "_")
    archive = f"the archive https://sourceforge.net/projects/mulan/files/datasets/{_ARCHIVES.get(name, folder)}.rar"
    # What has no SHA-256 is in the archive only.
    urls = {file: (URL.format(folder=folder, name=file),) if digest else () for file, digest in sha256.items()}
    return tuple(RawFile(file, sha256[file], urls[file], f"{folder}/raw", archive) for file in sha256)


def _mediamill() -> Published:
    where = "the source archive of scikit-multilearn 0.0.1, in which it is skmultilearn/data/{}.bz2"
    pickles = (
        RawFile(name, sha256, (), "mediamill/raw", where.format(name)) for name, sha256 in _MEDIAMILL_PICKLES.items()
    )
    return Published("Mediamill", "vector", (tuple(pickles), _mulan("Mediamill", dict.fromkeys(_MEDIAMILL_ARFF))))


def _rcv1_subset(number: int) -> Published:
    where = "the repository https://github.com/ZesenChen/multi-label-dataset"
    file = RawFile(f"rcv1subset{number}_top944.mat", _RCV1[number - 1], (), "rcv1_subsets/raw", where)
    return Published(f"rcv1subset{number}", "bag", ((file,),))


_TABLES = (
    *(Published(name, kind, (_mulan(name, sha256),)) for name, (kind, sha256) in _SHA256.items()),
    _mediamill(),
    *(_rcv1_subset(number + 1) for number in range(len(_RCV1))),
)
PUBLISHED = {_key(table.name): table for table in _TABLES}
