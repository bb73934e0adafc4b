"""Programs that turn named tensors into probabilities, in PyTorch's or ONNX's operators."""

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
    """Returns the tensors of raw inputs, by name, for the program of a model. They may include
    tensors that the program does not use.

    Args:
        model (Model): The model.
        raw (Any): Raw inputs or samples, as the model takes them.
        given (Any, optional): Known labels, in a format of :func:`~tg_mlc.data.given_labels`.
            (default: :obj:`None`)
        base_scores (str, optional): As in :func:`tg_mlc.export`. (default: :obj:`"export"`)

    Raises:
        ValueError: If there are no inputs, or the model cannot take an input.
    """
    reading = model.read(raw, on_error="raise")
    flow = Flow(Query(), model.label_names, reading.samples, reading.size)
    model.features.apply(flow)
    tensors, stacking = dict[str, Tensor](), model.stage(Classifiers)
    exports_scores = stacking is not None and base_scores == "export"
    if stacking is not None:
        if exports_scores:
            matrices = stacking.matrices(flow.samples)
            tensors = {VIEW.format(view): matrix for view, matrix in matrices.items()}
        stacking.apply(flow)
    batch = next(iter(make_loader(flow.samples, batch_size=max(flow.size, 1)))).to_dict()
    skipped = NO_INPUTS | ({"base_scores"} if exports_scores else set())
    for name, value in batch.items():
        if isinstance(value, Tensor) and name not in skipped:
            tensors[name] = value
    if given is None and isinstance(flow.samples, MultiLabelDataset):
        given = batch.get("given")
    labels = torch.full((flow.size, len(model.label_names)), torch.nan)
    if given is not None:
        labels = given_labels(model.label_names, given, flow.size).float()
    return {**tensors, "given": labels}


class Program(nn.Module):
    """The stages of a model after its features, as computations with tensors only.

    Args:
        model (Model): The model.
        names (list[str]): The names of the input tensors, in order.

    Raises:
        ValueError: If a stage cannot compute with tensors only; the message names the stage.
    """

    def __init__(self, model: Model, names: list[str]) -> None:
        super().__init__()
        self.names, self.takes_given = names, model.takes_given
        skipped = (Classifiers,) if "base_scores" in names else ()
        stages = (stage for stage in model.stages if not isinstance(stage, skipped))
        self.stages = nn.ModuleList(stage.module() for stage in stages)

    def forward(self, *tensors: Tensor) -> Tensor:
        """Returns probabilities :math:`(B, L)`, coherent by default; given labels have 0 or 1."""
        values = dict(zip(self.names, tensors, strict=True))
        for stage in self.stages:
            values = cast(TensorStage, stage).begin(values)
        for stage in self.stages:
            values = stage(values)
        return probability_of(values)


def trace(scorer: Program, tensors: Mapping[str, Tensor]) -> ExportedProgram:
    """Returns the program of a model for any number of samples, components and edges. Its inputs
    are the tensors that it uses.

    Args:
        scorer (Program): The model. Its list of names is reduced to the tensors in use.
        tensors (dict): The tensors of a few inputs.

    Raises:
        ValueError: If :func:`torch.export.export` cannot trace it, or PyTorch is older than 2.7.
    """
    config: Any = import_module("torch.fx.experimental._config")
    if not hasattr(torch.compiler, "is_exporting"):
        got = f"(got {torch.__version__}); update it"
        raise ValueError(f"Expected PyTorch 2.7 or newer to export {got}")
    # Without this option, the program would refuse batches of a single sample.
    option = {"backed_size_oblivious": True}
    scorer.names = [name for name in tensors if name != "given" or scorer.takes_given]
    for _ in range(2):  # The second program has only the inputs that the first one uses.
        values = tuple(tensors[name] for name in scorer.names)
        dims = tuple({int(name.endswith("edge_index")): Dim.DYNAMIC} for name in scorer.names)
        options: dict[str, Any] = {"dynamic_shapes": (dims,), "strict": False}
        try:
            with torch.no_grad(), config.patch(**option), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                program = torch.export.export(scorer.eval(), values, **options)
        except Exception as error:  # A user's own network may raise any error.
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            got = f"(got: {[*lines, type(error).__name__][0]:.300})"
            expected = "networks whose sizes and choices depend on no values of tensors"
            raise ValueError(f"Expected {expected}, for torch.export {got}") from error
        nodes = [node for node in program.graph.nodes if node.op == "placeholder"][-len(values) :]
        used = [name for name, node in zip(scorer.names, nodes, strict=True) if node.users]
        if used == scorer.names:
            break
        scorer.names = used
    return program


def save_torch(program: ExportedProgram, path: Path) -> Callable[..., Tensor]:
    """Writes a program for :func:`torch.export.load`, and returns the loaded function."""
    torch.export.save(program, path)
    return cast(Callable[..., Tensor], torch.export.load(path).module())


def save_onnx(program: ExportedProgram, path: Path, names: list[str]) -> Callable[..., Tensor]:
    """Writes a program as ONNX, and returns a function that runs it in ONNX Runtime."""
    require("onnxscript", extra="export")
    runtime = require("onnxruntime", extra="export")
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        decomposed = program.run_decompositions(_DECOMPOSITIONS)
        options: dict[str, Any] = {"input_names": names, "output_names": ["probability"]}
        exported: Any = torch.onnx.export(decomposed, dynamo=True, verbose=False, **options)
        exported.save(path)
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])

    def run(*tensors: Tensor) -> Tensor:
        feeds = {name: tensor.numpy() for name, tensor in zip(names, tensors, strict=True)}
        return torch.from_numpy(session.run(["probability"], feeds)[0])

    return run


# Replacements for operations that ONNX lacks, built from ONNX operators.


def _groups(ends: Tensor, size: int) -> Tensor:
    """Returns the group of each row, computed from the ends of the groups."""
    counts = ends.new_zeros(size + 1).scatter_add(0, ends, torch.ones_like(ends))
    return counts.cumsum(0)[:size]


def _repeat_interleave(
    x: Tensor, repeats: Tensor, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    assert output_size is not None
    return x.index_select(0, _groups(repeats.cumsum(0), output_size))


def _segment_mean(data: Tensor, reduce: str, *, offsets: Tensor, **others: Any) -> Tensor:
    assert (reduce, data.dim()) == ("mean", 1)
    groups = _groups(offsets[1:], data.size(0))
    sums = data.new_zeros(offsets.numel() - 1).index_add(0, groups, data)
    return sums / offsets.diff().clamp(min=1)


def _embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, *others: Any
) -> tuple[Tensor, ...]:
    # The sums of embedding rows per bag, such as a sample's categorical features.
    groups = _groups(offsets, indices.numel()) - 1
    zeros = weight.new_zeros(offsets.numel(), weight.size(1))
    sums = zeros.index_add(0, groups, weight.index_select(0, indices))
    return sums, offsets, offsets, offsets


def _searchsorted(
    sequence: Tensor, values: Tensor, *, right: bool = False, side: str | None = None, **others: Any
) -> Tensor:
    sequence, values = sequence.unsqueeze(-2), values.unsqueeze(-1)
    return (sequence <= values if right or side == "right" else sequence < values).sum(dim=-1)


def _sort(x: Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False) -> Any:
    return torch.sort(x, dim, descending)  # ONNX sorts by TopK, which is stable.


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
