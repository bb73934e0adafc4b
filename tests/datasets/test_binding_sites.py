import pytest
import torch

from tg_mlc.data import DNADataset
from tg_mlc.datasets import BindingSites
from tg_mlc.datasets.binding_sites import FACTORS


@pytest.fixture(scope="module")
def dataset(real_file, tmp_path_factory):
    real_file("tfbs_binary_dna/raw/CTCF.train.fasta.xz")
    return BindingSites(tmp_path_factory.getbasetemp() / "binding-sites")


def test_the_parts_and_labels(dataset):
    assert dataset.label_names == list(FACTORS)
    assert dataset.y.isfinite().sum(dim=0).tolist() == [4_000] * 5
    assert dataset.y.nansum(dim=0).tolist() == [2_000.0] * 5
    assert set(dataset.slices["x"].diff().tolist()) == {100}
    assert dataset.official_split().sizes == (9_000, 1_000, 10_000)


def test_it_equals_the_reader_of_such_files(dataset, real_file):
    folder = real_file("tfbs_binary_dna/raw")
    parts = "train", "test"
    train, test = ({name: folder / f"{name}.{part}.fasta.xz" for name in FACTORS} for part in parts)
    read = DNADataset.from_files(train, test=test)
    assert torch.equal(dataset.x, read.x.long())
    torch.testing.assert_close(dataset.y, read.y, equal_nan=True)
