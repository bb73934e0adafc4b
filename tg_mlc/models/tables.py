"""Factory of label message passing over words or vectors, as we recommend it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from torch import nn
from torch_geometric.data import Data

from tg_mlc.data.bags import bag_of_words
from tg_mlc.models._start import start_from_evidence, with_encoder
from tg_mlc.models.lamp import LaMP
from tg_mlc.nn.encoders import (
    BagEncoder,
    Evidence,
    KernelEvidence,
    LinearEvidence,
    SequenceEncoder,
    StackedEvidence,
    VectorEncoder,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tg_mlc.baselines import KernelRidgeBaseline, LinearBaseline
    from tg_mlc.datasets import MultiLabelDataset


def table_lamp(
    train: MultiLabelDataset,
    label_graph: Data,
    encoder: Literal["fmp", "emb"] = "emb",
    *,
    channels: int = 64,
    num_components: int = 8,
    input_dropout: float = 0.2,
    frequency_strength: float = 0.5,
    latent: bool = False,
    evidence: Sequence[LinearBaseline | KernelRidgeBaseline] = (),
    **kwargs: Any,
) -> LaMP:
    r"""Builds a :class:`~tg_mlc.models.LaMP` for bags of words, sequences of words, or vectors.

    Its components are the words, or :obj:`num_components` linear images of the vector. The bias of the
    readout starts between the mean frequency of all labels and that of every label. With :obj:`evidence_skip` and
    samples that carry their scores, the model starts with what these scores mean (see
    :meth:`~tg_mlc.nn.encoders.SharedLogits.start_from_scores`), and messages, unless the readout is tied, with nothing
    to add.

    Args:
        train (MultiLabelDataset): The training samples, which say what kind they are, and give the frequencies.
        label_graph (LabelGraph): The label graph.
        encoder (str, optional): :obj:`"fmp"` for feature message passing among the components, :obj:`"emb"` for none.
            (default: :obj:`"emb"`)
        channels (int, optional): Size of all states. (default: :obj:`64`)
        num_components (int, optional): Number of components that a vector becomes. (default: :obj:`8`)
        input_dropout (float, optional): Dropout on words, or on the entries of a vector. (default: :obj:`0.2`)
        frequency_strength (float, optional): How far the readout starts from the frequency of every label (see
            :meth:`~tg_mlc.nn.LabelReadout.start_from_frequencies`). (default: :obj:`0.5`)
        latent (bool, optional): If set to :obj:`True`, embeddings of the words of bags start from a latent semantic
            analysis of the training documents (see :meth:`~tg_mlc.nn.encoders.BagEncoder.start_from_documents`).
            (default: :obj:`False`)
        evidence (Sequence, optional): Fitted classifiers, whose scores labels know and pass on (see
            :class:`~tg_mlc.nn.encoders.Evidence`): :class:`~tg_mlc.baselines.LinearBaseline`,
            :class:`~tg_mlc.baselines.KernelRidgeBaseline`. (default: :obj:`()`)
        **kwargs (optional): Additional arguments of :class:`~tg_mlc.models.LaMP`.

    Raises:
        ValueError: If the samples are neither bags, sequences nor vectors, or sequences with :obj:`evidence`.
    """
    if evidence and train.kind == "sequence":
        raise ValueError(
            "Expected bags or vectors with 'evidence', as such classifiers weigh words (got sequences); see "
            "'tf_idf' and 'with_words' of tg_mlc.data.bags"
        )
    inputs = _inputs(train, channels, num_components, input_dropout)
    if latent and isinstance(inputs, BagEncoder):
        inputs.start_from_documents(bag_of_words(train))
    model = LaMP(inputs, label_graph, evidence=_evidence(evidence), **with_encoder(encoder, kwargs))
    model.readout.start_from_frequencies(train.y, frequency_strength)
    start_from_evidence(model, train)
    return model


def _inputs(train: MultiLabelDataset, channels: int, num_components: int, dropout: float) -> nn.Module:
    size = cast(int, train.num_inputs)
    if train.kind == "bag":
        return BagEncoder(size, channels, dropout=dropout, normalized="weight" in train[0])
    if train.kind == "sequence":
        return SequenceEncoder(size, channels)
    if train.kind == "vector":
        return VectorEncoder(size, channels, num_components, dropout=dropout)
    raise ValueError(f"Expected samples of kind 'bag', 'sequence' or 'vector' (got {train.kind!r})")


def _evidence(classifiers: Sequence[LinearBaseline | KernelRidgeBaseline]) -> Evidence | None:
    if not classifiers:
        return None
    from tg_mlc.baselines import LinearBaseline

    parts = [LinearEvidence.of(c) if isinstance(c, LinearBaseline) else KernelEvidence.of(c) for c in classifiers]
    return StackedEvidence(*parts)
