"""Tables of text in Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Cells = Sequence[Sequence[str]]  #: the header, then one list of cells per row

#: Characters that LaTeX reads as commands, and how it prints them.
_LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
}


def aligned_table(cells: Cells) -> str:
    """Returns a table whose columns are aligned by spaces."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)


def markdown_table(cells: Cells) -> str:
    """Returns a table in Markdown, with numbers aligned to the right."""
    header, *rows = ([cell.replace("|", r"\|") for cell in row] for row in cells)
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows))


def latex_table(cells: Cells) -> str:
    r"""Returns a :obj:`tabular` in LaTeX, with the rules of the package booktabs."""
    header, *rows = (" & ".join(map(latex, row)) + r" \\" for row in cells)
    columns = "l" + "r" * (len(cells[0]) - 1)
    begin, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
    return _lines([begin, r"\toprule", header, r"\midrule", *rows, r"\bottomrule", end])


def latex_float(tables: Iterable[Cells], caption: str) -> str:
    r"""Returns a :obj:`table` in LaTeX with a caption, and one :obj:`tabular` below the other."""
    tabulars = "\n\n\\medskip\n".join(map(latex_table, tables))
    head = [r"% Needs \usepackage{booktabs}.", r"\begin{table}", r"\centering"]
    return _lines([*head, rf"\caption{{{latex(caption)}}}", tabulars, r"\end{table}"])


def latex(text: str) -> str:
    """Returns a text in which LaTeX reads no character as a command."""
    return "".join(_LATEX.get(character, character) for character in text)


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines)
