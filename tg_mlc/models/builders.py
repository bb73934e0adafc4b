"""Builders of models: functions that can build a model again without any sample."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from tg_mlc._names import find, register
from tg_mlc.data import ArrayDataset, MultiLabelDataset
from tg_mlc.data.parts import Blank, MixedData, Part, part_of, with_part
from tg_mlc.data.samples import Samples
from tg_mlc.inputs.kinds import constant_names

BuildT = TypeVar("BuildT", bound=Callable[..., nn.Module])

_BLUEPRINT, _ARGUMENTS = "_tg_mlc_blueprint", "_tg_mlc_arguments"


@dataclass(frozen=True)
class Blueprint:
    """The plain data needed to build a model again."""

    builder: str  #: the name of the function
    options: dict[str, Any]  #: the arguments except training samples and label graph
    samples: dict[str, Any]  #: sizes and types of a sample's attributes, or empty

    def build(self, label_graph: Data | None) -> nn.Module:
        """Builds the model with untrained weights. The random state does not change."""
        train = [_zero_sample(self.samples)] if self.samples else []
        with torch.random.fork_rng(devices=[]):
            model: nn.Module = find("builder", self.builder)(*train, label_graph, **self.options)
        return model


def builder(build: BuildT) -> BuildT:
    """Registers a function that builds models, so that :func:`tg_mlc.load` finds the function.
    If it decorates a class, networks record the arguments of their constructor instead.

    To build a model again, the function gets a sample of zeros without labels. The content of
    training samples may therefore change only entries of the state dict.

    .. code-block:: python

        @builder
        def my_model(
            train: MultiLabelDataset, label_graph: LabelGraph, channels: int = 64
        ) -> torch.nn.Module:
            return MyModel(train.num_inputs, channels, label_graph)

    Args:
        build (Callable): Builds a model from training samples, a label graph, and plain options.

    Raises:
        ValueError: If a builder in another Python module has the same name.
    """
    signature = inspect.signature(build)
    if isinstance(build, type):
        initialise = build.__init__  # type: ignore[misc]

        @wraps(initialise)
        def initialise_recorded(self: nn.Module, *args: Any, **kwargs: Any) -> None:
            initialise(self, *args, **kwargs)
            if type(self) is build:  # Constructors of subclasses may take other arguments.
                self.__dict__[_ARGUMENTS] = named_arguments(signature.bind(*args, **kwargs))

        build.__init__ = initialise_recorded  # type: ignore[misc]
        return build

    @wraps(build)
    def recorded(train: MultiLabelDataset, *args: Any, **kwargs: Any) -> nn.Module:
        model = build(train, *args, **kwargs)
        bound = signature.bind(train, *args, **kwargs)
        fields = named_arguments(bound, 2), describe_samples(train)
        model.__dict__[_BLUEPRINT] = Blueprint(build.__name__, *fields)
        return model

    register("builder", recorded)
    return cast(BuildT, recorded)


def rebuilt_by(build: Callable[..., nn.Module], model: nn.Module, options: dict[str, Any]) -> None:
    """Records the registered function and the options that build a model for a label graph."""
    model.__dict__[_BLUEPRINT] = Blueprint(build.__name__, options, {})


def blueprint_of(model: nn.Module) -> Blueprint | None:
    """Returns the blueprint of a model, if a builder made it."""
    return cast("Blueprint | None", vars(model).get(_BLUEPRINT))


def describe_samples(dataset: MultiLabelDataset) -> dict[str, Any]:
    """Returns the kind of the samples, and sizes and types of the first sample's attributes, except
    those of parts, which have descriptions of their own.
    """
    names = constant_names(dataset)
    attributes = {
        name: {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}
        for name, value in dataset[0].to_dict().items()
        if isinstance(value, Tensor) and name.rpartition(".")[0] not in dataset.parts
    }
    facts = {"kind": dataset.kind, "num_inputs": dataset.num_inputs, "attributes": attributes}
    if dataset.parts:
        facts["parts"] = {name: describe_samples(part_of(dataset, name)) for name in dataset.parts}
    return facts if names is None else {**facts, "feature_names": names}


def named_arguments(bound: inspect.BoundArguments, start: int = 0) -> dict[str, Any]:
    """Returns the arguments by name, without the first :obj:`start` ones."""
    options: dict[str, Any] = {}
    parameters = bound.signature.parameters
    for name in [name for name in list(parameters)[start:] if name in bound.arguments]:
        value = bound.arguments[name]
        value = value.item() if isinstance(value, np.generic) else value
        is_mapping = parameters[name].kind is inspect.Parameter.VAR_KEYWORD
        options.update(value if is_mapping else {name: value})
    return options


def recorded_arguments(model: nn.Module) -> dict[str, Any] | None:
    """Returns the arguments of a network's constructor, if :func:`builder` decorates its class."""
    return cast("dict[str, Any] | None", vars(model).get(_ARGUMENTS))


def _zero_sample(samples: Mapping[str, Any]) -> MultiLabelDataset:
    """Returns one sample of zeros with unknown labels."""
    parts = {name: _zero_sample(part) for name, part in samples.get("parts", {}).items()}
    data = MixedData() if parts else Data()
    for name, entry in samples["attributes"].items():
        data[name] = torch.zeros(entry["shape"], dtype=getattr(torch, entry["dtype"]))
    data.y = torch.full_like(data.y, torch.nan)
    label_names = [f"label_{index}" for index in range(data.y.size(1))]
    sample = Samples.collate([data], label_names, report=None)
    facts = {"kind": samples["kind"], "num_features": samples["num_inputs"]}
    facts["feature_names"] = samples.get("feature_names")
    dataset: MultiLabelDataset = ArrayDataset(sample._replace(**facts))
    dataset.parts = {name: Part([]) for name in parts}
    for name, part in parts.items():
        dataset = with_part(dataset, name, part, Blank.of(part))
    return dataset
