"""Files of results: in ``results/`` those that are tracked, replaced on request only, and in ``runs/`` one's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable
from pathlib import Path
from typing import Any

from benchmarks.environment import describe_environment

RESULTS = Path(__file__).parent / "results"
RUNS = Path(__file__).parent / "runs"


def name_of(*parts: str) -> str:
    """The name of a file of results, from what tells it apart."""
    return "-".join(part for part in parts if part)


def check_replacement(replace: bool, **reduced: object) -> None:
    """Refuses to replace tracked results with those of a reduced run.

    Raises:
        SystemExit: If an option that reduces a run is given.
    """
    given = [name for name, value in reduced.items() if value]
    if replace and given:
        options = ", ".join(f"--{name}" for name in given)
        raise SystemExit(f"Expected a whole run with --replace (got {options}); leave out one of them")


def check_kept(
    name: str, of: Callable[[dict[str, Any]], Collection[Hashable]], made: Collection[Hashable], *, replace: bool
) -> None:
    """Refuses to replace tracked results with a run that makes less of them.

    Args:
        name: The name of the file.
        of: What tells the rows and seeds of its content apart.
        made: The same of what the run makes.
        replace: Whether the run replaces tracked results.

    Raises:
        SystemExit: If the tracked file has rows or seeds that the run does not make.
    """
    path = RESULTS / f"{name}.json"
    if not replace or not path.exists():
        return
    lost = sorted(set(of(json.loads(path.read_text()))) - set(made), key=str)
    if lost:
        raise SystemExit(
            f"Expected --replace with all rows and seeds of '{path}' (got none for {len(lost)} of them, such as "
            f"{lost[0]}); run them too, or remove the file first"
        )


def write_results(name: str, content: dict[str, Any], *, replace: bool = False) -> Path:
    """Writes a file of results, and removes what was written of it before it was complete."""
    path = _write(_folder(replace) / f"{name}.json", content)
    path.with_suffix(".part").unlink(missing_ok=True)
    return path


def write_partial(name: str, content: dict[str, Any], *, replace: bool = False) -> None:
    """Writes what there is of a file of results so far."""
    _write(_folder(replace) / f"{name}.part", content)


def earlier_file(name: str, *, replace: bool = False) -> Path | None:
    """The file of a comparison that stopped early, else that of a complete one; :obj:`None` if there is neither.

    What replaces tracked results goes on from these; what does not, from one's own first.
    """
    folders = [RESULTS] if replace else [RUNS, RESULTS]
    files = [folders[0] / f"{name}.part", *(folder / f"{name}.json" for folder in folders)]
    return next((file for file in files if file.exists()), None)


def _folder(replace: bool) -> Path:
    return RESULTS if replace else RUNS


def _write(path: Path, content: dict[str, Any]) -> Path:
    """Writes a file as a whole, with the machine and the versions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.unfinished")
    # JSON has no NaN; what is undefined is null.
    text = json.dumps({"environment": describe_environment(), **content}, indent=1, allow_nan=False)
    unfinished.write_text(text + "\n")
    unfinished.replace(path)
    return path
