"""Parser of the command line: commands are functions, whose signatures and docstrings say what they take."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any, get_type_hints

from tg_mlc._optional import require

_MISSING = "the following arguments are required: "


def parse(
    words: Sequence[str], commands: Mapping[str, Any], prog: str, description: str, version: str
) -> Callable[[], int]:
    """The function that a command line names, of functions or dictionaries of them by name, with its arguments.
    Parameters that can be given by position are so on the command line; those that are ``bool`` are flags. The fields
    of data classes are options of their own.
    """
    parser = _parser_class()(prog=prog, description=description, version=version)
    _add_commands(parser, commands)
    found = parser.parse_args(list(words))
    options = [
        word.partition("=")[0] for word in words if word.startswith("--") and word != "--config"
    ]
    if several := [option for option in options if options.count(option) > 1]:
        parser.error(
            f"argument {several[0]}: expected once, as only the last of several would count"
        )
    command: Any = commands
    while not callable(command):
        name = found.subcommand
        command, found = command[name], found[name]

    def given(source: Callable[..., Any]) -> dict[str, Any]:
        return {name: found[name] for name in _parameters(source)}

    shared = {name: source(**given(source)) for name, source in _shared(command).items()}
    return partial(command, **shared, **given(command))


def _add_commands(parser: Any, commands: Mapping[str, Any]) -> None:
    subcommands = parser.add_subcommands(required=True)
    for name, command in commands.items():
        what = (
            f"{', '.join(command)}."
            if isinstance(command, dict)
            else inspect.cleandoc(command.__doc__)
        )
        child = type(parser)(description=what.splitlines()[0])
        subcommands.add_subcommand(name, child, help=what.splitlines()[0])
        parser.children[name] = child
        if isinstance(command, dict):
            _add_commands(child, command)
            continue
        sources = [*_shared(command).values(), command]  # what has its options as parameters
        if any(map(_parameters, sources)):
            child.add_argument(
                "--config",
                action="config",
                help="A YAML file of options, as --print_config prints it.",
            )
        for source in sources:
            _add_parameters(child, source)


def _add_parameters(parser: Any, source: Callable[..., Any]) -> None:
    documented = require("docstring_parser", extra="data").parse(source.__doc__).params
    told = {entry.arg_name: entry.description for entry in documented}
    by_place = [
        name
        for name, each in _parameters(source).items()
        if each.kind is each.POSITIONAL_OR_KEYWORD
    ]
    for name in by_place:
        parser.add_argument(name, type=str, help=told[name])
    flags = [
        name for name, each in _parameters(source).items() if each.annotation in (bool, "bool")
    ]
    for name in flags:
        parser.add_argument(f"--{name}", action="store_true", help=told[name])
    add = parser.add_class_arguments if inspect.isclass(source) else parser.add_function_arguments
    add(source, as_group=False, as_positional=False, skip={*by_place, *flags, *_shared(source)})


def _shared(command: Callable[..., Any]) -> dict[str, Any]:
    """The data classes of options that a command takes; those of kinds of input are made of what kinds declare."""
    hints = {} if inspect.isclass(command) else get_type_hints(command)
    sources = {
        name: hint.declared() if hasattr(hint, "declared") else hint for name, hint in hints.items()
    }
    return {name: source for name, source in sources.items() if is_dataclass(source)}


def _parameters(source: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    shared = _shared(source)
    return {
        name: each
        for name, each in inspect.signature(source).parameters.items()
        if name not in shared
    }


def _parser_class() -> Any:
    class Parser(require("jsonargparse", extra="data").ArgumentParser):  # type: ignore[misc]
        """Parser whose errors show the usage of the command that was meant, and names like those that it lacks."""

        def __init__(self, **options: Any) -> None:
            super().__init__(allow_abbrev=False, **options)
            self.children: dict[str, Parser] = {}

        def error(self, message: str, ex: Exception | None = None) -> None:
            if message.startswith(_MISSING):
                *names, _ = message.removeprefix(_MISSING).split(",")[0].split(".")
                if names:
                    self._child(names).error(message.replace(".".join([*names, ""]), "--"), ex)
            parser = getattr(ex, "subcommand_parser", None) or self
            similar = _similar(message, [*parser._option_string_actions, *parser.children])
            super().error(f"{message}{f' (did you mean {similar}?)' if similar else ''}", ex)

        def _child(self, names: Sequence[str]) -> Parser:
            return self.children[names[0]]._child(names[1:]) if names else self

    return Parser


def _similar(message: str, names: Sequence[str]) -> str:
    """The names like those that a message says to be unknown."""
    unknown = re.findall(r"invalid choice: '([^']*)'|(?<!\S)(--[^\s=]+)", message)
    if not message.startswith(("unrecognized arguments", "argument subcommand")):
        return ""
    close = [
        match
        for pair in unknown
        for word in pair
        if word
        for match in get_close_matches(word, names, 1)
    ]
    return " or ".join(f"'{match}'" for match in close)
