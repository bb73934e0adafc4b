import pytest
import torch

from tg_mlc.data import DNADataset
from tg_mlc.datasets import BindingSites
from tg_mlc.datasets.binding_sites import FACTORS


@pytest.fixture(scope="module")
def dataset(real_file, tmp_path_factory):
    real_file("tfbs_binary_dna/raw/CTCF.train.fasta.xz")
    return BindingSites(tmp_path_factory.getbasetemp() / "binding-sites")


def test_what_the_files_hold(dataset):
    assert (len(dataset), dataset.label_names, dataset.kind, dataset.num_inputs) == (
        20_000,
        list(FACTORS),
        "sequence",
        5,
    )
    assert dataset.y.isfinite().sum(dim=0).tolist() == [4_000] * 5
    assert dataset.y.nansum(dim=0).tolist() == [2_000.0] * 5
    assert set(dataset.slices["x"].diff().tolist()) == {100}
    assert dataset.official_split().sizes == (9_000, 1_000, 10_000)


def test_it_is_what_the_reader_of_such_files_makes(dataset, real_file):
    folder = real_file("tfbs_binary_dna/raw")
    train, test = (
        {name: folder / f"{name}.{part}.fasta.xz" for name in FACTORS} for part in ("train", "test")
    )
    read = DNADataset.from_files(train, test=test)
    assert torch.equal(dataset.x, read.x.long())
    torch.testing.assert_close(dataset.y, read.y, equal_nan=True)


def test_another_file_is_set_aside(real_file, tmp_path):
    real_file("tfbs_binary_dna/raw/CTCF.train.fasta.xz")
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "CTCF.train.fasta").write_text(">1\nACGT\n")
    with pytest.raises(Exception, match=r"CTCF.train.fasta"):
        BindingSites(tmp_path)
    assert (tmp_path / "raw" / "CTCF.train.fasta.bad").exists()
