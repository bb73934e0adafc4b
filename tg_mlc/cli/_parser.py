"""The parser of the command line, built from signatures and docstrings of functions."""

from __future__ import annotations

import inspect
import re
from argparse import RawDescriptionHelpFormatter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import is_dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any, get_type_hints

from tg_mlc._optional import require

_MISSING = "the following arguments are required: "
_CONFIG = "A YAML file of options, as --print_config prints it."


def parse(
    words: Sequence[str], commands: Mapping[str, Any], prog: str, description: str, version: str
) -> Callable[[], int]:
    """Returns the function that a command line names, with its arguments.

    Positional parameters are positional on the command line, too. Parameters of type ``bool`` are
    flags, and data classes are groups of options.

    Args:
        words (Sequence[str]): The command line.
        commands (Mapping): Functions by name, or mappings of them for subcommands.
        prog, description, version (str): The program's name, description and version.
    """
    parser = _parser_class()(prog=prog, description=description, version=version)
    _add_commands(parser, commands)
    joined, repeated = _joined(words, parser.command_of(words)._option_string_actions)
    values = parser.parse_args(joined)
    if repeated:
        parser.error(f"argument {repeated[0]}: expected once, as only the last would count")
    command: Any = commands
    while not callable(command):
        name = values.subcommand
        command, values = command[name], values[name]

    def arguments(source: Callable[..., Any]) -> dict[str, Any]:
        return {name: values[name] for name in _parameters(source)}

    groups = {name: source(**arguments(source)) for name, source in _groups(command).items()}
    return partial(command, **groups, **arguments(command))


def _joined(words: Sequence[str], options: Collection[str]) -> tuple[list[str], list[str]]:
    """Returns a command line in which later values of an option are added to its first value, and
    the options that are repeated although they take one value.
    """
    joined, used, repeated = list[str](), set[str](), list[str]()
    for word in words:
        name, sign, value = word.partition("=")
        if name in used and f"{name}+" in options:
            word = f"{name}+{sign}{value}"  # noqa: PLW2901
        elif name in used and name != "--config":
            repeated.append(name)
        used |= {name} if word.startswith("--") else set()
        joined.append(word)
    return joined, repeated


def _add_commands(parser: Any, commands: Mapping[str, Any]) -> None:
    subcommands = parser.add_subcommands(required=True)
    for name, command in commands.items():
        is_command = callable(command)
        text = inspect.cleandoc(command.__doc__) if is_command else f"{', '.join(command)}."
        body, _, examples = text.partition("\n\nExamples:\n")
        epilog = f"Examples:\n{examples}" if examples else None
        child = type(parser)(description=body.partition("\n\nArgs:")[0], epilog=epilog)
        subcommands.add_subcommand(name, child, help=text.splitlines()[0])
        parser.children[name] = child
        if not is_command:
            _add_commands(child, command)
            continue
        sources = [command, *_groups(command).values()]
        if any(map(_parameters, sources)):
            child.add_argument("--config", action="config", metavar="FILE", help=_CONFIG)
        for source in sources:
            _add_parameters(child, source)


def _add_parameters(parser: Any, source: Callable[..., Any]) -> None:
    """Adds the parameters of a command, or a group with the fields of a data class."""
    parse_docstring = require("docstring_parser", extra="data").parse
    classes = reversed(source.__mro__) if inspect.isclass(source) else [source]
    params = [entry for part in classes for entry in parse_docstring(part.__doc__ or "").params]
    texts = {entry.arg_name: entry for entry in params}
    if inspect.isclass(source):
        parser = parser.add_argument_group(inspect.cleandoc(source.__doc__ or "").split(".")[0])
    hints = get_type_hints(source.__init__ if inspect.isclass(source) else source)
    for name, parameter in _parameters(source).items():
        text, default = texts[name].description, parameter.default
        metavar = texts[name].type_name or name.upper()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            parser.add_argument(name, type=str, metavar=metavar, help=text)
        elif hints[name] is bool:
            parser.add_argument(f"--{name}", action="store_true", help=text)
        else:
            is_required = default is parameter.empty
            options = {"required": True} if is_required else {"default": default}
            text += "" if is_required or default is None else f" (default: {default})"
            parser.add_argument(
                f"--{name}", type=hints[name], metavar=metavar, help=text, **options
            )


def _groups(command: Callable[..., Any]) -> dict[str, Any]:
    """Returns a command's data classes of options, with fields that kinds of input declare."""
    groups = dict[str, Any]()
    for name, hint in ({} if inspect.isclass(command) else get_type_hints(command)).items():
        source = hint.declared() if hasattr(hint, "declared") else hint
        groups |= {name: source} if is_dataclass(source) else {}
    return groups


def _parameters(source: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    groups, parameters = _groups(source), inspect.signature(source).parameters
    return {name: parameters[name] for name in parameters if name not in groups}


class _Help(RawDescriptionHelpFormatter):
    def _format_action_invocation(self, action: Any) -> str:
        # The parser adds options such as "--labels+", which append to a list; help skips them.
        action.option_strings = [name for name in action.option_strings if name[-1] != "+"]
        return super()._format_action_invocation(action)


def _parser_class() -> Any:
    class Parser(require("jsonargparse", extra="data").ArgumentParser):  # type: ignore[misc]
        """A parser whose errors show the usage of the command and similar names."""

        def __init__(self, **options: Any) -> None:
            super().__init__(allow_abbrev=False, formatter_class=_Help, **options)
            self.children: dict[str, Parser] = {}

        def error(self, message: str, ex: Exception | None = None) -> None:
            if message.startswith(_MISSING):
                *names, _ = message.removeprefix(_MISSING).split(",")[0].split(".")
                if names:
                    self._child(names).error(message.replace(".".join([*names, ""]), "--"), ex)
            parser = getattr(ex, "subcommand_parser", None) or self
            similar = _similar(message, [*parser._option_string_actions, *parser.children])
            super().error(f"{message}{f' (did you mean {similar}?)' if similar else ''}", ex)

        def command_of(self, words: Sequence[str]) -> Parser:
            """Returns the parser of the command at the start of a command line."""
            child = self.children.get(words[0]) if words else None
            return self if child is None else child.command_of(words[1:])

        def _child(self, names: Sequence[str]) -> Parser:
            return self.children[names[0]]._child(names[1:]) if names else self

    return Parser


def _similar(message: str, names: Sequence[str]) -> str:
    """Returns a hint with names similar to the unknown names in a message."""
    if not message.startswith(("unrecognized arguments", "argument subcommand")):
        return ""
    unknown = re.findall(r"invalid choice: '([^']*)'|(?<!\S)(--[^\s=]+)", message)
    words = [word for pair in unknown for word in pair if word]
    matches = [match for word in words for match in get_close_matches(word, names, 1)]
    return " or ".join(f"'{match}'" for match in matches)
