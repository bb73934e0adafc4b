"""Draws the rooms of the package and their imports into docs/rooms.svg.

python tools/draw_rooms.py          # writes the picture
python tools/draw_rooms.py --check  # fails if it is out of date
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from html import escape
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "rooms.svg"
WIDTH, BOX, GAP, ROW = 1000, (150, 58), 18, 104
PURPOSES = {
    "baselines": ("classifiers to", "compare with and to stack"),
    "cli": ("the command line",),
    "data": ("data sets, samples,", "labels, splits"),
    "datasets": ("published data sets",),
    "explanations": ("why a label: methods,", "measured"),
    "exporting": ("models as programs", "for other tools"),
    "graphs": ("label graphs,", "hierarchies"),
    "inference": ("models, their stages", "and folders"),
    "inputs": ("words, vectors,", "molecules, DNA"),
    "joint": ("labels to look up,", "labels to check"),
    "losses": ("losses",),
    "metrics": ("metrics, thresholds",),
    "models": ("LaMP for each kind", "of input"),
    "nn": ("layers for your own", "models, encoders"),
    "ops": ("the attention operator",),
    "papers": ("rivals, recipes,", "authors' checkpoints"),
    "sequences": ("histories of label sets,", "LANET"),
    "serving": ("an HTTP server",),
    "sklearn": ("estimators",),
    "stacking": ("the default: classifiers", "and LaMP over them"),
    "training": ("fit, objectives, resume",),
}


def imported_modules(source: str) -> Iterator[str]:
    """The modules that a file imports, anywhere in its code."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def rooms(package: Path = ROOT / "tg_mlc") -> nx.DiGraph:
    """The folders of the package, with an edge from each room to the rooms that it imports."""
    graph = nx.DiGraph()
    names = [path.parent.name for path in package.glob("*/__init__.py")]
    graph.add_nodes_from(sorted(names))
    for name in names:
        for path in (package / name).rglob("*.py"):
            for module in imported_modules(path.read_text()):
                root, *parts = module.split(".")
                if root == package.name and parts and parts[0] in {*names} - {name}:
                    graph.add_edge(name, parts[0])
    return graph


def draw(graph: nx.DiGraph) -> str:
    """An SVG of rooms in storeys, each room above all that it imports, without implied arrows."""
    arrows = nx.transitive_reduction(graph)
    storeys = defaultdict(list)
    for storey, names in enumerate(reversed(list(nx.topological_generations(graph.reverse())))):
        storeys[storey] = sorted(names)
    width, height = BOX
    positions = {}
    for storey, names in storeys.items():
        left = (WIDTH - len(names) * (width + GAP) + GAP) / 2
        for index, name in enumerate(names):
            positions[name] = left + index * (width + GAP), 10 + storey * ROW
    size = f"{WIDTH} {len(storeys) * ROW}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" font-family="sans-serif" '
        'font-size="12" role="img" aria-label="The rooms of the package and their imports">',
        f'<rect width="{WIDTH}" height="{len(storeys) * ROW}" fill="#fff"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#789"/></marker></defs>',
    ]
    for source, target in sorted(arrows.edges):
        (x0, y0), (x1, y1) = positions[source], positions[target]
        (x0, y0), (x1, y1) = (x0 + width / 2, y0 + height), (x1 + width / 2, y1 - 2)
        bend = (y1 - y0) / 2
        lines.append(
            f'<path d="M{x0:g} {y0:g}C{x0:g} {y0 + bend:g} {x1:g} {y1 - bend:g} {x1:g} {y1:g}" '
            'fill="none" stroke="#789" marker-end="url(#tip)"/>'
        )
    for name, (x, y) in sorted(positions.items()):
        text_tag = f'<text x="{x + width / 2:g}"'
        lines.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width}" height="{height}" rx="6" fill="#eef4fa" '
            f'stroke="#357"/>{text_tag} y="{y + 20:g}" text-anchor="middle" '
            f'font-weight="bold">{name}/</text>'
        )
        for row, text in enumerate(PURPOSES[name]):
            lines.append(
                f'{text_tag} y="{y + 36 + 14 * row:g}" text-anchor="middle" font-size="10">'
                f"{escape(text)}</text>"
            )
    return "\n".join([*lines, "</svg>", ""])


def main(arguments: list[str]) -> int:
    """Writes the picture, or says whether it is out of date."""
    picture = draw(rooms())
    if "--check" in arguments:
        if PICTURE.read_text(encoding="utf-8") == picture:
            return 0
        expected = f"'{PICTURE}' to show today's imports"
        print(f"Expected {expected} (got an earlier picture); run tools/draw_rooms.py")
        return 1
    PICTURE.write_text(picture, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
