"""Imports of packages that only extras install, and of modules that take long."""

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
    """The way to install a missing extra, whether :obj:`tg_mlc` came from an index or from a clone."""
    return f'install it with: pip install "tg_mlc[{extra}]", or ".[{extra}]" in a clone'


def require(module: str, extra: str) -> Any:
    """Imports a module that only an extra installs, or says which extra is missing.

    .. code-block:: python

        Chem = require("rdkit.Chem", extra="molecules")

    Args:
        module (str): Dotted name of the module to import.
        extra (str): Name of the extra of :obj:`tg_mlc` that installs it.

    Returns:
        The module of that dotted name (the last part, unlike a plain ``import a.b``).

    Raises:
        ImportError: If the module, or a package above it, is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if not _is_missing(error, module):
            raise  # The package is there, but something it needs is not: its own message is the useful one.
        package = module.partition(".")[0]
        part = "" if package == module else f" for '{module}'"
        raise ImportError(
            f"Expected '{package}' to be installed{part} (got no such module); {how_to_install(extra)}",
            name=error.name,
        ) from error


def _is_missing(error: ModuleNotFoundError, module: str) -> bool:
    return error.name is not None and f"{module}.".startswith(f"{error.name}.")


def imported_on_use(
    package: str, homes: Mapping[str, str], before: Callable[[], Any] | None = None
) -> Callable[[str], Any]:
    """Returns the ``__getattr__`` of a package that imports its names from other modules when they are first used.

    Args:
        package (str): Name of the package.
        homes (dict): The modules that define its names.
        before (Callable, optional): Called before such an import. (default: :obj:`None`)
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
