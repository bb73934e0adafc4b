"""Files of results, with the machine, the versions, the command and the data that made them.

Tracked files lie in ``results/`` and are replaced on request only. New files lie in ``runs/``. A
file has a description and a list of runs; ``pandas.DataFrame(read(name)["runs"])`` makes it a
table. Results of time and memory have other lists.
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
OTHERS = "other_processors"  #: The key of other processors that made some of the runs.
PACKAGES = (
    *("torch", "torch-geometric", "torch-scatter", "torch-sparse", "rdkit"),
    *("scikit-learn", "lightning", "numba", "numpy", "triton"),
)
Result = dict[str, Any]
Run = dict[str, Any]


def describe_environment() -> Result:
    """The machine, the versions of Python and of libraries, and the command."""
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
    """The command of a process, without the data folder and the path of a model's folder.

    The paths differ between machines. A model's folder is recorded by its name.
    """
    out = list(words[1:])
    for index in [index for index, word in enumerate(out) if word == "--root"][::-1]:
        del out[index : index + 2]
    for index in [index for index, word in enumerate(out) if word == "--model"]:
        out[index + 1] = Path(out[index + 1]).name
    return shlex.join(["python", *(word for word in out if not word.startswith("--root="))])


def describe_dataset(name: str, dataset: MultiLabelDataset) -> Result:
    """The name, the sizes and a hash of the inputs and labels of a data set."""
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
    models = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def name_of(*parts: str) -> str:
    """The name of a file of results, from its distinguishing parts."""
    return "-".join(part for part in parts if part)


def names(prefix: str) -> list[str]:
    """The names of all tracked results with a prefix."""
    return sorted(path.stem for path in RESULTS.glob(f"{prefix}*.json"))


def read(name: str) -> Result:
    """The tracked results with this name.

    Raises:
        FileNotFoundError: If no tracked results have this name.
    """
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        cure = "run the benchmark that writes them with --replace, or remove the mark from the page"
        raise FileNotFoundError(f"Expected results of '{name}' (got no {path}); {cure}")
    return read_file(path)


def read_all(prefix: str) -> dict[str, Result]:
    """All tracked results with a prefix, by name without the prefix."""
    return {name.removeprefix(prefix): read(name) for name in names(prefix)}


def read_file(path: Path) -> Result:
    """The content of a file of results."""
    content: Result = json.loads(path.read_text())
    return content


def check_replacement(replace: bool, **reduced: object) -> None:
    """Refuses to replace tracked results with results of a reduced run.

    Raises:
        SystemExit: If an option that reduces a run is given.
    """
    limits = [f"--{name}" for name, value in reduced.items() if value]
    if replace and limits:
        raise SystemExit(
            f"Expected a whole run with --replace (got {', '.join(limits)}); drop one of them"
        )


def check_kept(
    name: str, identity: Callable[[Run], Hashable], made: Collection[Hashable], *, replace: bool
) -> None:
    """Refuses to replace tracked results with results that lack some of the tracked runs.

    Args:
        name: The name of the file.
        identity: Returns the identity of a run, such as its row and seed.
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
            f"Expected --replace with all rows and seeds of '{path}' ({len(lost)} of them would be "
            f"lost, such as {lost[0]}); run them too, or remove the file first"
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
    """Makes missing runs, prints each, and writes all. An interrupted comparison continues.

    Existing runs are kept if the versions and all entries that both descriptions have, except for
    seeds, are the same. They come from an interrupted comparison, or else from a complete file: the
    tracked file if ``replace`` is set, otherwise preferably the file in ``runs/``. If other
    processors made some of the runs, the names of these processors are recorded.

    Args:
        name: The name of the file.
        content: The description of all runs.
        calls: The calls for joblib, by the identity of their runs. Each returns a list of runs.
        identity: Returns the identity of a run, as in the keys of calls.
        show: Returns a run in one line.
        keeps: Whether an existing run need not be repeated.
        jobs: Number of simultaneous calls.
        replace: Whether to write among the tracked results.

    Raises:
        SystemExit: If tracked results have runs that are neither kept nor made.
    """
    folder, content = RESULTS if replace else RUNS, json.loads(json.dumps(content))
    partial = folder / f"{name}.part"
    sources = (partial, folder / f"{name}.json", RESULTS / f"{name}.json")
    path = next((path for path in sources if path.is_file()), None)
    runs: list[Run] = []
    if path is not None:
        existing = read_file(path)
        merged, changed = _merged(existing, content)
        if changed:
            print(f"All runs are repeated: '{path}' has other {', '.join(changed)}", flush=True)
        else:
            content, seeds = merged, content.get("seeds")
            reusable = (run for run in existing["runs"] if keeps(run))
            runs = [run for run in reusable if seeds is None or run["seed"] in seeds]
            processors = {*existing.get(OTHERS, ()), existing["environment"]["processor"]}
            if runs and processors - {_processor()}:
                content |= {OTHERS: sorted(processors - {_processor()})}
    present = set(map(identity, runs))
    check_kept(name, identity, present | calls.keys(), replace=replace)
    missing = [call for key, call in calls.items() if key not in present]
    for new_runs in Parallel(n_jobs=jobs, return_as="generator")(missing):
        runs += new_runs
        print("\n".join(map(show, new_runs)), flush=True)
        _write(partial, {**content, "runs": runs})
    path = write_results(name, {**content, "runs": runs}, replace=replace)
    print(f"Wrote {path}", flush=True)
    return path


def _merged(existing: Result, content: Result) -> tuple[Result, list[str]]:
    """The existing description updated by the new one, and the keys whose values differ."""
    merged = {key: _joined(existing.get(key), value) for key, value in content.items()}
    changed = [
        key
        for key, value in content.items()
        if key != "seeds" and _joined(value, existing.get(key)) != merged[key]
    ]
    same_versions = _released(existing.get("environment", {})) == _released(describe_environment())
    return merged, changed if same_versions else [*changed, "versions"]


def _released(environment: Result) -> Result:
    """The versions. A development version counts as its release."""
    versions = environment.get("versions", {})
    return {name: number and number.partition(".dev")[0] for name, number in versions.items()}


def _joined(first: Any, second: Any) -> Any:
    return {**first, **second} if isinstance(first, dict) and isinstance(second, dict) else second


def write_results(name: str, content: Result, *, replace: bool = False) -> Path:
    """Writes a file of results, and removes the file of an interrupted run."""
    path = _write((RESULTS if replace else RUNS) / f"{name}.json", content)
    path.with_suffix(".part").unlink(missing_ok=True)
    return path


def _write(path: Path, content: Result) -> Path:
    """Writes a file atomically, with the machine, the versions and the command."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.unfinished")
    # JSON has no NaN; undefined values are null.
    text = json.dumps({"environment": describe_environment(), **content}, indent=1, allow_nan=False)
    unfinished.write_text(text + "\n")
    unfinished.replace(path)
    return path
