import dataclasses
import hashlib

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Dataset

from tg_mlc.data import predefined_split
from tg_mlc.datasets.card import DatasetCard, content_sha256, label_statistics
from tg_mlc.inputs.arrays import from_arrays

NAN = float("nan")
Y = torch.tensor([[1, 1, 0, NAN], [1, 0, 0, 0], [1, NAN, 0, 0], [1, 1, 0, 0]])
URLS = ("https://a", "https://b")
STATED = {"name": "toy", "title": "four samples", "urls": URLS, "licence": "MIT", "notes": ("one",)}
FACTS = DatasetCard(**STATED, kind="bag", samples=3, labels=2)


def toy(**changes):
    arguments = {"X": sp.csr_array(np.eye(4)), "Y": Y, "train": [0, 1, 2], "test": [3], **changes}
    return from_arrays(**arguments, kind="bag")


def test_label_statistics_count_known_entries():
    stats = label_statistics(Y)
    assert stats["labels"] == 4
    assert stats["cardinality"] == 6 / 4
    assert stats["density"] == 6 / 14  # 14 entries are known.
    assert stats["missing"] == pytest.approx(2 / 16)
    # Two labels have 4 and 2 positives. Labels without positives have no imbalance.
    assert (stats["mean_ir"], stats["max_ir"], stats["never_positive"]) == (1.5, 2.0, 2)
    y = (torch.rand(50, 7) < 0.3).float()
    assert label_statistics(sp.csr_array(y.numpy())) == label_statistics(y)
    stats = label_statistics(torch.zeros(3, 2))
    assert stats["never_positive"] == 2
    assert np.isnan(stats["max_ir"])


def test_a_card_has_the_counts_and_facts_of_a_data_set():
    card = DatasetCard.of(toy(), FACTS)
    assert (card.kind, card.samples, card.num_inputs, card.labels) == ("bag", 4, 4, 4)
    assert card.official == (3, 1)
    assert (card.name, card.licence, card.origin, card.raw_sha256) == ("toy", "MIT", "computed", {})
    with pytest.raises(dataclasses.FrozenInstanceError):
        card.samples = 5
    assert DatasetCard.of(toy()).name == "ArrayDataset"
    with pytest.raises(ValueError, match="whole data set"):
        DatasetCard.of(toy()[:2])


def test_a_data_set_in_memory_has_no_raw_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / toy().raw_dir / "other.csv"  # PyG invents this folder.
    path.parent.mkdir(parents=True)
    path.write_text("a")
    assert DatasetCard.of(toy()).raw_sha256 == {}


def test_the_text_of_a_card_has_a_line_for_each_statistic():
    lines = str(DatasetCard.of(toy(), FACTS)).splitlines()
    assert lines[0] == "toy: four samples"
    for line in (
        "  Samples         4 (3 + 1 as published)",
        "  Inputs          4 words",
        "  Labels          4 (2 without a positive sample)",
        "  Imbalance       mean 1.5, largest 2 (Charte et al. 2015)",
        "  Missing labels  12.50%",
        "  Source          https://a",
        "                  https://b",
        "  Licence         MIT",
    ):
        assert line in lines
    reported = str(FACTS)
    assert "reported by the papers" in reported
    assert "Cardinality     unknown" in reported
    lines = str(DatasetCard.of(toy(Y=torch.zeros(4, 2)))).splitlines()
    assert "  Imbalance       mean undefined, largest undefined (Charte et al. 2015)" in lines


@pytest.mark.parametrize(("number", "unit"), [(4, "letters"), (5, "letters"), (24_805, "words")])
def test_inputs_of_sequences_are_letters_or_words(number, unit):
    card = dataclasses.replace(FACTS, kind="sequence", num_inputs=number)
    assert f"  Inputs          {number:,} {unit}" in str(card).splitlines()


def test_raw_files_are_hashed(sider, real_file):
    digest = hashlib.sha256(real_file("sider/raw/sider.csv").read_bytes()).hexdigest()
    assert DatasetCard.of(sider).raw_sha256 == {"sider.csv": digest}


@pytest.mark.parametrize(
    "change",
    [
        {"Y": Y.nan_to_num()},
        {"X": sp.csr_array(np.eye(4)[::-1])},
        {"X": sp.csr_array(2 * np.eye(4))},
        {"label_names": ["a", "b", "c", "d"]},
        {"feature_names": ["a", "b", "c", "d"]},
        {"train": [0, 1]},
    ],
)
def test_the_hash_depends_on_the_contents(change):
    assert content_sha256(toy()) == content_sha256(toy()) != content_sha256(toy(**change))


def test_bits_of_nan_and_rounding_make_no_difference():
    other_nan = np.array([0xFFC00001], dtype=np.uint32).view(np.float32)[0]
    y = Y.numpy().copy()
    y[np.isnan(y)] = other_nan
    assert content_sha256(toy(Y=torch.from_numpy(y))) == content_sha256(toy())
    card = DatasetCard.of(toy(), FACTS)
    assert card.differences(DatasetCard(name="other", title="another", **card.statistics)) == []
    rounded = dataclasses.replace(card, density=card.density * (1 + 1e-12))
    assert card.differences(rounded) == []
    assert card.differences(dataclasses.replace(card, samples=5)) == ["samples: 4 (recorded: 5)"]
    # Raw files without a record do not count.
    recorded = dataclasses.replace(card, raw_sha256={"folder/a.csv": "1"})
    fresh = dataclasses.replace(card, raw_sha256={"folder/a.csv": "1", "notes.txt": "2"})
    assert fresh.differences(recorded) == []
    assert len(dataclasses.replace(fresh, raw_sha256={"notes.txt": "2"}).differences(recorded)) == 1


class Mapped(Dataset):
    """A data set with sparse labels, whose samples stay in files."""

    kind, num_inputs, label_names = "sequence", 4, ["a", "b"]
    processed_file_names = ["rows.npy"]

    def process(self):
        np.save(self.processed_paths[0], np.arange(3))

    def len(self):
        return 3

    def sparse_y(self):
        return sp.csr_array([[1, 0], [1, 1], [0, 0]])

    def official_split(self):
        return predefined_split([0], [1], [2], num_samples=3)


def test_cards_describe_files_that_are_not_loaded(tmp_path):
    card = DatasetCard.of(Mapped(str(tmp_path)), FACTS)
    assert (card.kind, card.samples, card.labels, card.num_inputs) == ("sequence", 3, 2, 4)
    assert card.official == (1, 1, 1)
    assert (card.cardinality, card.density, card.missing, card.max_ir) == (1.0, 0.5, 0.0, 2.0)
    original_hash = card.content_sha256
    np.save(tmp_path / "processed" / "rows.npy", np.arange(4))
    assert DatasetCard.of(Mapped(str(tmp_path)), FACTS).content_sha256 != original_hash
