"""Composition of LaMP from encoders, with a start from statistics of the training samples."""

from __future__ import annotations

from typing import Any, cast

from torch import Tensor, nn
from torch_geometric.data import Data

from tg_mlc._options import check_flag
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.bags import bag_of_words
from tg_mlc.models._documents import start_from_documents
from tg_mlc.models.lamp import LaMP
from tg_mlc.nn.base_scores import BaseScores
from tg_mlc.nn.encoders import BagEncoder


def compose(
    encoder: nn.Module,
    train: MultiLabelDataset,
    label_graph: Data,
    node_messages: bool,
    frequency_strength: float = 1.0,
    score_skip: bool = False,
    latent: bool = False,
    **kwargs: Any,
) -> LaMP:
    """A LaMP with feature message passing or without, that takes the base scores of its samples, if they have any, and
    starts from the frequencies of labels and what the scores of training samples mean (unless nobody knows their
    labels), and with :obj:`latent` from the words of documents.
    """
    check_flag("node_messages", node_messages)
    rated = "base_scores" in train[0]
    given: dict[str, Any] = (
        {"base_scores": BaseScores(train[0].base_scores.size(-1), score_skip=score_skip)} if rated else {}
    )
    options = {**given, **kwargs} if node_messages else {**given, **kwargs, "num_feature_layers": 0}
    model = LaMP(encoder, label_graph, **options)
    model.readout.start_from_frequencies(train.y, frequency_strength)
    _start_from_base_scores(model, train)
    if latent and isinstance(encoder, BagEncoder) and not train.y.isnan().all():
        start_from_documents(model, bag_of_words(train), train.y)
    return model


def _start_from_base_scores(model: LaMP, train: MultiLabelDataset) -> None:
    """Lets a model start with its base scores alone: messages, unless the readout is tied, have nothing to add."""
    key: str = getattr(model.base_scores, "key", "")
    if model.score_skip is None or key not in train[0] or train.y.isnan().all():
        return
    model.score_skip.start_from_scores(train.rows(key), train.y, cast(Tensor, model.readout.bias))
    if not model.readout.tied:
        nn.init.zeros_(model.readout.weight)
