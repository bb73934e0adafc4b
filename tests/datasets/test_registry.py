import json
import os
import re
import shutil
from importlib import import_module
from pathlib import Path

import pytest

import tg_mlc.datasets
from tg_mlc.data import MultiLabelDataset
from tg_mlc.datasets import ChecksumError, DatasetUnavailableError, registry
from tg_mlc.datasets.card import DatasetCard
from tg_mlc.datasets.downloads import Network, SourceError

DRUGS = "side_effect_frequencies/derived/drugs.csv"
# By name of the data set: a raw file, (samples, labels, inputs), the cardinality in papers, and the
# first label.
SOURCES = {
    "sider": ("sider/raw/sider.csv", (1427, 27, 9), 15.324, "Hepatobiliary disorders"),
    "nci": (None, (4991, 52, 9), None, "AcidChloride"),
    "tox21": ("tox21/raw/tox21.csv.xz", (7823, 12, 9), None, "NR-AR"),
    "clintox": ("clintox/raw/clintox.csv", (1480, 2, 9), None, "FDA_APPROVED"),
    "bibtex": ("bibtex/raw/bibtex.xml", (7395, 159, 1836), 2.402, "TAG_2005"),
    "delicious": ("delicious/raw/delicious.xml", (16105, 983, 500), 19.02, "TAG_.imported"),
    "bookmarks": (None, (87856, 208, 2150), None, None),
    "reuters": ("reuters21578/raw/reut2-000.sgm.xz", (10789, 90, 24805), 1.2354, "acq"),
    "rcv1": (None, (804414, 103, 47236), None, None),
    "rcv1-sample": ("rcv1v2/raw/rcv1_dev.json.xz", (2316, 103, 32273), 3.2, "C11"),
    "tfbs": (None, (1671873 + 301823 + 323796, 179, 4), None, None),
    "binding-sites": ("tfbs_binary_dna/raw/CTCF.train.fasta.xz", (20000, 5, 5), None, "CTCF"),
    "deepsea": (None, (4400000 + 8000 + 455024, 919, 4), None, None),
    "nuswide": (None, (161789 + 107859, 81, 128), 1.869, None),
    "mediamill": ("mediamill/raw/mediamill-train.dump.bz2", (43907, 101, 120), 4.376, "Class1"),
    "yeast": ("yeast/raw/yeast.xml", (2417, 14, 103), 4.237, "Class1"),
    "scene": ("scene/raw/scene.xml", (2407, 6, 294), 1.074, "Beach"),
    "emotions": ("emotions/raw/emotions.xml", (593, 6, 72), 1.868, "amazed-suprised"),
    "genbase": ("genbase/raw/genbase.xml", (662, 27, 1185), 1.252, "PDOC00154"),
    "corel5k": ("corel5k/raw/Corel5k.xml", (5000, 374, 499), 3.522, "city"),
    "rcv1subset1": ("rcv1_subsets/raw/rcv1subset1_top944.mat", (6000, 101, 944), 2.880, "label1"),
    "rcv1subset2": ("rcv1_subsets/raw/rcv1subset2_top944.mat", (6000, 101, 944), 2.634, "label1"),
    "rcv1subset3": ("rcv1_subsets/raw/rcv1subset3_top944.mat", (6000, 101, 944), 2.614, "label1"),
    "rcv1subset4": ("rcv1_subsets/raw/rcv1subset4_top944.mat", (6000, 101, 944), 2.266, "label1"),
    "rcv1subset5": ("rcv1_subsets/raw/rcv1subset5_top944.mat", (6000, 101, 944), 2.625, "label1"),
    "blogcatalog": ("blogcatalog/raw/blogcatalog.mat", (10312, 39, 0), None, "group 1"),
    "side-effects": (DRUGS, (750, 994, 9), None, "abdominal discomfort"),
    "planted": (None, (5000, 24, 8), None, "label_0"),
}


@pytest.mark.parametrize(("name", "source"), SOURCES.items())
def test_cards_record_the_published_counts(name, source):
    card, (_, counts, cardinality, _) = registry.card(name), source
    assert (card.samples, card.labels, card.num_inputs) == counts
    if cardinality is not None:
        assert card.cardinality == pytest.approx(cardinality, rel=5e-4)


def test_the_card_of_nus_wide_describes_its_class():
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
    assert tg_mlc.datasets.registry is registry
    public = vars(tg_mlc.datasets).items()
    types = {name: value for name, value in public if isinstance(value, type)}
    classes = {name for name, value in types.items() if issubclass(value, MultiLabelDataset)}
    assert {"SIDER", "MulanDataset"} < classes
    assert classes <= {entry.maker.partition(":")[2] for entry in registry.catalogue().values()}


def test_the_catalogue_holds_no_path_of_a_machine():
    text = registry.CATALOGUE.read_text(encoding="utf-8")
    assert list(json.loads(text)) == registry.names()
    assert not re.search(r"\"/|[A-Z]:\\\\", text)


@pytest.mark.parametrize("name", registry.names())
def test_raw_files_have_unique_names_and_checksums(name):
    entry = registry.published(name)
    for files in (*entry.files, entry.optional_files):
        assert len({file.name for file in files}) == len(files)
        for file in files:
            assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in file.sha256)
            assert file.urls or file.hint
            assert not any("{" in url for url in file.urls)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"one of sider, .*got 'siderr'"):
        registry.card("siderr")
    with pytest.raises(ValueError, match=r"one of sider, .*got 'siderr'"):
        registry.load("siderr", "data")
    with pytest.raises(ValueError, match=r"published files \(got 'tfbs'\).*DNADataset"):
        registry.load("tfbs", "data")


LOADED = [name for name, source in SOURCES.items() if source[3] is not None]
SLOW = {"clintox", "delicious", "mediamill", "nci", "reuters", "side-effects", "sider", "tox21"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in LOADED]
)
def test_loaded_data_sets_equal_the_catalogue(real_file, tmp_path_factory, name):
    """Counts and the hash of inputs, labels and names equal the recorded values."""
    raw_file, _, _, first_label = SOURCES[name]
    if raw_file is not None:
        real_file(raw_file)
    # Other tests may have processed the same data set in this folder.
    dataset = registry.load(name, tmp_path_factory.getbasetemp())
    card = DatasetCard.of(dataset, registry.published(name))
    assert card.differences(registry.card(name)) == []
    assert dataset.label_names[0] == first_label


@pytest.mark.parametrize("name", [name for name in LOADED if registry.published(name).files[0]])
def test_missing_and_wrong_raw_files_are_named(tmp_path, monkeypatch, name):
    def refuse(network, address):
        raise SourceError("no network")

    monkeypatch.setattr(Network, "read", refuse)
    monkeypatch.delenv("TG_MLC_DATA", raising=False)
    with pytest.raises(DatasetUnavailableError) as error:
        registry.load(name, tmp_path)
    folder = tmp_path / (registry.published(name).spelling or name) / "raw"
    files = registry.published(name).files[0]
    first = files[0]
    expected = [f"'{folder / first.name}' or '$TG_MLC_DATA/{first.local}", first.sha256[0]]
    for text in (*expected, *(f"{url}: no network" for url in first.urls)):
        assert text in str(error.value)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    for file in files:
        (folder / file.name).parent.mkdir(exist_ok=True)
        (folder / file.name).write_text("wrong")
    with pytest.raises(ChecksumError, match=re.escape(f"{first.name}' has a different SHA-256")):
        registry.load(name, tmp_path)
    assert (folder / f"{first.name}.bad").read_text() == "wrong"
    assert not list(tmp_path.rglob("*.pt"))


def test_no_files_are_created_without_download(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"get it with: tg-mlc data get bibtex --root .*"):
        registry.load("bibtex", tmp_path / "a folder", download=False)
    assert list(tmp_path.iterdir()) == []


def test_processed_files_load_without_raw_files(real_file, tmp_path):
    real_file("yeast/raw/yeast.xml")
    original = registry.load("yeast", tmp_path)
    shutil.rmtree(original.raw_dir)
    stored = registry.load("yeast", tmp_path, download=False)
    assert (type(stored).__name__, stored.y.tolist()) == ("MulanDataset", original.y.tolist())
    assert not Path(original.raw_dir).exists()


def test_planted_samples_need_no_folder(tmp_path):
    assert registry.load("planted", tmp_path, force_reload=True, download=False).num_labels == 24


def test_arguments_name_the_folders_of_data_sets():
    data = os.path.join("data", "sider")  # noqa: PTH118
    assert registry.published("sider").arguments("data") == {"root": data}
    assert registry.published("bibtex").arguments("data") == {"root": "data", "name": "bibtex"}
    assert registry.published("rcv1-sample").arguments("data")["form"] == "json"
    assert registry.published("planted").arguments("data") == {}
