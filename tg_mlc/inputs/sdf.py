"""SDF files of molecules: a column of their structures as SMILES, and their properties."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tg_mlc._files import read_unpacked
from tg_mlc._optional import require
from tg_mlc.inputs.smiles import why_refused

STRUCTURE = "structure"  #: the column of molecules
_END = "M  END"
_PROPERTY = re.compile(r"^>.*<(.+?)>.*\n((?:(?!>.*<.+>).+\n?)*)", re.MULTILINE)


def is_sdf(path: str | Path) -> bool:
    """Tells whether a file is an SDF by its name, such as ``drugs.sdf.gz``."""
    return ".sdf" in map(str.lower, Path(path).suffixes)


def read_sdf_cells(path: Path) -> Any:
    """Reads the molecules of an SDF as a data frame with a row for each record.

    RDKit takes hydrogens off, finds stereo centres in coordinates, and writes canonical SMILES. The
    cell of a record that it cannot read says the number of the record and the reason, which is no
    SMILES, so that the row is refused later.
    """
    content = read_unpacked(path)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = content.decode("latin1")
    records = re.split(r"^\$\$\$\$.*\n?", text.replace("\r\n", "\n"), flags=re.MULTILINE)
    rows = [_cells(record, number) for number, record in enumerate(records, 1) if record.strip()]
    names = dict.fromkeys(name for row in rows for name in row)
    columns = list(names) or [STRUCTURE]
    pandas = require("pandas", extra="molecules")
    return pandas.DataFrame(rows, columns=columns, dtype=object).fillna("")


def _cells(record: str, number: int) -> dict[str, str]:
    block, _, rest = record.partition(_END)
    properties = {match[1]: match[2].strip() for match in _PROPERTY.finditer(rest)}
    if STRUCTURE in properties:
        got = f"one in record {number}"
        raise ValueError(f"Expected no property '{STRUCTURE}' in an SDF (got {got}); rename it")
    return {STRUCTURE: _smiles(f"{block}{_END}\n", number), **properties}


def _smiles(block: str, number: int) -> str:
    chem = require("rdkit.Chem", extra="molecules")
    with require("rdkit.rdBase", extra="molecules").BlockLogs():
        mol = chem.MolFromMolBlock(block)
        if mol is not None:
            return str(chem.MolToSmiles(mol))
        reason = why_refused(chem.MolFromMolBlock(block, sanitize=False), "a valid molblock")
    return f"record {number}: {reason}"
