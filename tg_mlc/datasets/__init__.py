"""Published data sets with named labels, each with its source, licence and statistics."""

from tg_mlc.datasets import registry
from tg_mlc.datasets.binding_sites import BindingSites
from tg_mlc.datasets.blogcatalog import BlogCatalog
from tg_mlc.datasets.card import DatasetCard
from tg_mlc.datasets.deepsea import DeepSEA
from tg_mlc.datasets.downloads import ChecksumError, DatasetUnavailableError
from tg_mlc.datasets.event_tables import load_events
from tg_mlc.datasets.moleculenet import SIDER, ClinTox, Tox21, ToxCast
from tg_mlc.datasets.mulan import MulanDataset
from tg_mlc.datasets.nci import NCIFunctionalGroups
from tg_mlc.datasets.planted import Planted
from tg_mlc.datasets.rcv1 import RCV1
from tg_mlc.datasets.reuters import Reuters21578
from tg_mlc.datasets.side_effects import SideEffectFrequencies

__all__ = [
    "RCV1",
    "SIDER",
    "BindingSites",
    "BlogCatalog",
    "ChecksumError",
    "ClinTox",
    "DatasetCard",
    "DatasetUnavailableError",
    "DeepSEA",
    "MulanDataset",
    "NCIFunctionalGroups",
    "Planted",
    "Reuters21578",
    "SideEffectFrequencies",
    "Tox21",
    "ToxCast",
    "load_events",
    "registry",
]
