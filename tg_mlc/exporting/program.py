"""Programs of a model: named tensors in, probabilities out, in operators of PyTorch or of ONNX alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from tg_mlc._optional import require
from tg_mlc.data import MultiLabelDataset, given_labels
from tg_mlc.inference import Model, Query
from tg_mlc.inference.batches import make_loader
from tg_mlc.inference.decisions import probability_of
from tg_mlc.inference.features import VIEW, Classifiers
from tg_mlc.inference.flow import Flow
from tg_mlc.inference.networks import NO_INPUTS
from tg_mlc.inference.stage import TensorStage

Format = Literal["torch-export", "onnx"]


def featurize(
    model: Model, raw: Any, given: Any = None, base_scores: str = "export"
) -> dict[str, Tensor]:
    """The tensors that the program of a model takes for raw inputs, by name; it skips those that it does not use.

    Args:
        model (Model): The model.
        raw (Any): Raw inputs or samples, as the model takes them.
        given (Any, optional): Labels that are known, as :func:`~tg_mlc.data.given_labels` takes them.
            (default: :obj:`None`)
        base_scores (str, optional): As in :func:`tg_mlc.export`. (default: :obj:`"export"`)

    Raises:
        ValueError: If there is no input, or one of them is none that the model takes.
    """
    reading = model.read(raw, on_error="raise")
    flow = Flow(Query(), model.label_names, reading.samples, reading.size)
    model.features.apply(flow)
    tensors, stacking = dict[str, Tensor](), model.stage(Classifiers)
    if stacking is not None:
        if base_scores == "export":
            tensors |= {
                VIEW.format(view): matrix
                for view, matrix in stacking.matrices(flow.samples).items()
            }
        stacking.apply(flow)
    batch = next(iter(make_loader(flow.samples, batch_size=max(flow.size, 1))))
    found = {name: value for name, value in batch.to_dict().items() if isinstance(value, Tensor)}
    if stacking is not None and base_scores == "export":
        found.pop("base_scores")
    tensors |= {name: value for name, value in found.items() if name not in NO_INPUTS}
    if given is None and isinstance(flow.samples, MultiLabelDataset) and "given" in found:
        given = found["given"]
    unknown = torch.full((flow.size, len(model.label_names)), torch.nan)
    known = unknown if given is None else given_labels(model.label_names, given, flow.size).float()
    return {**tensors, "given": known}


class Program(nn.Module):
    """The stages of a model behind its features, each in tensors alone.

    Args:
        model (Model): The model.
        names (list[str]): The names of the tensors that it takes, in order.

    Raises:
        ValueError: If a stage has no computation in tensors; the message names it.
    """

    def __init__(self, model: Model, names: list[str]) -> None:
        super().__init__()
        self.names, self.takes_given = names, model.takes_given
        is_input = "base_scores" in names
        stages = [
            stage for stage in model.stages if not (is_input and isinstance(stage, Classifiers))
        ]
        self.stages = nn.ModuleList(stage.module() for stage in stages)

    def forward(self, *tensors: Tensor) -> Tensor:
        """Probabilities :math:`(B, L)`, coherent if they are by default; labels that are given have 0 or 1."""
        values = dict(zip(self.names, tensors, strict=True))
        for stage in self.stages:
            values = cast(TensorStage, stage).begin(values)
        for stage in self.stages:
            values = stage(values)
        return probability_of(values)


def trace(scorer: Program, tensors: Mapping[str, Tensor]) -> ExportedProgram:
    """The program of a model, with all sizes open but those of columns; tensors that it does not use are left out.

    Args:
        scorer (Program): The model, whose names become those of the tensors that it uses.
        tensors (dict): Those of a few inputs.

    Raises:
        ValueError: If :func:`torch.export.export` cannot trace it, or PyTorch is older than 2.7.
    """
    config: Any = import_module("torch.fx.experimental._config")
    if not hasattr(torch.compiler, "is_exporting"):
        raise ValueError(
            f"Expected PyTorch 2.7 or newer to export (got {torch.__version__}); update it"
        )
    scorer.names = [name for name in tensors if name != "given" or scorer.takes_given]
    for _ in range(2):
        values = tuple(tensors[name] for name in scorer.names)
        sizes = tuple({int(name.endswith("edge_index")): Dim.DYNAMIC} for name in scorer.names)
        try:
            # Without the patch, a program for any number of samples would refuse a single one.
            with (
                torch.no_grad(),
                config.patch(backed_size_oblivious=True),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("ignore")
                program = torch.export.export(
                    scorer.eval(), values, dynamic_shapes=(sizes,), strict=False
                )
        except Exception as error:  # of any class, by what a network of one's own does
            reason = next(
                (line for line in str(error).splitlines() if line.strip()), type(error).__name__
            )
            expected = "networks whose sizes and choices depend on no values of tensors"
            raise ValueError(
                f"Expected {expected}, for torch.export (got: {reason.strip():.300})"
            ) from error
        taken = [node for node in program.graph.nodes if node.op == "placeholder"][-len(values) :]
        used = [name for name, node in zip(scorer.names, taken, strict=True) if node.users]
        if used == scorer.names:
            break
        scorer.names = used
    return program


def save_torch(program: ExportedProgram, path: Path) -> Callable[..., Tensor]:
    """Writes a program for :func:`torch.export.load`, and returns what it computes once it is read again."""
    torch.export.save(program, path)
    return cast(Callable[..., Tensor], torch.export.load(path).module())


def save_onnx(program: ExportedProgram, path: Path, names: list[str]) -> Callable[..., Tensor]:
    """Writes a program as ONNX, and returns what ONNX Runtime computes."""
    require("onnxscript", extra="export")
    runtime = require("onnxruntime", extra="export")
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = program.run_decompositions(_DECOMPOSITIONS)
        options: dict[str, Any] = {
            "input_names": names,
            "output_names": ["probability"],
            "verbose": False,
        }
        exported: Any = torch.onnx.export(plain, dynamo=True, **options)
        exported.save(path)
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])

    def run(*tensors: Tensor) -> Tensor:
        given = {name: tensor.numpy() for name, tensor in zip(names, tensors, strict=True)}
        return torch.from_numpy(session.run(["probability"], given)[0])

    return run


# Operations that ONNX lacks, made of operators that it has.


def _groups(ends: Tensor, size: int) -> Tensor:
    """The group of each of so many rows, given where groups end."""
    marks = ends.new_zeros(size + 1).scatter_add(0, ends, torch.ones_like(ends))
    return marks.cumsum(0)[:size]


def _repeat_interleave(
    x: Tensor, repeats: Tensor, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    assert output_size is not None
    return x.index_select(0, _groups(repeats.cumsum(0), output_size))


def _segment_mean(data: Tensor, reduce: str, *, offsets: Tensor, **others: Any) -> Tensor:
    assert (reduce, data.dim()) == ("mean", 1)
    sums = data.new_zeros(offsets.numel() - 1).index_add(
        0, _groups(offsets[1:], data.size(0)), data
    )
    return sums / offsets.diff().clamp(min=1)


def _embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, *others: Any
) -> tuple[Tensor, ...]:
    # Bags of one size, as of categorical features.
    rows = weight.index_select(0, indices)
    sums = weight.new_zeros(offsets.numel(), weight.size(1)).index_add(
        0, _groups(offsets, indices.numel()) - 1, rows
    )
    return sums, offsets, offsets, offsets


def _searchsorted(
    sequence: Tensor, values: Tensor, *, right: bool = False, side: str | None = None, **others: Any
) -> Tensor:
    sequence, values = sequence.unsqueeze(-2), values.unsqueeze(-1)
    return (sequence <= values if right or side == "right" else sequence < values).sum(dim=-1)


def _sort(x: Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False) -> Any:
    return torch.sort(x, dim, descending)  # TopK of ONNX puts the first of equals first


_ATEN: Any = torch.ops.aten
_DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    _ATEN.repeat_interleave.self_Tensor: _repeat_interleave,
    _ATEN.searchsorted.Tensor: _searchsorted,
    _ATEN.sort.stable: _sort,
    _ATEN.segment_reduce.default: _segment_mean,
    _ATEN.embedding_bag.padding_idx: _embedding_bag,
    _ATEN._embedding_bag_forward_only.default: _embedding_bag,
    _ATEN._embedding_bag.default: _embedding_bag,
}
