"""Shared parts of the factories: names of encoders, and where training starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from torch import Tensor, nn

from tg_mlc.models.lamp import LaMP

if TYPE_CHECKING:
    from tg_mlc.datasets import MultiLabelDataset


def with_encoder(encoder: str, options: dict[str, Any]) -> dict[str, Any]:
    """Options of a model with feature message passing among the components, or without.

    Raises:
        ValueError: If the name is neither :obj:`"fmp"` nor :obj:`"emb"`.
    """
    if encoder not in ("fmp", "emb"):
        raise ValueError(f"Expected 'encoder' to be 'fmp' or 'emb' (got '{encoder}')")
    return options if encoder == "fmp" else {**options, "num_feature_layers": 0}


def start_from_evidence(model: LaMP, train: MultiLabelDataset) -> bool:
    """Lets a model start with what the scores that training samples carry mean, and its messages, unless the readout is
    tied, with nothing to add; says whether there are such scores.
    """
    key: str = getattr(model.evidence, "key", "")
    if model.skip is None or key not in train[0]:
        return False
    model.skip.start_from_scores(train.rows(key), train.y, cast(Tensor, model.readout.bias))
    if not model.readout.tied:
        nn.init.zeros_(model.readout.weight)
    return True
