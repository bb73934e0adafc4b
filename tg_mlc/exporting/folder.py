"""Folders of exported models: the program, and the files to use and check it without tg_mlc."""

from __future__ import annotations

import inspect
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Subset
from torch_geometric.data.data import BaseData
from torch_geometric.utils import smiles as pyg_smiles

from tg_mlc._names import register, shorten
from tg_mlc._options import check_choice, check_flag
from tg_mlc._warnings import warn
from tg_mlc.data import MultiLabelDataset
from tg_mlc.exporting import featurize as alone
from tg_mlc.exporting.bundle import bundle
from tg_mlc.exporting.program import Format, Program, featurize, save_onnx, save_torch, trace
from tg_mlc.inference import Model, Query, load
from tg_mlc.inference.decisions import Calibration
from tg_mlc.inference.features import VIEW, Classifiers
from tg_mlc.inference.folder import check_folder
from tg_mlc.inference.network import versions
from tg_mlc.inputs import Molecules
from tg_mlc.inputs.preprocessor import to_state
from tg_mlc.metrics import LabelSets
from tg_mlc.metrics.coverage import Per

NUM_GOLDEN = 20  #: The number of inputs with expected outputs, for checks of a program.
TOLERANCE = 1e-4  #: The largest allowed difference of probabilities.
FILES = {"torch-export": "network.pt2", "onnx": "network.onnx"}
_SIZES = (NUM_GOLDEN, 1, 2, 7)  # The batch sizes for which probabilities are compared.


def export(
    model: Model | str | os.PathLike[str],
    out: str | os.PathLike[str],
    format: Format = "torch-export",  # noqa: A002 (the name of the command-line option)
    *,
    inputs: Any = None,
    base_scores: str = "export",
    given: bool = True,
    coverage: float | None = None,
    coverage_per: Per = "label",
) -> Path:
    """Writes a model as a program that runs without this package and PyTorch Geometric, after a
    comparison of its probabilities with those of the model.

    .. code-block:: python

        tg_mlc.export("model", "exported", "onnx")

    The program takes named tensors with any number of samples, components and edges, and returns
    probabilities :math:`(B, L)`. It includes the base classifiers. The folder also holds
    ``model.json`` (labels, thresholds, names and shapes of tensors), ``featurize.json`` (how raw
    inputs become tensors), ``golden.json`` (20 inputs with outputs), a ``README.md``, and
    ``featurize.py``, which makes the tensors of raw inputs with NumPy, and RDKit for molecules. It
    is left out, with a warning, if a preprocessor of your own makes the samples.

    Args:
        model (Model or str): The model, or its folder.
        out (str or PathLike): The new folder; an earlier exported model is replaced as a whole.
        format (str, optional): :obj:`"torch-export"` or :obj:`"onnx"`.
            (default: :obj:`"torch-export"`)
        inputs (Any, optional): Raw inputs or samples for the comparison; needed if the kind of
            input has no examples. (default: :obj:`None`)
        base_scores (str, optional): :obj:`"input"` takes the scores of base classifiers as a tensor
            in place of exporting them. (default: :obj:`"export"`)
        given (bool, optional): If set to :obj:`False`, the program has no input for known labels.
            (default: :obj:`True`)
        coverage, coverage_per (optional): As in :meth:`tg_mlc.inference.Model.predict`; adds the
            thresholds for the coverage to those for metrics. (default: :obj:`None`)

    Raises:
        ValueError: If a part cannot be exported (the message names it), the outputs differ, or the
            model cannot promise the coverage.
        ImportError: If a package for ONNX is not installed (extra ``export``).
    """
    check_choice("format", format, get_args(Format))
    check_choice("base_scores", base_scores, ("export", "input"))
    check_flag("given", given)
    folder = check_folder(out)
    if folder.exists() and any(folder.iterdir()) and not (folder / "golden.json").exists():
        got = f"(got '{folder}', with other files)"
        raise ValueError(f"Expected 'out' to be a new folder, or an exported model {got}")
    model = load(model) if isinstance(model, (str, os.PathLike)) else model
    queries = [Query(metric=metric) for metric in model.decision.metrics]
    if coverage is not None:
        # A coverage that the model cannot promise raises an error here, before slow steps.
        model.thresholds(coverage=coverage, coverage_per=coverage_per)
        queries.append(Query(coverage=coverage, coverage_per=coverage_per))
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
    options: dict[str, Any] = {"prefix": f".{folder.name}-", "ignore_cleanup_errors": True}
    with tempfile.TemporaryDirectory(dir=folder.parent, **options) as temporary:
        unfinished = Path(temporary) / "new"
        unfinished.mkdir()
        path = unfinished / FILES[format]
        if format == "onnx":
            run = save_onnx(program, path, network.names)
        else:
            run = save_torch(program, path)
        probability = _run_and_compare(model, raw, known, run, network.names, base_scores)
        inputs_by_name = {name: tensors[name] for name in network.names}
        golden = {
            "raw": _as_records(raw),
            "inputs": inputs_by_name,
            "probability": probability,
            "decision": {str(q.decides): _decide(model, probability, q, known) for q in queries},
        }
        description = _describe_model(model, inputs_by_name, format, queries)
        contents = {"model": description, "featurize": _describe_features(model), "golden": golden}
        texts = {f"{name}.json": _as_json(content) for name, content in contents.items()}
        reason = _why_not_alone(texts)
        texts["README.md"] = _readme(description, path.name, reason)
        if reason is None:
            texts["featurize.py"] = bundle(alone.__name__)
            texts["requirements.txt"] = "\n".join(_requirements(model)) + "\n"
        else:
            warn(f"The folder has no 'featurize.py', because {reason}")
        for name, text in texts.items():
            (unfinished / name).write_text(text, encoding="utf-8")
        if folder.exists():
            folder.replace(Path(temporary) / "old")
        unfinished.replace(folder)
    return folder


register("method", export)


def _examples(model: Model) -> Any:
    """Returns examples of raw inputs from the model's kind of input."""
    if model.kind is None:
        first = model.features.steps[0] if model.features.steps else None
        raise ValueError(
            f"Expected 'inputs', {NUM_GOLDEN} raw inputs or samples to compare outputs by (got "
            f"None for a model with the preprocessor {shorten(first)})"
        )
    return model.kind.examples(NUM_GOLDEN)


def _as_records(raw: Any) -> Any:
    """Returns raw inputs as rows for JSON; :obj:`None` for samples."""
    if hasattr(raw, "iloc"):
        return raw.to_dict("records")
    raw = raw.toarray() if hasattr(raw, "toarray") else raw
    is_plain = isinstance(raw, (list, np.ndarray)) and not isinstance(raw[0], BaseData)
    return raw if is_plain else None


def _why_not_alone(texts: Mapping[str, str]) -> str | None:
    """Returns why tensors cannot be made without this package; :obj:`None` if they can.

    Raises:
        ValueError: If the tensors of the golden inputs are others.
    """
    model, learned, golden = (json.loads(text) for text in texts.values())
    about = {**model, **learned}
    if (reason := alone.why_not(about)) is None and golden["raw"] is None:
        reason = "its golden inputs are samples; pass raw inputs as 'inputs'"
    if reason is None:
        tensors = alone.featurize(about, golden["raw"])
        lacking = about["inputs"].keys() - tensors.keys() - {"base_scores"}
        reason = f"it has no rule for the tensors {sorted(lacking)}" if lacking else None
        alone.compare(tensors, golden["inputs"])
    return reason


def _requirements(model: Model) -> list[str]:
    """Returns the packages that make tensors of raw inputs, with versions."""
    packages = ["numpy", "rdkit"] if isinstance(model.kind, Molecules) else ["numpy"]
    return [f"{package}=={versions()[package]}" for package in packages]


def _run_and_compare(
    model: Model, raw: Any, given: Tensor | None, run: Any, names: list[str], base_scores: str
) -> np.ndarray:
    """Returns a program's probabilities, compared with the model's for several batch sizes."""
    expected = model.probabilities(raw, given=given)
    probability = np.empty_like(expected)
    for size in _SIZES:
        stop = len(expected) if size in (1, len(expected)) else 1  # Other sizes: one batch.
        for start in range(0, stop, size):
            rows = slice(start, min(start + size, len(expected)))
            known = None if given is None else given[rows]
            tensors = featurize(model, _select_rows(raw, rows), known, base_scores)
            with torch.no_grad():
                probability[rows] = run(*(tensors[name] for name in names)).numpy()
            error = float(np.abs(probability[rows] - expected[rows]).max(initial=0.0))
            if not error <= TOLERANCE:
                got = f"(got {error:g} apart in rows {rows.start} to {rows.stop})"
                raise ValueError(
                    f"Expected the exported program to give the probabilities of the model to "
                    f"{TOLERANCE:g} {got}; please report this model"
                )
    return probability


def _decide(model: Model, probability: np.ndarray, query: Query, known: Tensor | None) -> Any:
    """Returns decisions 0 and 1. With a coverage, rows with given labels have no decisions, because
    the coverage would not hold.
    """
    if known is None or query.coverage is None:
        return model.decide(probability, replace(query, given=known)).astype(int)
    decisions = model.decide(probability, query).astype(int).tolist()
    pairs = zip(decisions, known.isnan().all(dim=1), strict=True)
    return [row if has_no_given else None for row, has_no_given in pairs]


def _select_rows(raw: Any, rows: slice) -> Any:
    """Returns some rows of raw inputs or samples."""
    if hasattr(raw, "shape") or isinstance(raw, (list, tuple, MultiLabelDataset)):
        return getattr(raw, "iloc", raw)[rows]
    return Subset(raw, range(rows.start, rows.stop))


def _describe_model(
    model: Model,
    tensors: Mapping[str, Tensor],
    format: str,  # noqa: A002
    queries: Sequence[Query],
) -> dict[str, Any]:
    calibration, tuners = model.stage(Calibration), model.decision.tuners
    decisions: dict[str, Any] = {}
    for query in queries:
        tuner = tuners.get(query.metric)
        if query.coverage is not None:
            coverage, per = query.coverage, query.coverage_per
            thresholds = model.thresholds(coverage=coverage, coverage_per=per)
            entry = {"thresholds": thresholds, "coverage": coverage, "per": per}
            decisions[str(query.decides)] = entry
        elif isinstance(tuner, LabelSets):
            decisions[query.metric] = {"label_sets": tuner.state_dict()}
        elif tuner is not None:
            decisions[query.metric] = {"thresholds": model.thresholds(query.metric)}
    inputs = {}
    for name, tensor in tensors.items():
        dim_name, meaning = _INPUTS.get(name, ("rows", ""))
        if name.startswith("features_"):
            dim_name, meaning = "samples", "features of base classifiers"
        shape: list[Any] = list(tensor.shape)
        shape[int(name.endswith("edge_index"))] = dim_name
        dtype = str(tensor.dtype).removeprefix("torch.")
        inputs[name] = {"dtype": dtype, "shape": shape, "meaning": meaning}
    output = {"dtype": "float32", "shape": ["samples", len(model.label_names)]}
    return {
        "format": format,
        "label_names": model.label_names,
        "inputs": inputs,
        "outputs": {"probability": output},
        "decisions": decisions,
        "calibration": {} if calibration is None else calibration.methods,
        "versions": versions(),
    }


def _describe_features(model: Model) -> dict[str, Any]:
    """Returns the steps from raw inputs to tensors, with their learned states."""

    def describe(part: Any, state: Any) -> dict[str, Any]:
        return {"does": (inspect.getdoc(type(part)) or "").split("\n\n")[0], "state": state}

    steps = []
    for step in model.features.steps:
        steps.append({"name": type(step).__name__, **describe(step, to_state(step)["state"])})
    columns = model.facts.get("inputs", {}).get("columns", ())
    columns = columns or (model.kind.training_columns() if model.kind is not None else ())
    described: dict[str, Any] = {"steps": steps, "columns": list(columns)}
    if isinstance(model.kind, Molecules):
        described |= {"atoms": pyg_smiles.x_map, "bonds": pyg_smiles.e_map}
    stacking = model.stage(Classifiers)
    if stacking is None:
        return described
    views = stacking.features.views.items()
    states = {VIEW.format(name): describe(view, view.state_dict()) for name, view in views}
    return {**described, "views": states, "x_is_view": stacking.features.scaling}


def _as_json(content: Any) -> str:
    """Returns JSON: tensors become lists, NaN becomes null, and infinite numbers strings."""
    text = json.dumps(content, default=lambda value: getattr(value, "tolist", lambda: None)())
    without_nan = json.loads(text, parse_constant=lambda name: None if name == "NaN" else name)
    return json.dumps(without_nan, ensure_ascii=False, allow_nan=False)


#: First dimension, and meaning of the values, by name of the tensor.
_INPUTS = {
    "ptr": ("samples + 1", "where the rows of every sample begin and end, from 0"),
    "edge_index": ("edges", "sources in row 0 and targets in row 1, by row indices of x"),
    "edge_attr": ("edges", "categories of every edge"),
    "given": ("samples", "labels that are known: 0, 1, or NaN for unknown"),
    "base_scores": ("rows", "scores of base classifiers"),
    "weight": ("rows", "the weight of every word"),
    "x": ("rows", "what every component is: words, letters, atoms, or vectors"),
}


def _readme(about: Mapping[str, Any], program: str, reason: str | None) -> str:
    rows = []
    for name, entry in about["inputs"].items():
        shape = " x ".join(map(str, entry["shape"]))
        rows.append(f"| `{name}` | {entry['dtype']} | {shape} | {entry['meaning']} |")
    return _README.format(
        program=program,
        rows="\n".join(rows),
        num_labels=len(about["label_names"]),
        featurize=_FEATURIZE if reason is None else f"there is no `featurize.py`, because {reason}",
        run=_RUN[about["format"]],
        tolerance=TOLERANCE,
        num_golden=NUM_GOLDEN,
        calibrated="" if about["calibration"] else "not ",
    )


_FEATURIZE = """`featurize.py` does it with the packages of `requirements.txt`, and needs
  neither this package nor PyTorch. `python featurize.py --check` compares the golden inputs, and
  `python featurize.py rows.csv tensors.npz` writes the tensors of a table, or of a list in JSON"""
_RUN = {
    "torch-export": """import torch
network = torch.export.load("network.pt2").module()
dtypes = {name: getattr(torch, entry["dtype"]) for name, entry in about["inputs"].items()}
values = {name: number(golden["inputs"][name]) for name in about["inputs"]}
tensors = {name: torch.tensor(value, dtype=dtypes[name]) for name, value in values.items()}
with torch.no_grad():
    probability = network(*tensors.values()).tolist()""",
    "onnx": """import numpy as np
import onnxruntime
session = onnxruntime.InferenceSession("network.onnx")
dtypes = {name: entry["dtype"] for name, entry in about["inputs"].items()}
values = {name: number(golden["inputs"][name]) for name in about["inputs"]}
tensors = {name: np.array(value, dtype=dtypes[name]) for name, value in values.items()}
probability = session.run(["probability"], tensors)[0].tolist()""",
}
_README = """# An exported model of tg_mlc

`{program}` computes the probabilities of {num_labels} labels. It needs neither tg_mlc nor PyTorch
Geometric.

| input, in this order | type | shape | meaning |
|---|---|---|---|
{rows}

A shape by name may be of any size. All rows of a sample stand together, samples one after another.
Probabilities are
{calibrated}calibrated for each label (`calibration` of `model.json` counts the functions), within
the program.

- `model.json`: names of labels in the order of columns, types and shapes, and how to decide for
  each metric. Under `thresholds`, a label applies if its probability is at least its threshold.
  Under `label_sets`, take the set with the highest value
  `sum of log(p / (1 - p)) of its labels + prior * log(count)`, with `p` cut to 0.0001 and 0.9999;
  for `f1_samples`, the set with the highest expected F1, where these values are the logarithms of
  the weights of sets. Label sets by thresholds with a `coverage` contain that fraction of the
  labels that apply, of each label or of the labels of a sample, in expectation over new samples
  from the source of those that thresholds were taken from; not if labels are given.
- `featurize.json`: how raw inputs become tensors, step by step, with all that was learned
  (vocabularies, weights, scales): {featurize}.
- `golden.json`: {num_golden} inputs, as raw inputs and as tensors (null is NaN), with probabilities
  and decisions (null where labels are given that a coverage would not hold for). A program in
  another language is right if its probabilities agree to {tolerance:g}:

```python
import json
about, golden = (json.load(open(name, encoding="utf-8")) for name in ("model.json", "golden.json"))


def number(value):
    if isinstance(value, list):
        return [number(item) for item in value]
    return float("nan") if value is None else value


{run}
rows = zip(probability, golden["probability"])
apart = max(abs(a - b) for row, expected in rows for a, b in zip(row, expected))
assert apart < {tolerance:g}, apart
print("the same probabilities, to", apart)
```
"""
