"""Programs of a model: named tensors in, probabilities out, in operators of PyTorch or of ONNX alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram
from torch_geometric.data import Data

from tg_mlc._optional import require
from tg_mlc.data import MultiLabelDataset, given_labels
from tg_mlc.exporting.classifiers import as_module
from tg_mlc.graphs.hierarchy import coherent, propagate
from tg_mlc.inputs import Chain
from tg_mlc.nn.given import takes_given_labels
from tg_mlc.saving.inference import InferenceModel, ModuleInference, in_type_of, make_loader, makes_batches, scores_of
from tg_mlc.stacking.automatic import AutoModel
from tg_mlc.stacking.combination import LogitStacking
from tg_mlc.stacking.features import StackingFeatures

Format = Literal["torch-export", "onnx"]
#: Makes the input of base classifiers from the name of their view.
VIEW = "features_{}"
# Entries of a batch beside the inputs of a network.
_NO_INPUTS = {"y", "given", "num_graphs", "_num_graphs"}


def featurize(scorer: InferenceModel, raw: Any, given: Any = None, base_scores: str = "export") -> dict[str, Tensor]:
    """The tensors that the program of a model takes for raw inputs, by name; it leaves out those that it does not use.

    Args:
        scorer (InferenceModel): The model.
        raw (Any): Raw inputs or samples, as the model takes them.
        given (Any, optional): Labels that are known, as :func:`~tg_mlc.data.given_labels` takes them.
            (default: :obj:`None`)
        base_scores (str, optional): As in :func:`tg_mlc.export`. (default: :obj:`"export"`)

    Raises:
        ValueError: If there is no input, or one of them is none that the model takes.
    """
    stacking, tensors = stacking_of(scorer), dict[str, Tensor]()
    preprocessor: Any = getattr(scorer, "preprocessor", None)
    samples = raw
    if stacking is not None:
        samples = Chain(*preprocessor.steps[:-1]).transform(raw)
        if base_scores == "export":
            for view in dict.fromkeys(each.view for each in stacking.classifiers.values()):
                x: Any = stacking.views[view].matrix(samples)
                x = np.asarray(x.toarray() if hasattr(x, "toarray") else x, dtype=np.float32)
                tensors[VIEW.format(view)] = torch.from_numpy(x)
        samples = stacking.transform(samples)
    elif preprocessor is not None and not makes_batches(raw):
        samples = preprocessor.transform(raw)
    size = len(samples)
    batch = next(iter(make_loader(samples, batch_size=max(size, 1))))
    found = {name: value for name, value in batch.to_dict().items() if isinstance(value, Tensor)}
    if stacking is not None and base_scores == "export":
        found.pop("base_scores")
    tensors |= {name: value for name, value in found.items() if name not in _NO_INPUTS}
    if given is None and isinstance(samples, MultiLabelDataset) and "given" in found:
        given = found["given"]
    unknown = torch.full((size, len(scorer.label_names)), torch.nan)
    return {**tensors, "given": unknown if given is None else given_labels(scorer.label_names, given, size).float()}


def stacking_of(scorer: InferenceModel) -> StackingFeatures | None:
    """The step of a model that gives samples the scores of base classifiers, if it has one."""
    steps = getattr(getattr(scorer, "preprocessor", None), "steps", ())
    return steps[-1] if steps and isinstance(steps[-1], StackingFeatures) else None


class _Inputs(Data):
    """A batch of tensors by name."""

    @property
    def num_graphs(self) -> int:
        return cast(int, self["ptr"].numel() - 1 if "ptr" in self else self["entity"].size(0))


class _Combination(nn.Module):
    """The weights of logits, as :class:`~tg_mlc.stacking.combination.LogitStacking` combines them."""

    def __init__(self, combination: LogitStacking) -> None:
        super().__init__()
        for name, array in combination.state_dict().items():
            self.register_buffer(name, torch.from_numpy(np.array(array, dtype=np.float32)))

    def forward(self, logits: Tensor) -> Tensor:
        return (logits * self.get_buffer("weight")).sum(dim=-1) + self.get_buffer("bias")


class Scorer(nn.Module):
    """All of a model behind its preprocessor: base classifiers, networks, their combination, and given labels.

    Args:
        scorer (InferenceModel): The model.
        names (list[str]): The names of the tensors that it takes, in order.

    Raises:
        ValueError: If a part cannot be exported; the message names it.
    """

    pairs: Tensor | None

    def __init__(self, scorer: InferenceModel, names: list[str]) -> None:
        super().__init__()
        stacking = stacking_of(scorer)
        self.names, self.views = names, list[str]()
        self.classifiers = nn.ModuleList()
        if stacking is not None and "base_scores" not in names:
            self.views = [VIEW.format(each.view) for each in stacking.classifiers.values()]
            self.classifiers.extend(as_module(name, each) for name, each in stacking.classifiers.items())
        self.register_buffer("pairs", scorer.coherence(None))
        self.calibration = None if scorer.calibration is None else deepcopy(scorer.calibration).float()
        self.objective: Any = None
        self.combination = self.given = None
        if isinstance(scorer, AutoModel):
            self.networks, self.combination = nn.ModuleList(scorer.models), _Combination(scorer.combination)
        elif isinstance(scorer, ModuleInference):
            self.networks, self.objective = nn.ModuleList([scorer.model]), scorer.objective
        else:
            raise ValueError(
                f"Expected a model of tg_mlc.auto, a trained module or a network (got a {type(scorer).__name__}); "
                f"save it with tg_mlc and export what tg_mlc.load returns"
            )
        if scorer.given is not None:
            self.given = nn.ModuleList(scorer.given.parts.values())
            self.given.append(_Combination(scorer.given.combination))
            self.columns = scorer.given.columns
        self.takes_given = self.given is not None or (self.objective and takes_given_labels(self.networks))

    def forward(self, *tensors: Tensor) -> Tensor:
        """Probabilities :math:`(B, L)`, coherent if they are by default; labels that are given have 0 or 1."""
        values = dict(zip(self.names, tensors, strict=True))
        given = values.pop("given", None)
        if self.pairs is not None and given is not None:
            given = propagate(given, self.pairs, check=False)
        probabilities = self._probabilities(values, given)
        return probabilities if self.pairs is None else coherent(probabilities, self.pairs)

    def _probabilities(self, values: dict[str, Tensor], given: Tensor | None) -> Tensor:
        if self.classifiers:
            scores = [each(values[view]) for each, view in zip(self.classifiers, self.views, strict=True)]
            values["base_scores"] = torch.stack(scores, dim=-1)
        data = _Inputs(**{name: value for name, value in values.items() if name not in self.views})
        if self.objective is not None and self.given is None:
            if given is not None:
                data.given = given
            probabilities: Tensor = scores_of(self.objective, self.networks[0], in_type_of(self.networks[0], data))
            return (
                probabilities if self.calibration is None else self.calibration.probabilities(probabilities)
            ).float()
        combined: Tensor
        if self.combination is None:
            combined = self.networks[0](in_type_of(self.networks[0], data)).float()
        else:
            logits = values["base_scores"]
            if self.networks:
                mean = torch.stack([network(data) for network in self.networks]).mean(dim=0)
                logits = torch.cat([logits, mean.unsqueeze(-1)], dim=-1)
            combined = self.combination(logits)
        calibrated = self.calibration or nn.Identity()
        if given is None or self.given is None:
            return cast("Tensor", calibrated(combined)).sigmoid()
        *parts, combination = self.given
        among = combination(self.columns(combined, [part(combined, given) for part in parts], given))
        some = (~given.isnan()).any(dim=1, keepdim=True)
        return torch.where(given.isnan(), calibrated(torch.where(some, among, combined)).sigmoid(), given)


def trace(scorer: Scorer, tensors: Mapping[str, Tensor]) -> ExportedProgram:
    """The program of a model, with all sizes open but those of columns; tensors that it does not use are left out.

    Args:
        scorer (Scorer): The model, whose names become those of the tensors that it uses.
        tensors (dict): Those of a few inputs.

    Raises:
        ValueError: If :func:`torch.export.export` cannot trace it, or PyTorch is older than 2.7.
    """
    config: Any = import_module("torch.fx.experimental._config")
    if not hasattr(torch.compiler, "is_exporting"):
        raise ValueError(f"Expected PyTorch 2.7 or newer to export (got {torch.__version__}); update it")
    scorer.names = [name for name in tensors if name != "given" or scorer.takes_given]
    for _ in range(2):
        values = tuple(tensors[name] for name in scorer.names)
        sizes = tuple({int(name.endswith("edge_index")): Dim.DYNAMIC} for name in scorer.names)
        try:
            # Without the patch, a program for any number of samples would refuse a single one.
            with torch.no_grad(), config.patch(backed_size_oblivious=True), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                program = torch.export.export(scorer.eval(), values, dynamic_shapes=(sizes,), strict=False)
        except Exception as error:  # of any class, by what a network of one's own does
            reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
            expected = "networks whose sizes and choices depend on no values of tensors"
            raise ValueError(f"Expected {expected}, for torch.export (got: {reason.strip():.300})") from error
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
        options: dict[str, Any] = {"input_names": names, "output_names": ["probability"], "verbose": False}
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


def _repeat_interleave(x: Tensor, repeats: Tensor, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    assert output_size is not None
    return x.index_select(0, _groups(repeats.cumsum(0), output_size))


def _segment_mean(data: Tensor, reduce: str, *, offsets: Tensor, **others: Any) -> Tensor:
    assert (reduce, data.dim()) == ("mean", 1)
    sums = data.new_zeros(offsets.numel() - 1).index_add(0, _groups(offsets[1:], data.size(0)), data)
    return sums / offsets.diff().clamp(min=1)


def _embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, *others: Any) -> tuple[Tensor, ...]:
    # Bags of one size, as of categorical features.
    rows = weight.index_select(0, indices)
    sums = weight.new_zeros(offsets.numel(), weight.size(1)).index_add(0, _groups(offsets, indices.numel()) - 1, rows)
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
