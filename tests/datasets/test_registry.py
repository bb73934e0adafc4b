from __future__ import annotations

import json
import os
import re
import shutil
from importlib import import_module
from pathlib import Path

import pytest

import tg_mlc.datasets
from tg_mlc.data import MultiLabelDataset
from tg_mlc.datasets import registry
from tg_mlc.datasets.card import DatasetCard

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
    "nuswide": (161789 + 107859, 81, 128),
    "mediamill": (43907, 101, 120),
    "yeast": (2417, 14, 103),
    "scene": (2407, 6, 294),
    "emotions": (593, 6, 72),
    "genbase": (662, 27, 1185),
    "corel5k": (5000, 374, 499),
    "blogcatalog": (10312, 39, 0),
    "side-effects": (750, 994, 9),
}
# One of those that each data set is made of, or None if it needs none.
RAW_FILES = {
    "sider": "sider/raw/sider.csv",
    "nci": None,
    "tox21": "tox21/raw/tox21.csv.xz",
    "clintox": "clintox/raw/clintox.csv",
    "bibtex": "bibtex/raw/bibtex.xml",
    "delicious": "delicious/raw/delicious.xml",
    "reuters": "reuters21578/raw/reut2-000.sgm.xz",
    "rcv1-sample": "rcv1v2/raw/rcv1_dev.json.xz",
    "binding-sites": "tfbs_binary_dna/raw/CTCF.train.fasta.xz",
    "mediamill": "mediamill/raw/mediamill-train.dump.bz2",
    "yeast": "yeast/raw/yeast.xml",
    "scene": "scene/raw/scene.xml",
    "emotions": "emotions/raw/emotions.xml",
    "genbase": "genbase/raw/genbase.xml",
    "corel5k": "corel5k/raw/Corel5k.xml",
    "rcv1subset1": "rcv1_subsets/raw/rcv1subset1_top944.mat",
    "blogcatalog": "blogcatalog/raw/blogcatalog.mat",
    "side-effects": "side_effect_frequencies/derived/drugs.csv",
    "planted": None,
}


@pytest.mark.parametrize(("name", "counts"), COUNTS.items())
def test_recorded_counts(name, counts):
    card = registry.card(name)
    assert (card.samples, card.labels, card.num_inputs) == counts


@pytest.mark.parametrize(
    ("name", "cardinality"),
    {
        "bibtex": 2.402,
        "delicious": 19.02,
        "mediamill": 4.376,
        "yeast": 4.237,
        "scene": 1.074,
        "genbase": 1.252,
    }.items(),
)
def test_recorded_cardinalities(name, cardinality):
    assert registry.card(name).cardinality == pytest.approx(cardinality, rel=5e-4)


def test_what_is_reported_of_nus_wide_is_what_its_class_reads():
    card = registry.card("nuswide")
    assert (card.origin, card.official, card.cardinality) == ("reported", (161789, 107859), 1.869)
    assert "85 labels" in " ".join(card.notes)


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
    classes = {
        name
        for name, value in vars(tg_mlc.datasets).items()
        if isinstance(value, type) and issubclass(value, MultiLabelDataset)
    }
    assert {"SIDER", "MulanDataset"} < classes
    assert classes <= {entry.maker.partition(":")[2] for entry in registry.catalogue().values()}


def test_the_catalogue_holds_no_path_of_a_machine():
    text = registry.CATALOGUE.read_text(encoding="utf-8")
    assert list(json.loads(text)) == registry.names()
    assert not re.search(r"\"/|[A-Z]:\\\\", text)


@pytest.mark.parametrize("name", registry.names())
def test_files_are_told_apart_and_may_be_checked(name):
    entry = registry.published(name)
    for form in (*entry.files, entry.optional_files):
        assert len({file.name for file in form}) == len(form)
        for file in form:
            assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in file.sha256)
            assert file.urls or file.hint
            assert not any("{" in url for url in file.urls)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"one of sider, .*got 'siderr'"):
        registry.card("siderr")
    with pytest.raises(ValueError, match=r"one of sider, .*got 'siderr'"):
        registry.load("siderr", "data")


def test_what_is_not_distributed_says_so(tmp_path):
    with pytest.raises(ValueError, match=r"had as files \(got 'tfbs'\).*DNADataset"):
        registry.load("tfbs", tmp_path)


@pytest.mark.parametrize(
    ("name", "raw_file"),
    # The largest of those that are a table.
    [
        pytest.param(*case, marks=[pytest.mark.slow] if case[0] == "mediamill" else [])
        for case in RAW_FILES.items()
    ],
)
def test_loading_by_name(real_file, tmp_path_factory, name, raw_file):
    if raw_file is not None:
        real_file(raw_file)
    # where other tests have made some of them
    dataset = registry.load(name, tmp_path_factory.getbasetemp())
    card = DatasetCard.of(dataset, registry.published(name))
    assert card.differences(registry.card(name)) == []


def test_nothing_is_made_or_fetched_unless_wanted(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"get it with: tg-mlc data get bibtex --root .*"):
        registry.load("bibtex", tmp_path / "a folder", download=False)
    assert list(tmp_path.iterdir()) == []


def test_what_is_stored_is_loaded_without_its_raw_files(real_file, tmp_path):
    real_file("yeast/raw/yeast.xml")
    whole = registry.load("yeast", tmp_path)
    shutil.rmtree(whole.raw_dir)
    stored = registry.load("yeast", tmp_path, download=False)
    assert (type(stored).__name__, stored.y.tolist()) == ("MulanDataset", whole.y.tolist())
    assert not Path(whole.raw_dir).exists()


def test_planted_samples_need_no_folder(tmp_path):
    assert registry.load("planted", tmp_path, force_reload=True, download=False).num_labels == 24


def test_it_is_a_public_module():
    assert tg_mlc.datasets.registry is registry
    assert "registry" in tg_mlc.datasets.__all__


def test_where_files_are_kept():
    data = os.path.join("data", "sider")  # noqa: PTH118
    assert registry.published("sider").arguments("data") == {"root": data}
    assert registry.published("bibtex").arguments("data") == {"root": "data", "name": "bibtex"}
    assert registry.published("rcv1-sample").arguments("data")["form"] == "json"
    assert registry.published("planted").arguments("data") == {}
