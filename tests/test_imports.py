import ast
import json
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest

import tg_mlc
from tests.fresh import run_python
from tests.quick import train_little
from tests.saved import TEXTS
from tg_mlc.data import MoleculeDataset, from_arrays, random_split, tokenize
from tg_mlc.graphs import fully_connected
from tg_mlc.inference import Model
from tg_mlc.inputs import kind_of
from tg_mlc.models import molecule_lamp, table_lamp

ROOT = Path(tg_mlc.__file__).parent

_ORDER = (
    "cli serving sklearn exporting explanations joint papers datasets stacking sequences training "
    "inference models inputs data nn baselines graphs ops losses metrics"
)
ORDER = _ORDER.split()  #: Every room imports only rooms after it.
#: Rooms that a room must not import although they come after it.
APART = {
    "cli": {"nn", "ops"},
    "data": {"nn", "graphs", "ops", "baselines", "losses", "metrics"},
    "datasets": {"stacking", "sequences", "training", "inference", "models", "nn"},
    "explanations": {"papers", "datasets"},
    "exporting": {"explanations", "papers", "datasets"},
    "graphs": {"losses"},
    "inference": {"baselines"},
    "inputs": {"baselines"},
    "models": {"baselines"},
    "nn": {"baselines", "losses"},
    "papers": {"baselines"},
    "sequences": {"inference", "training"},
    "serving": {"sklearn", "papers", "datasets", "nn", "ops"},
    "sklearn": {"papers", "datasets"},
    "stacking": {"sequences"},
    "training": {"baselines"},
}

#: Prints the modules that predictions of groups of saved folders import, after each group.
LOADED = """
import json, sys
import torch, torch_geometric
before = set(sys.modules)
import tg_mlc
from tg_mlc.cli import main
for group in json.loads(sys.argv[1]):
    for name, (folder, raw) in group.items():
        tg_mlc.load(folder).predict(raw)
        if name == "dna":
            assert main(["predict", folder, "--dna", raw[0]]) == 0
    print("imported:", *set(sys.modules) - before)
"""


def imported(tree, outside_functions=False):
    """Yields the modules that a file imports, also within functions and for type checkers."""
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not followed"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        for_types = isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        if not (outside_functions and (isinstance(node, ast.FunctionDef) or for_types)):
            nodes.extend(ast.iter_child_nodes(node))


@cache
def parse(path):
    return ast.parse(path.read_text())


@cache
def nodes_of_the_package():
    """Returns the comparisons and classes of the package, each with the file that it stands in."""
    nodes = []
    for path in ROOT.rglob("*.py"):
        name = str(path.relative_to(ROOT))
        for node in ast.walk(parse(path)):
            if isinstance(node, (ast.Compare, ast.ClassDef)):
                nodes.append((name, node))
    return nodes


def room_imports(root):
    """Returns, for each folder or module of a package, the others that its files import."""
    rooms = {path.stem for path in root.iterdir() if path.is_dir() or path.suffix == ".py"}
    graph = {}
    for path in root.rglob("*.py"):
        room = path.relative_to(root).parts[0].removesuffix(".py")
        names = [name.split(".") for name in imported(parse(path))]
        targets = {name[1] for name in names if name[0] == root.name and len(name) > 1}
        graph.setdefault(room, set()).update(rooms.intersection(targets) - {room})
    return graph


def file_imports(room):
    """Returns, for each file of a folder, the other files of the folder that it imports."""
    names = {}
    for path in room.rglob("*.py"):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        names[".".join(parts).removesuffix(".__init__")] = path
    graph = {}
    for name, path in names.items():
        targets = set()
        for target in imported(parse(path)):
            prefixes = accumulate(target.split("."), "{}.{}".format)
            targets |= {*[name for name in prefixes if name in names][-1:]}
        graph[name] = targets - {name}
    return graph


def test_rooms_import_only_rooms_below_them():
    graph = room_imports(ROOT)
    # The graph must have imports at all.
    assert {"data", "nn", "inference"} <= graph["training"] | graph["models"]
    assert {room for room in graph if not room.startswith("_")} <= set(ORDER)
    for index, room in enumerate(ORDER):
        assert graph[room].isdisjoint({*ORDER[:index], *APART.get(room, ())}), room


def test_no_other_room_imports_papers():
    assert not [room for room, others in room_imports(ROOT).items() if "papers" in others]


def test_papers_have_constants_of_their_own():
    """A better default of the package changes no published result."""
    names = {name for path in (ROOT / "papers").rglob("*.py") for name in imported(parse(path))}
    of_stacking = {name for name in names if name.startswith("tg_mlc.stacking")}
    assert "tg_mlc.stacking.features.StackingFeatures" in of_stacking
    modules = {"stacking", *(path.stem for path in (ROOT / "stacking").glob("*.py"))}
    for name in of_stacking:
        last = name.rpartition(".")[2]
        assert not last.isupper(), f"{name} is a default of the package; write its value in papers"
        assert last not in modules, f"{name} gives access to defaults; import names from it"


def test_inputs_import_layers_in_functions_only():
    for path in (ROOT / "inputs").rglob("*.py"):
        names = imported(parse(path), outside_functions=True)
        assert not [name for name in names if name.startswith("tg_mlc.nn")]


def test_layers_and_classifiers_import_only_hierarchies_from_graphs():
    for path in [*(ROOT / "nn").rglob("*.py"), *(ROOT / "baselines").rglob("*.py")]:
        graphs = [name for name in imported(parse(path)) if name.startswith("tg_mlc.graphs")]
        assert all(name.startswith("tg_mlc.graphs.hierarchy.") for name in graphs)


@pytest.mark.parametrize("room", sorted(path.parent.name for path in ROOT.glob("*/__init__.py")))
def test_files_of_a_room_import_one_another_in_one_direction(room):
    TopologicalSorter(file_imports(ROOT / room)).prepare()


@pytest.mark.parametrize(
    "source", ["from pkg.b.x import y", "def f():\n    from pkg import b", "import pkg.b.x"]
)
def test_a_circle_is_found(tmp_path, source):
    for room, text in {"a": source, "b": "if TYPE_CHECKING:\n    from pkg.a import z"}.items():
        (tmp_path / "pkg" / room).mkdir(parents=True)
        (tmp_path / "pkg" / room / "m.py").write_text(text)
    with pytest.raises(CycleError):
        tuple(TopologicalSorter(room_imports(tmp_path / "pkg")).static_order())


@pytest.fixture
def groups(saved, tmp_path, monkeypatch):
    """Returns folders of models with inputs for them: networks alone, classifiers, and all parts;
    without RDKit, and with it.
    """
    y = np.array([[row % 2, row % 3 == 0] for row in range(40)], float)
    names = ["a", "b"]

    def network_of(dataset, network):
        kind = kind_of(dataset)()
        samples = kind.fit_transform(dataset, random_split(len(dataset)))
        lamp = network(samples, fully_connected(names), channels=8, num_steps=1, heads=2)
        return Model.of(lamp, names, preprocessor=kind).save(tmp_path / kind.option)

    words = from_arrays([tokenize(text) for text in TEXTS], y, names, kind="sequence")
    dna = tg_mlc.load(saved("dna"))
    columns = {"kind": "dna", "columns": ["site"], "labels": dna.label_names, "separator": None}
    dna.facts["inputs"] = columns
    train_little(monkeypatch, max_epochs=1)
    x = np.random.default_rng(0).normal(size=(40, 3))
    vectors = from_arrays(x, (x[:, :2] > 0).astype(float), names, kind="vector")
    model = tg_mlc.auto(vectors, seconds=60)
    assert model.networks
    folders = {
        "words": (network_of(words, table_lamp), TEXTS[:2]),
        "dna": (dna.save(tmp_path / "dna"), ["ACGTACGTACAC", "TTTTACGTTTGT"]),
        "vectors": (model.save(tmp_path / "vectors"), x[:2].tolist()),
    }
    smiles = [f"{'C' * (1 + row % 9)}{'ON'[row % 2]}" for row in range(40)]
    molecules = network_of(MoleculeDataset.from_smiles(smiles, y, names), molecule_lamp)
    return [folders, {"molecules": (molecules, smiles[:2])}]


def test_predictions_import_neither_training_nor_what_other_kinds_need(groups):
    """``tg-mlc predict`` does not import them either: it would take twice as long."""
    output, _ = run_python(LOADED, [json.dumps(groups, default=str)])
    lines = [line for line in output.splitlines() if line.startswith("imported:")]
    others, molecules = ({*line.split()} for line in lines)
    unwanted = {"lightning", "pytorch_lightning", "torchmetrics", "tensorboard", "sklearn"}
    unwanted |= {"matplotlib", "networkx"}
    rooms = ("papers", "sequences", "datasets", "sklearn", "training.fitting")
    unwanted |= {f"tg_mlc.{room}" for room in rooms}
    assert "tg_mlc.stacking" in others
    assert not others & {*unwanted, "rdkit", "scipy.optimize", "scipy.stats"}
    assert not molecules & unwanted


def test_only_inputs_compares_kinds_of_inputs():
    """Other rooms call methods of the object of the kind."""
    pending = {"graphs/label_graph.py"}
    operators = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
    paths = set()
    for path, node in nodes_of_the_package():
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], operators):
            sides = map(ast.unparse, (node.left, *node.comparators))
            kinds = [side for side in sides if re.fullmatch(r"(.*\.)?kind", side)]
            paths |= {path} if any("dtype" not in side for side in kinds) else set()
    assert {path for path in paths if not path.startswith("inputs/")} <= pending


def test_constructors_have_few_parameters():
    pending = {"DatasetCard", "GraphComparison"}
    class_names = set()
    for _, node in nodes_of_the_package():
        if isinstance(node, ast.ClassDef):
            fields = [statement for statement in node.body if isinstance(statement, ast.AnnAssign)]
            fields = [field for field in fields if ast.unparse(field.target) != "_"]
            size = len(fields) * ("dataclass" in "".join(map(ast.unparse, node.decorator_list)))
            for statement in node.body:
                if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
                    size = len(statement.args.args) - 1 + len(statement.args.kwonlyargs)
            class_names |= {node.name} if size > 13 else set()
    assert class_names <= pending


def test_rooms_show_few_names():
    names = set()
    for path in ROOT.rglob("__init__.py"):
        for node in parse(path).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                names |= set(ast.literal_eval(node.value))
    assert 100 < len(names) <= 212
