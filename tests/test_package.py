import importlib
import inspect
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest

import tg_mlc
from tests.fresh import run_alone
from tg_mlc._names import _REGISTERED, ROOMS

ROOT = Path(__file__).parents[1]
_OPTIONAL = (
    "jsonargparse lightning matplotlib napkinxc numba obonet pandas pooch pytorch_lightning rdkit "
    "sklearn tensorboard torch_scatter torch_sparse triton"
)
OPTIONAL = tuple(_OPTIONAL.split())
# Recipes train, which needs Lightning, and estimators need scikit-learn.
NEEDS_AN_EXTRA = {"papers", "sklearn"}

IMPORT_WITHOUT = """
import importlib
from importlib.machinery import PathFinder

find_spec = PathFinder.find_spec
def without_optional(name, *rest):
    return None if name.partition(".")[0] in {optional!r} else find_spec(name, *rest)
PathFinder.find_spec = without_optional
for name in {names!r}:
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(f"{{name}}: {{error}}")
"""


def rooms():
    folders = (path.parent for path in (ROOT / "tg_mlc").glob("*/__init__.py"))
    files = (path.with_suffix("") for path in (ROOT / "tg_mlc").glob("*.py"))
    names = {path.name for path in (*folders, *files) if not path.name.startswith("_")}
    return sorted(f"tg_mlc.{name}" for name in names - NEEDS_AN_EXTRA)


def test_an_import_is_light_and_changes_neither_imports_nor_warnings_of_others():
    code = """
import sys, warnings
before = [*sys.meta_path], [*warnings.filters], {*sys.modules}
import tg_mlc
print(before[:2] == ([*sys.meta_path], [*warnings.filters]), *{*sys.modules} - before[2])
"""
    unchanged, *loaded = run_alone(code).split()
    assert unchanged == "True"
    assert len(loaded) < 40
    assert not {*OPTIONAL} & {name.partition(".")[0] for name in loaded}


def test_rooms_import_without_optional_packages_or_kernels():
    assert rooms()
    assert run_alone(IMPORT_WITHOUT.format(optional=OPTIONAL, names=rooms())) == ""


def test_names_at_the_top_exist_and_no_room_hides_them():
    for name in tg_mlc.__all__:
        assert getattr(tg_mlc, name) is not None
        assert not list((ROOT / "tg_mlc").glob(name)) + list((ROOT / "tg_mlc").glob(f"{name}.py"))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tg_mlc.nothing  # noqa: B018


def test_methods_have_a_docstring_or_inherit_one():
    names = [f"tg_mlc.{module.name}" for module in pkgutil.iter_modules(tg_mlc.__path__)]
    methods = []
    for module in map(importlib.import_module, names):
        public = [getattr(module, name) for name in getattr(module, "__all__", ())]
        for cls in filter(inspect.isclass, public):
            for name, value in vars(cls).items():
                # PyG writes 'propagate' and 'collect' for a layer once it is made.
                own = not name.startswith(("_", "propagate", "collect"))
                if own and (isinstance(value, property) or inspect.isroutine(value)):
                    methods.append(getattr(cls, name))
    assert len(methods) > 100
    assert all(map(inspect.getdoc, methods))


def test_saved_models_find_classes_that_rooms_above_register():
    for module in pkgutil.walk_packages(tg_mlc.__path__, "tg_mlc."):
        if not module.name.endswith("__main__") and "triton" not in module.name:
            importlib.import_module(module.name)
    rooms = {name: room for room, names in ROOMS.items() for name in names.split()}
    above = ("explanations", "exporting", "joint", "training", "stacking", "sequences", "papers")
    values = {name: value for group in _REGISTERED.values() for name, value in group.items()}
    modules = {name: value.__module__ for name, value in values.items()}
    prefixes = tuple(f"tg_mlc.{room}" for room in above)
    registered = {name: room for name, room in modules.items() if room.startswith(prefixes)}
    assert rooms.keys() == registered.keys()
    assert all(module.startswith(rooms[name]) for name, module in registered.items())


@pytest.mark.slow
def test_a_broken_numba_breaks_nothing():
    code = """
import sys
from importlib.machinery import ModuleSpec

class Broken:
    def find_spec(self, name, *rest):
        return ModuleSpec(name, self) if name == "numba" else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        raise ImportError("Numba needs another NumPy")

sys.meta_path.insert(0, Broken())
import torch
from tg_mlc.ops import Blocks, explain_choice, graph_attention
from tg_mlc.ops.dropout import dropout
x = torch.randn(6, 2, 4)
ptr = torch.tensor([0, 3, 6])
dropout(x, 0.5)
graph_attention(x, x, x, Blocks(ptr, ptr), backend="blocks", dropout_p=0.5)
from tg_mlc.ops import Edges
try:
    graph_attention(x, x, x, Edges(torch.zeros(2, 1, dtype=torch.long), 6, 6), backend="csr")
except ValueError as error:
    print(error)
"""
    assert "cannot be imported: Numba needs another NumPy" in run_alone(code)


def test_core_needs_no_optional_package():
    try:
        core = [line for line in requires("tg_mlc") or [] if "extra ==" not in line]
    except PackageNotFoundError:
        pytest.skip("tg_mlc is not installed here, so it has no metadata")
    names = {re.split(r"[^\w-]", line)[0].replace("-", "_") for line in core}
    assert names == {"networkx", "numpy", "safetensors", "scipy", "torch", "torch_geometric"}
    assert (Path(tg_mlc.__file__).parent / "py.typed").is_file()


def test_an_editable_install_works_above_the_clone_too(tmp_path):
    """Above the clone, Python could import the clone's folder, which has the package's name."""
    pytest.importorskip("setuptools", minversion="77")
    clone, installed = tmp_path / "tg_mlc", tmp_path / "installed"
    package = ("tg_mlc/__init__.py", "tg_mlc/_optional.py")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", *package):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    build = f"from setuptools.build_meta import build_editable; build_editable({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=clone, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(installed)
    code = (
        f"import site; site.addsitedir({str(installed)!r}); import tg_mlc as x; print(x.__file__)"
    )
    command = [sys.executable, "-S", "-c", code]  # Without packages installed here.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    options = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
    result = subprocess.run(command, check=True, **options)
    assert result.stdout.strip() == str(clone / "tg_mlc" / "__init__.py")
