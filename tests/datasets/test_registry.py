from __future__ import annotations

import json
import os
from importlib import import_module

import pytest

import tg_mlc.datasets
from tg_mlc.datasets import registry
from tg_mlc.datasets._published import PUBLISHED, Published
from tg_mlc.datasets.base import MultiLabelDataset
from tg_mlc.datasets.card import DatasetCard, Facts

# As in the statistics of the papers and of the files: samples, labels, inputs.
COUNTS = {
    "sider": (1427, 27, 9),
    "nci": (4991, 52, 9),
    "bibtex": (7395, 159, 1836),
    "delicious": (16105, 983, 500),
    "bookmarks": (87856, 208, 2150),
    "reuters": (10789, 90, 24805),
    "rcv1": (804414, 103, 47236),
    "rcv1-sample": (2316, 103, 32273),
    "tfbs": (1671873 + 301823 + 323796, 179, 4),
    "deepsea": (4400000 + 8000 + 455024, 919, 4),
    "nuswide": (129431 + 32358 + 107859, 85, 128),
    "mediamill": (43907, 101, 120),
    "yeast": (2417, 14, 103),
    "scene": (2407, 6, 294),
    "emotions": (593, 6, 72),
    "genbase": (662, 27, 1185),
    "corel5k": (5000, 374, 499),
}


@pytest.mark.parametrize(("name", "counts"), COUNTS.items())
def test_recorded_counts(name, counts):
    card = registry.card(name)
    assert (card.samples, card.labels, card.num_inputs) == counts


@pytest.mark.parametrize(
    ("name", "cardinality"),
    {"bibtex": 2.402, "delicious": 19.02, "mediamill": 4.376, "yeast": 4.237, "scene": 1.074, "genbase": 1.252}.items(),
)
def test_recorded_cardinalities(name, cardinality):
    assert registry.card(name).cardinality == pytest.approx(cardinality, rel=5e-4)


@pytest.mark.parametrize("name", registry.names())
def test_every_data_set_has_a_card_and_a_loader(name):
    card = registry.card(name)
    assert card.name == name
    assert card.origin in {"computed", "reported"}
    assert (card.content_sha256 is not None) == (card.origin == "computed")
    assert card.density is None or 0 < card.density < 1
    assert str(card)
    maker = registry.published(name).maker
    if maker:
        module, _, attribute = maker.partition(":")
        assert callable(getattr(import_module(module), attribute))


def test_every_public_data_set_is_listed():
    own = {"MultiLabelDataset", "MoleculeDataset", "DNADataset"}
    classes = {
        name
        for name, value in vars(tg_mlc.datasets).items()
        if isinstance(value, type) and issubclass(value, MultiLabelDataset)
    }
    assert classes - own <= {entry.maker.partition(":")[2] for entry in PUBLISHED.values()}


def test_the_file_of_cards_holds_what_is_listed_and_no_path():
    text = registry.CARDS.read_text(encoding="utf-8")
    assert list(json.loads(text)) == registry.names()
    assert os.sep + "raw" not in text


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"one of sider, .*got 'siderr'"):
        registry.card("siderr")
    with pytest.raises(ValueError, match=r"one of sider, .*got 'siderr'"):
        registry.load("siderr", "data")


def test_what_is_not_distributed_says_so(tmp_path):
    with pytest.raises(ValueError, match=r"had as files \(got 'tfbs'\).*DNADataset"):
        registry.load("tfbs", tmp_path)


def test_loading_by_name(real_file, tmp_path):
    real_file("yeast/raw/yeast.xml")
    dataset = registry.load("yeast", tmp_path)
    card = DatasetCard.of(dataset, registry.published("yeast").facts)
    assert card.differences(registry.card("yeast")) == []


def test_where_files_are_kept():
    facts = Facts(name="a", title="")
    assert Published(facts, "m:c").folder("data") == [os.path.join("data", "a")]  # noqa: PTH118
    assert Published(facts, "m:c", keeps="files by name").folder("data") == ["data"]
    assert Published(facts, "m:c", keeps="nothing").folder("data") == []
