from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import tg_mlc

ROOT = Path(tg_mlc.__file__).parent


def imported(source):
    """The modules that a source imports anywhere: within functions, and for type checkers alone, too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not followed"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def folder_imports(root):
    """For each folder or module in a package, the others in it that its files import."""
    rooms = {path.stem for path in root.iterdir() if path.is_dir() or path.suffix == ".py"}
    graph = {}
    for path in root.rglob("*.py"):
        room = path.relative_to(root).parts[0].removesuffix(".py")
        targets = (name.split(".")[1] for name in imported(path.read_text()) if name.startswith(f"{root.name}."))
        graph.setdefault(room, set()).update(rooms.intersection(targets) - {room})
    return graph


def test_folders_import_one_another_in_one_direction():
    graph = folder_imports(ROOT)
    assert {"data", "graphs", "ops"} <= graph["nn"] | graph["training"] | graph["datasets"]  # it sees imports at all
    tuple(TopologicalSorter(graph).static_order())


def test_data_and_graphs_know_nothing_of_layers():
    graph = folder_imports(ROOT)
    assert not (graph["data"] | graph["datasets"]) & {"nn", "models", "training", "recipes"}
    assert not graph["graphs"] & {"data", "datasets", "nn", "models", "training", "recipes"}
    assert "datasets" not in graph["data"]


@pytest.mark.parametrize("source", ["from pkg.b.x import y", "def f():\n    from pkg import b", "import pkg.b.x"])
def test_a_circle_is_found(tmp_path, source):
    for room, text in {"a": source, "b": "if TYPE_CHECKING:\n    from pkg.a import z"}.items():
        (tmp_path / "pkg" / room).mkdir(parents=True)
        (tmp_path / "pkg" / room / "m.py").write_text(text)
    with pytest.raises(CycleError):
        tuple(TopologicalSorter(folder_imports(tmp_path / "pkg")).static_order())
