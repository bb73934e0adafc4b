"""The stages Networks (logits of networks) and Combination (weighted sums of logits)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from typing_extensions import Self

from tg_mlc._names import few, find
from tg_mlc._warnings import check_abandoned
from tg_mlc.inference.batches import batches_of, in_type_of, rows_error, scores_of
from tg_mlc.inference.flow import Flow
from tg_mlc.inference.network import describe_settings, model_state, restore_model
from tg_mlc.inference.stage import NetworkClass, Stage, State, TensorStage, Values
from tg_mlc.inputs.preprocessor import as_tensors
from tg_mlc.models.builders import blueprint_of
from tg_mlc.nn.given import given_in

#: Entries of a batch that are no inputs of a network.
NO_INPUTS = {"y", "given", "num_graphs", "_num_graphs"}


class Networks(Stage):
    """Computes the mean logits of networks, or the scores of a network without logits.

    Args:
        networks (Sequence[torch.nn.Module]): One network, or the networks of all folds.
        label_names (Sequence[str]): The labels.
        objective (Objective, optional): Turns the outputs of a network into scores.
            (default: :obj:`None`, outputs are logits)
        reads_given (bool, optional): Whether the networks get given labels. (default: :obj:`False`)
        settings (dict, optional): The settings of each network before its first call.
            (default: :obj:`None`, the current settings)
    """

    #: Arguments of the constructor of a user's own network that its attributes do not hold.
    arguments: Mapping[str, Any]

    #: Samples on which a user's own network is compared with its restored copy.
    examples: Batch | None = None

    def __init__(
        self,
        networks: Sequence[nn.Module],
        label_names: Sequence[str],
        objective: Any = None,
        *,
        reads_given: bool = False,
        settings: Sequence[dict[str, dict[str, str]]] | None = None,
    ) -> None:
        self.networks = [network.eval() for network in networks]
        #: The network that only a user's own class can restore, if there is one.
        self.own = next((net for net in self.networks if blueprint_of(net) is None), None)
        self.label_names, self.objective = list(label_names), objective
        self.reads_given, self.settings = reads_given, settings
        self.arguments = {}

    @property
    def takes_given(self) -> bool:
        return self.reads_given

    @property
    def gives_logits(self) -> bool:
        """Whether scores are the sigmoid of the networks' outputs."""
        return self.objective is None or self.objective.is_sigmoid

    def prepare(self, flow: Flow) -> None:
        flow.batches = [*self.batches(replace(flow, given=None))]

    def batches(self, flow: Flow) -> Iterator[Batch]:
        """Yields batches of the samples of a flow, with given labels, for the networks."""
        network, stop = self.networks[0], 0
        weight = next(network.parameters(), torch.empty(0))
        for loaded in flow.batches or batches_of(flow.samples, flow.query.batch_size):
            check_abandoned()
            batch = copy(loaded)
            start, stop = stop, stop + batch.num_graphs
            if self.reads_given and flow.given is not None:
                batch.given = flow.given[start:stop]
            yield in_type_of(network, batch.to(weight.device))

    @torch.inference_mode()
    def apply(self, flow: Flow) -> None:
        batches: Any = self.batches(flow)
        if len(self.networks) > 1:
            batches = [*batches]  # Making batches takes longer than running networks.
        given: list[Tensor] = []
        outputs: list[Tensor] = []
        for network in self.networks:
            batch_outputs = []
            for batch in batches:
                if not outputs and (batch_given := given_in(network, batch)) is not None:
                    given.append(batch_given.cpu())
                batch_outputs.append(self.of_batch(network, batch).cpu())
            outputs.append(torch.cat(batch_outputs))
        if self.examples is None and self.own is not None:
            self.examples = batch
        # Data sets that make batches may put given labels into the batches.
        if flow.given is None and given:
            flow.given = torch.cat(given)
        if len(outputs) > 1:
            flow.logits = torch.stack(outputs).double().mean(dim=0)
        elif self.gives_logits:
            flow.logits = outputs[0]
        else:
            flow.probabilities = flow.with_given(outputs[0])

    def of_batch(self, network: nn.Module, batch: Batch) -> Tensor:
        """Returns logits :math:`(B, L)`, or scores if the objective gives no logits."""
        if self.gives_logits:
            outputs = cast(Tensor, network(batch).float())
        else:
            outputs = self.objective.scores(network, batch)
        if len(outputs) != batch.num_graphs:
            raise rows_error(outputs, batch)
        return outputs

    def module(self) -> TensorStage:
        return _NetworkModules(self)

    def state_dict(self) -> dict[str, Any]:
        settings = self.settings or [describe_settings(network) for network in self.networks]
        networks, objective = [], self.objective
        for network, entries in zip(self.networks, settings, strict=True):
            networks.append(model_state(network, entries, self.label_names, self.arguments))
        if objective is not None:
            objective = {"class": type(objective).__name__, **vars(objective)}
        return {"networks": networks, "objective": objective, "reads_given": self.reads_given}

    @classmethod
    def from_state(cls, state: State, label_names: list[str], network: NetworkClass) -> Self:
        networks = [restore_model(entry, label_names, network) for entry in state["networks"]]
        fields = None if state["objective"] is None else dict(state["objective"])
        objective = None if fields is None else find("objective", fields.pop("class"))(**fields)
        options = {"reads_given": state["reads_given"]}
        options["settings"] = [entry["settings"] for entry in state["networks"]]
        return cls(networks, label_names, objective, **options)

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state without samples."""
        return {name: value for name, value in vars(self).items() if name != "examples"}

    @torch.inference_mode()
    def check_remade(self, remade: Self) -> None:
        """Raises ValueError if the restored copy of a user's own network differs from it."""
        if self.own is None:
            return
        name = type(self.own).__name__
        if self.examples is None:
            raise ValueError(
                f"Expected samples to compare {name} with the network that its constructor makes "
                f"again (got none); call 'tune', 'evaluate' or 'predict' with some before 'save'"
            )
        device = next(self.own.parameters(), torch.empty(0)).device
        networks = self.own, remade.networks[0].to(device)
        examples = [in_type_of(net, self.examples.to(device).clone()) for net in networks]
        outputs = [self.of_batch(*args) for args in zip(networks, examples, strict=True)]
        tolerance: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5, "equal_nan": True}
        if not torch.allclose(outputs[0], outputs[1], **tolerance):
            arguments = [*self.state_dict()["networks"][0]["network"]["arguments"]]
            raise ValueError(
                f"Expected the same outputs of {name} and of the one that its constructor makes "
                f"again with the arguments {few(arguments) or 'none'} (got others); pass those "
                f"that differ from their defaults: save(path, arguments={{...}})"
            )

    def to(self, device: torch.device | str) -> None:
        for network in self.networks:
            network.to(device)

    def __str__(self) -> str:
        names = {type(network).__name__ for network in self.networks}
        count = sum(weight.numel() for network in self.networks for weight in network.parameters())
        return f"{len(self.networks)} x {', '.join(names)}, {count:,} weights"


class Inputs(Data):
    """A batch of tensors by name."""

    @property
    def num_graphs(self) -> int:
        return cast(int, self["ptr"].numel() - 1 if "ptr" in self else self["entity"].size(0))


class _NetworkModules(TensorStage):
    """Computes the mean logits of networks, or probabilities if their objective has no logits."""

    def __init__(self, stage: Networks) -> None:
        super().__init__()
        self.networks = nn.ModuleList(stage.networks)
        self.stage = stage

    def forward(self, values: Values) -> Values:
        stage, given = self.stage, values.get("given")
        names = [name for name in values if name not in NO_INPUTS]
        names = [name for name in names if not name.startswith("features_")]
        data = Inputs(**{name: values[name] for name in names})
        if given is not None and stage.reads_given:
            data.given = given
        if not stage.gives_logits:
            [network] = self.networks
            scores = scores_of(stage.objective, network, in_type_of(network, data))
            return {**values, "probability": scores.float()}
        outputs = [network(in_type_of(network, data)).float() for network in self.networks]
        logits = torch.stack(outputs).mean(dim=0) if len(outputs) > 1 else outputs[0]
        return {**values, "logits": logits}


class Combination(Stage):
    """Weights and sums the logits of base classifiers and networks.

    Args:
        weight (numpy.ndarray): The weights :math:`(L, C)`; the last column is for the networks.
        bias (numpy.ndarray): The biases :math:`(L)`.
        names (Sequence[str]): The names of the columns of weights.
    """

    def __init__(self, weight: np.ndarray, bias: np.ndarray, names: Sequence[str]) -> None:
        self.weight, self.bias, self.names = np.asarray(weight), np.asarray(bias), list(names)
        if self.weight.shape != (len(self.bias), len(self.names)):
            expected, got = [len(self.bias), len(self.names)], list(self.weight.shape)
            raise ValueError(f"Expected 'weight' of shape {expected} (got {got})")

    def columns(self, flow: Flow) -> np.ndarray:
        """Returns the logits :math:`(N, L, C)` of all classifiers and of the networks."""
        columns: np.ndarray = flow.samples.rows("base_scores").double().numpy()
        if flow.logits is None:
            return columns
        return np.concatenate([columns, flow.logits.double().numpy()[..., None]], axis=-1)

    def terms(self, flow: Flow) -> dict[str, Tensor]:
        weighted = torch.from_numpy(self.columns(flow) * self.weight)
        terms = dict(zip(self.names, weighted.unbind(dim=-1), strict=True))
        return {**terms, "bias": torch.from_numpy(self.bias).expand(len(weighted), -1)}

    def apply(self, flow: Flow) -> None:
        combined = np.einsum("nlc,lc->nl", self.columns(flow), self.weight) + self.bias
        flow.logits = torch.from_numpy(combined)

    def module(self) -> TensorStage:
        return _CombinationModule(self)

    def state_dict(self) -> dict[str, Any]:
        state = {"weight": self.weight, "bias": self.bias, "names": self.names}
        tensors: dict[str, Any] = as_tensors(state)
        return tensors

    @classmethod
    def from_state(cls, state: State, label_names: list[str], network: NetworkClass) -> Self:
        return cls(state["weight"].numpy(), state["bias"].numpy(), state["names"])

    def __str__(self) -> str:
        pairs = zip(self.names, self.weight.mean(axis=0), strict=True)
        return " + ".join(f"{weight:.2f} {name}" for name, weight in pairs)


class _CombinationModule(TensorStage):
    def __init__(self, stage: Combination) -> None:
        super().__init__()
        self.register_buffer("weight", torch.tensor(stage.weight, dtype=torch.float))
        self.register_buffer("bias", torch.tensor(stage.bias, dtype=torch.float))

    def forward(self, values: Values) -> Values:
        columns = values["base_scores"]
        if "logits" in values:
            columns = torch.cat([columns, values["logits"].unsqueeze(-1)], dim=-1)
        combined = (columns * self.get_buffer("weight")).sum(dim=-1) + self.get_buffer("bias")
        return {**values, "logits": combined}
