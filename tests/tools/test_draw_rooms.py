import networkx as nx
import pytest

from tools import draw_rooms


def test_the_picture_is_up_to_date():
    assert draw_rooms.main(["--check"]) == 0


def test_rooms_are_drawn_above_what_they_import(tmp_path, monkeypatch):
    sources = {"low": "", "high": "def f():\n    from pkg.low import x", "side": "import pkg.low.y"}
    for room, source in sources.items():
        (tmp_path / "pkg" / room).mkdir(parents=True)
        (tmp_path / "pkg" / room / "__init__.py").touch()
        (tmp_path / "pkg" / room / "m.py").write_text(source)
    monkeypatch.setattr(draw_rooms, "PURPOSES", dict.fromkeys(sources, ("a room",)))
    graph = draw_rooms.rooms(tmp_path / "pkg")
    assert set(graph.edges) == {("high", "low"), ("side", "low")}
    picture = draw_rooms.draw(graph)
    assert picture.count("marker-end") == 2
    assert picture.index(">high/<") < picture.index(">low/<")


def test_a_circle_cannot_be_drawn():
    with pytest.raises(nx.NetworkXException):
        draw_rooms.draw(nx.DiGraph([("a", "b"), ("b", "a")]))
