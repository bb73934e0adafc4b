"""Options of the command line for inputs, one for each kind of input.

Kinds are defined elsewhere, because the help of the command line must not import PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class InputOption:
    """An option of the command line for inputs of one kind.

    Args:
        name (str): The name of the option.
        column (str): Help of the option if its value is the name of a column of a file.
        single (str, optional): Help of the option if its value is an input.
            (default: :obj:`None`, no command takes a single input)
        several (bool, optional): Whether the value may name many columns. (default: :obj:`False`)
    """

    name: str
    column: str
    single: str | None = None
    several: bool = False


_FEATURES = (
    "The columns of inputs, separated by commas; by default, all but labels and names of rows."
)
#: The options by name. Custom kinds of inputs add their options (InputKind.command_option).
INPUT_OPTIONS = {
    option.name: option
    for option in (
        InputOption("smiles", "The column of SMILES.", "A molecule, as SMILES."),
        InputOption("inchi", "The column of InChI.", "A molecule, as InChI."),
        InputOption("text", "The column of texts.", "A text."),
        InputOption("dna", "The column of DNA.", "A DNA sequence."),
        InputOption("features", _FEATURES, several=True),
    )
}
