"""Scorers: what turns raw inputs into scores of labels, and can be saved without any sample."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from typing_extensions import Self

from tg_mlc.data import MultiLabelDataset, given_labels
from tg_mlc.data.bags import with_attribute
from tg_mlc.metrics import ThresholdTuner
from tg_mlc.nn.given import given_in
from tg_mlc.saving.folder import write_folder
from tg_mlc.saving.state import module_state, restore_module, versions

if TYPE_CHECKING:
    from tg_mlc.training import MultiLabelModule


class InferenceModel(ABC):
    """The source of the scores of a :class:`~tg_mlc.saving.Predictor`; a folder says its :attr:`kind`.

    Attributes:
        label_names (list[str]): The labels.
        tuners (dict[str, ThresholdTuner]): Thresholds by the metric that they are chosen for.
    """

    kind: ClassVar[str]
    label_names: list[str]
    tuners: Mapping[str, ThresholdTuner]

    @abstractmethod
    def scores(self, raw: Any, given: Any = None, batch_size: int = 256) -> Tensor:
        """Returns scores :math:`(N, L)` in :math:`[0, 1]`.

        Args:
            raw (Any): Raw inputs, or samples.
            given (Any, optional): What is known of their labels, as :func:`~tg_mlc.data.given_labels` takes it.
                (default: :obj:`None`)
            batch_size (int, optional): The number of samples at a time. (default: :obj:`256`)
        """

    def scores_and_given(self, raw: Any, given: Any = None, batch_size: int = 256) -> tuple[Tensor, Tensor | None]:
        """Returns scores, and the labels :math:`(N, L)` that were known to the model: 0, 1, or NaN for unknown; nothing
        if none were.

        Args:
            raw, given, batch_size: As in :meth:`scores`.
        """
        return self.scores(raw, given, batch_size), None

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Returns all that it takes to make it again, as tensors and plain data."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Makes a scorer of its state.

        Args:
            state (dict): What :meth:`state_dict` returned.
        """

    @abstractmethod
    def to(self, device: torch.device | str) -> Self:
        """Moves it to a device.

        Args:
            device (torch.device or str): The device.
        """

    def save(self, path: str | os.PathLike[str], facts: Mapping[str, Any] | None = None) -> Path:
        """Writes a folder that :func:`tg_mlc.load` reads, once it has been made again as a test; a model that is there
        already is replaced as a whole.

        Args:
            path (str or PathLike): The folder.
            facts (dict, optional): What else to write down, as plain data. (default: :obj:`None`)

        Raises:
            ValueError: If it cannot be made again, as no :func:`~tg_mlc.models.builder` made a model of it.
        """
        state = self.state_dict()
        self.from_state(state)
        about = {"label_names": self.label_names, "facts": {"versions": versions(), **(facts or {})}}
        return write_folder(path, {"kind": self.kind, **about, self.kind: state})


class ModuleInference(InferenceModel):
    """Scores of a trained module, whose preprocessor makes samples of raw inputs.

    Args:
        module (MultiLabelModule): The module.
    """

    kind = "module"

    def __init__(self, module: MultiLabelModule) -> None:
        self.module = module.eval()
        self.label_names = module.label_names
        self.tuners = module.tuners

    def scores(self, raw: Any, given: Any = None, batch_size: int = 256) -> Tensor:
        """Returns scores :math:`(N, L)`; known labels have 0 or 1, as they were given."""
        return self.scores_and_given(raw, given, batch_size)[0]

    @torch.inference_mode()
    def scores_and_given(self, raw: Any, given: Any = None, batch_size: int = 256) -> tuple[Tensor, Tensor | None]:
        """Returns scores, and the labels that were given, by the caller or by the samples."""
        from tg_mlc.training.data import make_loader

        samples = self._samples(raw)
        if given is not None:
            if not isinstance(samples, MultiLabelDataset):
                raise ValueError(f"Expected no 'given' for samples that come as batches (got {type(samples).__name__})")
            samples = with_attribute(samples, "given", given_labels(self.label_names, given, len(samples)))
        scores: list[Tensor] = []
        found: list[Tensor] = []
        for batch in make_loader(samples, batch_size=batch_size):
            scores.append(self.module.predict_step(batch.to(self.module.device)).cpu())
            of_batch = given_in(self.module.model, batch)
            found += [] if of_batch is None else [of_batch]
        return torch.cat(scores), torch.cat(found) if found else None

    def _samples(self, raw: Any) -> Any:
        if hasattr(raw, "__getitems__"):  # a NextSetDataset or a part of one
            return raw
        if self.module.preprocessor is not None:
            return self.module.preprocessor.transform(raw)
        if not isinstance(raw, MultiLabelDataset):
            raise ValueError(
                f"Expected samples as the model was trained on, as it was saved without a preprocessor (got "
                f"{type(raw).__name__}); pass a data set, or 'preprocessor' to MultiLabelModule before training"
            )
        return raw

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of the module, with all that it takes to build its model again."""
        return module_state(self.module)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Makes a scorer of a module that is built again."""
        return cls(restore_module(state))

    def to(self, device: torch.device | str) -> Self:
        """Moves the module to a device."""
        self.module.to(device)
        return self


def logits_of(model: nn.Module, samples: MultiLabelDataset, batch_size: int = 256) -> Tensor:
    """The logits :math:`(N, L)` of samples, by a model on any device."""
    device = next(model.parameters()).device
    # Without a generator of its own a loader draws from the global one.
    from tg_mlc.training.data import make_loader

    loader = make_loader(samples, batch_size=batch_size, generator=torch.Generator())
    with torch.inference_mode():
        return torch.cat([model(batch.to(device)).cpu() for batch in loader])
