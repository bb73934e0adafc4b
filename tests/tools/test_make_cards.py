from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from tg_mlc.datasets import DatasetUnavailableError, registry

PATH = Path(__file__).parents[2] / "tools" / "make_cards.py"
spec = importlib.util.spec_from_file_location("make_cards", PATH)
make_cards = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_cards)


def test_cards_stand_in_the_order_of_the_documentation(tmp_path):
    path = tmp_path / "cards.json"
    make_cards.write({"yeast": {"samples": 2}, "gone": {}, "sider": {"samples": 1}}, path)
    assert path.read_text() == '{\n "sider": {\n  "samples": 1\n },\n "yeast": {\n  "samples": 2\n }\n}\n'


def test_the_recorded_file_is_as_the_tool_writes_it(tmp_path):
    make_cards.write(json.loads(registry.CARDS.read_text(encoding="utf-8")), tmp_path / "cards.json")
    assert (tmp_path / "cards.json").read_bytes() == registry.CARDS.read_bytes()


def test_nothing_is_half_written(tmp_path, monkeypatch):
    path = tmp_path / "cards.json"
    path.write_text("before")

    def break_down(file, text, **rest):
        file.write_bytes(text[:9].encode())
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_text", break_down)
    with pytest.raises(OSError, match="no space left"):
        make_cards.write({"yeast": {"samples": 2}}, path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_loaded_is_reported_unless_it_was_counted_before(tmp_path, monkeypatch):
    def be_offline(name, root):
        raise DatasetUnavailableError("offline")

    monkeypatch.setattr(registry, "load", be_offline)
    assert make_cards.statistics("nuswide", tmp_path, None)["origin"] == "reported"
    counted = {"origin": "computed", "samples": 3}
    assert make_cards.statistics("nuswide", tmp_path, counted) is counted
    with pytest.raises(SystemExit, match="Expected the figures of 'yeast'"):
        make_cards.statistics("yeast", tmp_path, None)
