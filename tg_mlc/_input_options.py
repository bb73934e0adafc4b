"""Options of the command line for inputs, one for each kind of input.

They are apart from the kinds, because the help of the command line must not import PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class InputOption:
    """An option of the command line for inputs of one kind.

    Args:
        name (str): Its name.
        column (str): Its help where it names the column of such inputs in a file.
        single (str, optional): Its help where it holds one such input.
            (default: :obj:`None`, no command takes one)
        several (bool, optional): Whether it names several columns, not one. (default: :obj:`False`)
    """

    name: str
    column: str
    single: str | None = None
    several: bool = False


_FEATURES = (
    "The columns of inputs, separated by commas; by default, all but labels and names of rows."
)
#: The options by name; a kind of input of one's own adds its own (InputKind.command_option).
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
