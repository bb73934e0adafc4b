"""Files of results, with the machine, the versions, the command and the data that made them.

Tracked ones lie in ``results/`` and are replaced on request only; one's own lie in ``runs/``. Each is a description and
a list of single runs, ``pandas.DataFrame(read(name)["runs"])``; results of time and memory have other lists.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
import sys
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from joblib import Parallel

import tg_mlc
from tg_mlc.data import MultiLabelDataset

RESULTS = Path(__file__).parent / "results"
RUNS = Path(__file__).parent / "runs"
OTHERS = "other_processors"
PACKAGES = (
    *("torch", "torch-geometric", "torch-scatter", "torch-sparse", "rdkit"),
    *("scikit-learn", "lightning", "numba", "numpy", "triton"),
)
Result = dict[str, Any]
Run = dict[str, Any]


def describe_environment() -> Result:
    """The machine, the versions of what ran on it, and the command."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "versions": {"tg_mlc": tg_mlc.__version__, **{name: _version(name) for name in PACKAGES}},
        "cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "command": command_of(sys.orig_argv),
    }


def command_of(words: Sequence[str]) -> str:
    """The command of a process, without the folder of its data, which is another one on each machine, and with the name
    alone of a model's folder.
    """
    told = list(words[1:])
    for place in [place for place, word in enumerate(told) if word == "--root"][::-1]:
        del told[place : place + 2]
    for place in [place for place, word in enumerate(told) if word == "--model"]:
        told[place + 1] = Path(told[place + 1]).name
    return shlex.join(["python", *(word for word in told if not word.startswith("--root="))])


def describe_dataset(name: str, dataset: MultiLabelDataset) -> Result:
    """The name and the sizes of a data set, and a hash of its inputs and labels."""
    molecules = dataset.smiles if "smiles" in dataset[0] else []
    digest = hashlib.sha256("\n".join([*dataset.label_names, *molecules]).encode())
    if not molecules:
        digest.update(dataset._data.x.numpy().tobytes())
    digest.update(dataset.y.numpy().tobytes())
    sizes = {"num_samples": len(dataset), "num_labels": dataset.num_labels}
    return {"name": name, **sizes, "sha256": digest.hexdigest()}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def name_of(*parts: str) -> str:
    """The name of a file of results, from what tells it apart."""
    return "-".join(part for part in parts if part)


def names(prefix: str) -> list[str]:
    """The names of all tracked results that begin with a prefix."""
    return sorted(path.stem for path in RESULTS.glob(f"{prefix}*.json"))


def read(name: str) -> Result:
    """The tracked results of a name.

    Raises:
        FileNotFoundError: If there are none.
    """
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        raise FileNotFoundError(
            f"Expected results of '{name}' (got no {path}); run the benchmark that writes them with --replace, or drop "
            f"the mark"
        )
    return read_file(path)


def read_all(prefix: str) -> dict[str, Result]:
    """All tracked results that begin with a prefix, by the rest of their names."""
    return {name.removeprefix(prefix): read(name) for name in names(prefix)}


def read_file(path: Path) -> Result:
    """The content of any file of results."""
    content: Result = json.loads(path.read_text())
    return content


def check_replacement(replace: bool, **reduced: object) -> None:
    """Refuses to replace tracked results with those of a reduced run.

    Raises:
        SystemExit: If an option that reduces a run is given.
    """
    given = [name for name, value in reduced.items() if value]
    if replace and given:
        options = ", ".join(f"--{name}" for name in given)
        raise SystemExit(
            f"Expected a whole run with --replace (got {options}); leave out one of them"
        )


def check_kept(
    name: str, identity: Callable[[Run], Hashable], made: Collection[Hashable], *, replace: bool
) -> None:
    """Refuses to replace tracked results with a run that makes less of them.

    Args:
        name: The name of the file.
        identity: Returns what identifies a run of the file: its row and seed.
        made: The identities of the runs that are made.
        replace: Whether tracked results are replaced.

    Raises:
        SystemExit: If the tracked file has runs that are not made.
    """
    path = RESULTS / f"{name}.json"
    if not replace or not path.exists():
        return
    lost = sorted({identity(run) for run in read_file(path)["runs"]} - set(made), key=str)
    if lost:
        raise SystemExit(
            f"Expected --replace with all rows and seeds of '{path}' (got none for {len(lost)} of them, such as "
            f"{lost[0]}); run them too, or remove the file first"
        )


def collect(
    name: str,
    content: Result,
    calls: Mapping[Hashable, Any],
    identity: Callable[[Run], Hashable],
    show: Callable[[Run], str],
    *,
    keeps: Callable[[Run], bool] = lambda run: True,
    jobs: int = 1,
    replace: bool = False,
) -> Path:
    """Makes the runs that are not there, prints each, and writes all; a comparison that stopped early goes on.

    Runs that are there are kept if their description (the versions, and all parts that both have but seeds) is the
    same: those of a comparison that stopped early, else of a complete one. A run that replaces tracked results goes on
    from these, any other first from one's own. The names of other processors, which may have made some, are kept, too.

    Args:
        name: The name of the file.
        content: The description of all runs.
        calls: The calls for joblib, by the identity of their runs; each returns a list of runs.
        identity: Returns the identity of a run, as in the keys of calls.
        show: A run in one line.
        keeps: Whether a run that is there need not be made again.
        jobs: How many calls run at a time.
        replace: Whether to write among the tracked results.

    Raises:
        SystemExit: If tracked results have runs that are neither kept nor made.
    """
    folder, content = RESULTS if replace else RUNS, json.loads(json.dumps(content))
    places = (folder / f"{name}.part", folder / f"{name}.json", RESULTS / f"{name}.json")
    path = next((path for path in places if path.is_file()), None)
    runs: list[Run] = []
    if path is not None:
        there = read_file(path)
        merged = {key: _joined(there.get(key), part) for key, part in content.items()}
        parts = {
            key: _joined(part, there.get(key)) for key, part in content.items() if key != "seeds"
        }
        other = [key for key, part in parts.items() if part != merged[key]]
        other += (
            []
            if _released(there.get("environment", {})) == _released(describe_environment())
            else ["versions"]
        )
        if other:
            print(f"All runs are made again: '{path}' has other {', '.join(other)}", flush=True)
        else:
            content, seeds = merged, content.get("seeds")
            runs = [
                run
                for run in there["runs"]
                if keeps(run) and (seeds is None or run["seed"] in seeds)
            ]
            before = {*there.get(OTHERS, ()), there["environment"]["processor"]} - {_processor()}
            content |= {OTHERS: sorted(before)} if runs and before else {}
    present = set(map(identity, runs))
    check_kept(name, identity, present | calls.keys(), replace=replace)
    missing = [call for key, call in calls.items() if key not in present]
    for done in Parallel(n_jobs=jobs, return_as="generator")(missing):
        runs += done
        print("\n".join(map(show, done)), flush=True)
        _write(folder / f"{name}.part", {**content, "runs": runs})
    path = write_results(name, {**content, "runs": runs}, replace=replace)
    print(f"Wrote {path}", flush=True)
    return path


def _released(environment: Result) -> Result:
    """The versions, where what led to a release counts as the release."""
    return {
        name: found and found.partition(".dev")[0]
        for name, found in environment.get("versions", {}).items()
    }


def _joined(first: Any, second: Any) -> Any:
    return {**first, **second} if isinstance(first, dict) and isinstance(second, dict) else second


def write_results(name: str, content: Result, *, replace: bool = False) -> Path:
    """Writes a file of results, and removes what was written of it before it was complete."""
    path = _write((RESULTS if replace else RUNS) / f"{name}.json", content)
    path.with_suffix(".part").unlink(missing_ok=True)
    return path


def _write(path: Path, content: Result) -> Path:
    """Writes a file as a whole, with the machine, the versions and the command."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.unfinished")
    # JSON has no NaN; what is undefined is null.
    text = json.dumps({"environment": describe_environment(), **content}, indent=1, allow_nan=False)
    unfinished.write_text(text + "\n")
    unfinished.replace(path)
    return path
