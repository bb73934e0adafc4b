"""Parser of the command line: commands are functions, whose signatures and docstrings say what they take."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from tg_mlc._optional import require

Command = Callable[..., int]
_MISSING = "the following arguments are required: "


def parse(
    words: Sequence[str], commands: Mapping[str, Any], prog: str, description: str, version: str
) -> tuple[Command, dict[str, Any]]:
    """The function that a command line names, and its arguments.

    Args:
        words (Sequence[str]): The command line.
        commands (dict): Functions, or dictionaries of them, by name. Parameters that can be given by position are so on
            the command line; those that are ``bool`` are flags.
        prog (str): The name of the program.
        description (str): What it is.
        version (str): Its version.
    """
    parser = _parser_class()(prog=prog, description=description, version=version)
    _add_commands(parser, commands)
    found = parser.parse_args(_plain_flags(words, commands))
    command: Any = commands
    while not callable(command):
        name = found.subcommand
        command, found = command[name], found[name]
    return command, {name: found[name] for name in inspect.signature(command).parameters}


def _add_commands(parser: Any, commands: Mapping[str, Any]) -> None:
    subcommands = parser.add_subcommands(required=True)
    for name, command in commands.items():
        what = f"{', '.join(command)}." if isinstance(command, dict) else inspect.cleandoc(command.__doc__)
        child = type(parser)(description=what.splitlines()[0])
        subcommands.add_subcommand(name, child, help=what.splitlines()[0])
        parser.children[name] = child
        if isinstance(command, dict):
            _add_commands(child, command)
        else:
            _add_arguments(child, command)


def _add_arguments(parser: Any, command: Command) -> None:
    parameters = inspect.signature(command).parameters
    if not parameters:
        return
    parser.add_argument("--config", action="config", help="A YAML file with options, as --print_config prints them.")
    documented = require("docstring_parser", extra="data").parse(command.__doc__).params
    told = {entry.arg_name: entry.description for entry in documented}
    by_place = [name for name, each in parameters.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    for name in by_place:
        parser.add_argument(name, type=str, help=told[name])
    flags = _flags(command)
    for name in flags:
        parser.add_argument(f"--{name}", action="store_true", help=told[name])
    parser.add_function_arguments(command, as_group=False, as_positional=False, skip={*by_place, *flags})


def _flags(command: Command) -> list[str]:
    return [name for name, each in inspect.signature(command).parameters.items() if each.annotation in (bool, "bool")]


def _plain_flags(words: Sequence[str], commands: Mapping[str, Any]) -> list[str]:
    """The same command line, with flags alone for those that are given a truth value."""
    flags = {f"--{flag}" for command in _functions(commands) for flag in _flags(command)}
    line = re.sub(
        r"(?<=\0)(--\w+)[=\0](true|false)(?=\0)",
        lambda found: found[0] if found[1] not in flags else found[1] if found[2] == "true" else "",
        "\0" + "\0".join(words) + "\0",
    )
    return line[1:-1].split("\0") if words else []


def _functions(commands: Mapping[str, Any]) -> list[Command]:
    nested = [_functions(command) if isinstance(command, dict) else [command] for command in commands.values()]
    return [command for each in nested for command in each]


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
    close = [match for pair in unknown for word in pair if word for match in get_close_matches(word, names, 1)]
    return " or ".join(f"'{match}'" for match in close)
