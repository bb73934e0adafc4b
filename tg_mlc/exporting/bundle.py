"""Bundles: one file of a module together with the definitions that it takes from this package."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import tg_mlc

PACKAGE = tg_mlc.__name__
#: Packages beside the standard library that a bundle may import.
ALLOWED = ("numpy", "rdkit")


def bundle(name: str) -> str:
    """Returns the source of a module that imports nothing of this package.

    Functions, classes and constants of other modules are copied as they are, so that there is one
    definition of how inputs are read.

    Raises:
        ValueError: If a definition needs another package, or two have the same name.
    """
    root, needs = _Module.of(name), _Needs()
    docstring, *body = root.tree.body
    body = [node for node in body if not isinstance(node, _IMPORTS)]
    for node in body:
        needs.add(root, node)
    copied, segments = dict[str, str](), list[str]()
    for home, defined in needs.definitions:
        module = _Module.of(home)
        text = "\n".join(map(module.source_of, module.definitions[defined]))
        if home == name:
            continue
        if copied.setdefault(defined, text) != text:
            raise ValueError(f"Expected one definition of '{defined}' (got another in {home})")
        segments.append(text)
    head = [root.source_of(docstring), "from __future__ import annotations"]
    head += ["\n".join(sorted(needs.imports)), *dict.fromkeys(segments)]
    return "\n\n\n".join([*head, *map(root.source_of, body)]) + "\n"


_IMPORTS = (ast.Import, ast.ImportFrom)


class _Module:
    """The source of a module, with its definitions and imports by name."""

    def __init__(self, name: str) -> None:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        self.name, self.text = name, Path(spec.origin).read_text(encoding="utf-8")
        self.tree, self.lines = ast.parse(self.text), self.text.splitlines()
        self.definitions: dict[str, list[ast.stmt]] = {}
        self.imports: dict[str, tuple[str, str | None]] = {}  # module, and name in it, by name
        for node in self.tree.body:
            if isinstance(node, ast.Import):
                self.imports |= {a.asname or a.name: (a.name, None) for a in node.names}
            elif isinstance(node, ast.ImportFrom):
                home = str(node.module)
                self.imports |= {a.asname or a.name: (home, a.name) for a in node.names}
            for defined in _names_of(node):
                self.definitions.setdefault(defined, []).append(node)

    @staticmethod
    @cache
    def of(name: str) -> _Module:
        return _Module(name)

    def source_of(self, node: ast.stmt) -> str:
        """Returns the lines of a statement, with its decorators."""
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        return "\n".join(self.lines[first - 1 : node.end_lineno])


def _names_of(node: ast.stmt) -> Iterator[str]:
    """Yields the names that a statement of a module defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    yield from (target.id for target in targets if isinstance(target, ast.Name))


class _Needs:
    """The definitions that statements need, each after those that it needs itself, and imports."""

    def __init__(self) -> None:
        self.imports: dict[str, None] = {}
        self.definitions: dict[tuple[str, str], None] = {}
        self._begun: set[tuple[str, str]] = set()

    def add(self, module: _Module, node: ast.stmt) -> None:
        """Adds what a statement of a module needs."""
        annotated = {id(part) for root in _annotations(node) for part in ast.walk(root)}
        for used in ast.walk(node):
            if not isinstance(used, ast.Name):
                continue
            home, name = module.imports.get(used.id, (module.name, used.id))
            package = home.partition(".")[0]
            if package == PACKAGE:
                if id(used) not in annotated:
                    self._add_definition(_Module.of(home), str(name))
            elif package in sys.stdlib_module_names or package in ALLOWED:
                alias = "" if used.id == (name or home) else f" as {used.id}"
                text = f"import {home}" if name is None else f"from {home} import {name}"
                self.imports[text + alias] = None
            elif id(used) not in annotated:
                raise ValueError(f"Expected definitions without {home} (got one in {module.name})")

    def _add_definition(self, module: _Module, name: str) -> None:
        key = module.name, name
        if key in self._begun or name not in module.definitions:
            return
        self._begun.add(key)
        for node in module.definitions[name]:
            self.add(module, node)
        self.definitions[key] = None


def _annotations(node: ast.stmt) -> Iterator[ast.expr]:
    """Yields annotations, which are not evaluated."""
    for part in ast.walk(node):
        for field in ("annotation", "returns"):
            if (annotation := getattr(part, field, None)) is not None:
                yield annotation
