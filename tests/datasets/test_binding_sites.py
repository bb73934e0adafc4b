import pytest
import torch

from tg_mlc.data import DNADataset
from tg_mlc.datasets import BindingSites
from tg_mlc.datasets.binding_sites import FACTORS


@pytest.fixture(scope="module")
def dataset(real_file, tmp_path_factory):
    real_file("tfbs_binary_dna/raw/CTCF.train.fasta.xz")
    return BindingSites(tmp_path_factory.getbasetemp() / "binding-sites")


def test_binding_sites_equal_the_reader_of_dna_files(dataset, real_file):
    folder = real_file("tfbs_binary_dna/raw")
    parts = "train", "test"
    train, test = ({name: folder / f"{name}.{part}.fasta.xz" for name in FACTORS} for part in parts)
    expected = DNADataset.from_files(train, test=test)
    assert torch.equal(dataset.x, expected.x.long())
    torch.testing.assert_close(dataset.y, expected.y, equal_nan=True)
