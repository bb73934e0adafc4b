"""Imports of optional packages, which extras install, and lazy imports of slow modules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def is_installed(package: str) -> bool:
    """Tells whether a package can be imported, without importing it."""
    return find_spec(package) is not None


def how_to_install(extra: str) -> str:
    """Returns a hint on how to install a missing extra, from an index or from a clone."""
    return f'install it with: pip install "tg_mlc[{extra}]", or ".[{extra}]" in a clone'


def require(module: str, extra: str) -> Any:
    """Imports a module that only an extra installs, such as ``require("rdkit.Chem",
    extra="molecules")``, or raises an :class:`ImportError` that names the extra.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            # The package is installed, but lacks a dependency, which the error names.
            raise
        package = module.partition(".")[0]
        part = "" if package == module else f" for '{module}'"
        expected = f"Expected '{package}' to be installed{part} (got no such module)"
        raise ImportError(f"{expected}; {how_to_install(extra)}", name=error.name) from error


def imported_on_use(
    package: str, homes: Mapping[str, str], before: Callable[[], Any] | None = None
) -> Callable[[str], Any]:
    """Returns a ``__getattr__`` for a package. On first use of a name, this function calls
    :obj:`before` and imports the name from its module.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        if before is not None:
            before()
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
