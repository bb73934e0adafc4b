"""Folders of exported models: the program, and all that it takes to use it and to check it without this package."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Subset

import tg_mlc
from tg_mlc._names import register
from tg_mlc._options import check_choice, check_flag
from tg_mlc.data import MultiLabelDataset
from tg_mlc.exporting.program import Format, Program, featurize, save_onnx, save_torch, trace
from tg_mlc.inference import Model, Query, load
from tg_mlc.inference.decisions import Calibration
from tg_mlc.inference.features import VIEW, Classifiers
from tg_mlc.inference.folder import check_folder
from tg_mlc.inference.network import versions
from tg_mlc.inputs.preprocessor import to_state
from tg_mlc.metrics import LabelSets
from tg_mlc.metrics.coverage import Per

#: The number of inputs with outputs that a reader can check itself by, and how far outputs may be apart.
NUM_GOLDEN, TOLERANCE = 20, 1e-4
FILES = {"torch-export": "network.pt2", "onnx": "network.onnx"}
# The sizes of batches that are compared before a folder is written.
_SIZES = (NUM_GOLDEN, 1, 2, 7)


def export(
    model: Model | str | os.PathLike[str],
    out: str | os.PathLike[str],
    format: Format = "torch-export",  # noqa: A002 (as of the command line)
    *,
    inputs: Any = None,
    base_scores: str = "export",
    given: bool = True,
    coverage: float | None = None,
    coverage_per: Per = "label",
) -> Path:
    """Writes a model as a program that runs without this package and PyTorch Geometric, once its probabilities were
    compared.

    .. code-block:: python

        tg_mlc.export("model", "exported", "onnx")

    The program takes tensors by name, of any number of samples, components and edges, and returns the probabilities
    :math:`(B, L)`. Base classifiers are in it, too. Beside it are ``model.json`` (labels, thresholds, names and shapes
    of tensors), ``featurize.json`` (how raw inputs become tensors), ``golden.json`` (20 inputs with outputs) and a
    ``README.md`` that explains them.

    Args:
        model (Model or str): The model, or its folder.
        out (str or PathLike): The new folder; an exported model that is there already is replaced as a whole.
        format (str, optional): :obj:`"torch-export"` or :obj:`"onnx"`. (default: :obj:`"torch-export"`)
        inputs (Any, optional): Raw inputs, or samples, to compare outputs by; needed for models whose kind of input
            makes up none. (default: :obj:`None`)
        base_scores (str, optional): :obj:`"input"` takes the scores of base classifiers as a tensor in place of
            exporting them. (default: :obj:`"export"`)
        given (bool, optional): If set to :obj:`False`, leaves out the input of labels that are known, and what takes
            it. (default: :obj:`True`)
        coverage, coverage_per (optional): As of :meth:`tg_mlc.inference.Model.predict`; the thresholds of these label
            sets stand among those of metrics. (default: :obj:`None`)

    Raises:
        ValueError: If a part cannot be exported, which the message names, the outputs differ, or no samples allow to
            promise the coverage.
        ImportError: If a package for ONNX is not installed (extra ``export``).
    """
    check_choice("format", format, get_args(Format))
    check_choice("base_scores", base_scores, ("export", "input"))
    check_flag("given", given)
    folder = check_folder(out)
    if folder.exists() and any(folder.iterdir()) and not (folder / "golden.json").exists():
        raise ValueError(
            f"Expected 'out' to be a new folder, or an exported model (got '{folder}', with other files)"
        )
    model = load(model) if isinstance(model, (str, os.PathLike)) else model
    promise = [] if coverage is None else [Query(coverage=coverage, coverage_per=coverage_per)]
    for each in promise:  # refused before anything that takes long
        model.thresholds(coverage=each.coverage, coverage_per=each.coverage_per)
    raw = _examples(model) if inputs is None else inputs
    model.to("cpu")
    tensors = featurize(model, raw, base_scores=base_scores)
    network = Program(model, list(tensors)).eval()
    network.takes_given = network.takes_given and given
    known = tensors["given"] if network.takes_given else None
    if known is not None:  # One label of every second sample, alternately present and absent.
        rows = torch.arange(1, len(known), 2)
        known[rows, rows // 2 % known.size(1)] = (rows // 2 % 2).float()
    program = trace(network, tensors)

    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        path = unfinished / FILES[format]
        run = (
            save_torch(program, path)
            if format == "torch-export"
            else save_onnx(program, path, network.names)
        )
        probability = _compared(model, raw, known, run, network.names, base_scores)
        taken = {name: tensors[name] for name in network.names}
        queries = [*(Query(metric=metric) for metric in model.decision.metrics), *promise]
        rows_of = raw.to_dict("records") if hasattr(raw, "iloc") else raw
        golden = {
            "raw": rows_of if isinstance(rows_of, list | np.ndarray) else None,
            "inputs": taken,
            "probability": probability,
            "decision": {
                str(each.decides): _decided(model, probability, each, known) for each in queries
            },
        }
        about = _about(model, taken, format, promise)
        contents = {
            "model.json": about,
            "featurize.json": _featurizer(model),
            "golden.json": golden,
        }
        for name, content in contents.items():
            (unfinished / name).write_text(_as_json(content), encoding="utf-8")
        (unfinished / "README.md").write_text(_readme(about, path.name), encoding="utf-8")
        unfinished.chmod(0o755)
        old = unfinished.with_name(f"{unfinished.name}-old")
        if folder.exists():
            folder.replace(old)
        unfinished.replace(folder)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


register("method", export)


def _examples(model: Model) -> Any:
    """Raw inputs that the model's kind of input makes up."""
    if model.kind is None:
        first = model.features.steps[0] if model.features.steps else None
        raise ValueError(
            f"Expected 'inputs', {NUM_GOLDEN} raw inputs or samples to compare outputs by (got None for a model with "
            f"the preprocessor {first})"
        )
    return model.kind.examples(NUM_GOLDEN)


def _compared(
    model: Model, raw: Any, given: Tensor | None, run: Any, names: list[str], base_scores: str
) -> np.ndarray:
    """The probabilities of a program, which are those of the model for batches of several sizes."""
    expected = model.probabilities(raw, given=given)
    found = np.empty_like(expected)
    for size in _SIZES:
        for start in range(0, len(expected) if size in (1, len(expected)) else 1, size):
            some = slice(start, min(start + size, len(expected)))
            part = _rows(raw, some)
            known = None if given is None else given[some]
            tensors = featurize(model, part, known, base_scores)
            with torch.no_grad():
                found[some] = run(*(tensors[name] for name in names)).numpy()
            apart = float(np.abs(found[some] - expected[some]).max(initial=0.0))
            if not apart <= TOLERANCE:
                raise ValueError(
                    f"Expected the exported program to give the probabilities of the model to {TOLERANCE:g} (got "
                    f"{apart:g} apart in rows {some.start} to {some.stop}); please report this model"
                )
    return found


def _decided(model: Model, probability: np.ndarray, query: Query, known: Tensor | None) -> Any:
    """Decisions 0 and 1; of a coverage, none for inputs with labels that are given, for which it would not hold."""
    if known is None or query.coverage is None:
        return model.decide(probability, replace(query, given=known)).astype(int)
    rows = zip(
        model.decide(probability, query).astype(int).tolist(), known.isnan().all(dim=1), strict=True
    )
    return [row if holds else None for row, holds in rows]


def _rows(raw: Any, some: slice) -> Any:
    """Some of raw inputs, or of samples."""
    if hasattr(raw, "shape") or isinstance(raw, (list, tuple, MultiLabelDataset)):
        return getattr(raw, "iloc", raw)[some]
    return Subset(raw, range(some.start, some.stop))


def _about(
    model: Model,
    tensors: Mapping[str, Tensor],
    format: str,  # noqa: A002
    promise: Sequence[Query],
) -> dict[str, Any]:
    calibration = model.stage(Calibration)
    decisions: dict[str, Any] = {}
    for metric, tuner in model.decision.tuners.items():
        if isinstance(tuner, LabelSets):
            decisions[metric] = {"label_sets": tuner.state_dict()}
        else:
            decisions[metric] = {"thresholds": model.thresholds(metric)}
    for each in promise:
        thresholds = model.thresholds(coverage=each.coverage, coverage_per=each.coverage_per)
        told = {"coverage": each.coverage, "per": each.coverage_per}
        decisions[str(each.decides)] = {"thresholds": thresholds, **told}
    described = {}
    for name, tensor in tensors.items():
        rows = _ROWS.get(name, "samples" if name.startswith("features_") else "rows")
        sizes: list[Any] = list(tensor.shape)
        sizes[int(name.endswith("edge_index"))] = rows
        meaning = _MEANINGS.get(
            name, "features of base classifiers" if name.startswith("features_") else ""
        )
        described[name] = {
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "shape": sizes,
            "meaning": meaning,
        }
    return {
        "format": format,
        "label_names": model.label_names,
        "inputs": described,
        "outputs": {
            "probability": {"dtype": "float32", "shape": ["samples", len(model.label_names)]}
        },
        "decisions": decisions,
        "calibration": {} if calibration is None else calibration.methods,
        "versions": {"tg_mlc": tg_mlc.__version__, **versions()},
    }


def _featurizer(model: Model) -> dict[str, Any]:
    """The steps from raw inputs to tensors, with what each has learned."""

    def described(part: Any, state: Any) -> dict[str, Any]:
        return {"does": (inspect.getdoc(type(part)) or "").split("\n\n")[0], "state": state}

    steps = [
        {"name": type(step).__name__, **described(step, to_state(step)["state"])}
        for step in model.features.steps
    ]
    stacking = model.stage(Classifiers)
    if stacking is None:
        return {"steps": steps}
    features = stacking.features
    views = {
        VIEW.format(name): described(view, view.state_dict())
        for name, view in features.views.items()
    }
    return {"steps": steps, "views": views, "x_is_view": features.scaling}


def _as_json(content: Any) -> str:
    """Lists in place of tensors, null in place of NaN, and strings in place of infinite numbers."""
    text = json.dumps(content, default=lambda value: getattr(value, "tolist", lambda: None)())
    plain = json.loads(text, parse_constant=lambda name: None if name == "NaN" else name)
    return json.dumps(plain, ensure_ascii=False, allow_nan=False)


_ROWS = {"edge_index": "edges", "edge_attr": "edges", "ptr": "samples + 1", "given": "samples"}
_MEANINGS = {
    "ptr": "where the rows of every sample begin and end, from 0",
    "edge_index": "sources in row 0 and targets in row 1, by places in x",
    "edge_attr": "categories of every edge",
    "given": "labels that are known: 0, 1, or NaN for unknown",
    "base_scores": "scores of base classifiers",
    "weight": "the weight of every word",
    "x": "what every component is: words, letters, atoms, or vectors",
}


def _readme(about: Mapping[str, Any], program: str) -> str:
    rows = "\n".join(
        f"| `{name}` | {each['dtype']} | {' x '.join(map(str, each['shape']))} | {each['meaning']} |"
        for name, each in about["inputs"].items()
    )
    return _README.format(
        program=program,
        rows=rows,
        num_labels=len(about["label_names"]),
        run=_RUN[about["format"]],
        tolerance=TOLERANCE,
        num_golden=NUM_GOLDEN,
        calibrated="" if about["calibration"] else "not ",
    )


_RUN = {
    "torch-export": """import torch
network = torch.export.load("network.pt2").module()
dtypes = {name: getattr(torch, entry["dtype"]) for name, entry in about["inputs"].items()}
tensors = {name: torch.tensor(number(golden["inputs"][name]), dtype=dtypes[name]) for name in about["inputs"]}
with torch.no_grad():
    probability = network(*tensors.values()).tolist()""",
    "onnx": """import numpy as np
import onnxruntime
session = onnxruntime.InferenceSession("network.onnx")
dtypes = {name: entry["dtype"] for name, entry in about["inputs"].items()}
tensors = {name: np.array(number(golden["inputs"][name]), dtype=dtypes[name]) for name in about["inputs"]}
probability = session.run(["probability"], tensors)[0].tolist()""",
}
_README = """# An exported model of tg_mlc

`{program}` computes the probabilities of {num_labels} labels. It needs neither tg_mlc nor PyTorch Geometric.

| input, in this order | type | shape | meaning |
|---|---|---|---|
{rows}

A shape by name may be of any size. All rows of a sample stand together, samples one after another. Probabilities are
{calibrated}calibrated for each label (`calibration` of `model.json` counts the functions), within the program.

- `model.json`: names of labels in the order of columns, types and shapes, and how to decide for each metric. Under
  `thresholds`, a label applies if its probability is at least its threshold. Under `label_sets`, take the set with the
  highest value `sum of log(p / (1 - p)) of its labels + prior * log(count)`, with `p` cut to 0.0001 and 0.9999; for
  `f1_samples`, the set with the highest expected F1, where these values are the logarithms of what sets weigh. Label
  sets by thresholds with a `coverage` hold that share of what applies, of each label or of the labels of a sample, in
  expectation over new samples from the source of those that thresholds were taken from; not if labels are given.
- `featurize.json`: how raw inputs become tensors, step by step, with all that was learned (vocabularies, weights,
  scales). In Python, `tg_mlc.exporting.program.featurize` does it.
- `golden.json`: {num_golden} inputs, as raw inputs and as tensors (null is NaN), with probabilities and decisions (null
  where labels are given that a coverage would not hold for).
  Whoever runs this model in another language is right if probabilities agree to {tolerance:g}:

```python
import json
about, golden = (json.load(open(name, encoding="utf-8")) for name in ("model.json", "golden.json"))


def number(value):
    return [number(item) for item in value] if isinstance(value, list) else float("nan") if value is None else value


{run}
apart = max(abs(a - b) for x, y in zip(probability, golden["probability"]) for a, b in zip(x, y))
assert apart < {tolerance:g}, apart
print("the same probabilities, to", apart)
```
"""
