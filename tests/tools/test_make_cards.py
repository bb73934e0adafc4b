import json
from pathlib import Path

import pytest

from tg_mlc.datasets import DatasetUnavailableError, registry
from tools import make_cards


def test_the_catalogue_is_as_the_tool_writes_it(tmp_path):
    path, content = tmp_path / "catalogue.json", registry.CATALOGUE.read_text(encoding="utf-8")
    make_cards.write(json.loads(content), path)
    assert path.read_bytes() == registry.CATALOGUE.read_bytes()


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "catalogue.json"
    path.write_text("before")

    def break_down(file, text, **options):
        file.write_bytes(text[:9].encode())
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_text", break_down)
    with pytest.raises(OSError, match="no space left"):
        make_cards.write({"yeast": {"samples": 2}}, path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_statistics_of_unavailable_data_sets_are_kept(tmp_path, monkeypatch):
    def be_offline(name, root):
        raise DatasetUnavailableError("offline")

    monkeypatch.setattr(registry, "load", be_offline)
    recorded = {"origin": "computed", "samples": 3}
    for name in ("nuswide", "tfbs"):
        assert make_cards.statistics(name, tmp_path, recorded) is recorded


def test_available_data_sets_are_counted(tmp_path):
    statistics = make_cards.statistics("planted", tmp_path, {})
    assert (statistics["samples"], statistics["origin"]) == (5000, "computed")
    assert "raw_sha256" not in statistics  # The catalogue lists checksums with the files.
