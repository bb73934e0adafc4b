"""Factories of label message passing: LaMP with the encoder of an input, as we recommend it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from tg_mlc._options import check_flag
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.bags import bag_of_words
from tg_mlc.inputs import kind_of
from tg_mlc.inputs.kind import EncoderOptions
from tg_mlc.inputs.molecules import VECTORS, molecule_scaler
from tg_mlc.models.builders import builder
from tg_mlc.models.lamp import LaMP
from tg_mlc.nn import FeatureToLabelConv
from tg_mlc.nn.base_scores import BaseScores
from tg_mlc.nn.encoders import (
    BagEncoder,
    DNAEncoder,
    JointEncoder,
    LinearPath,
    MoleculeEncoder,
    NodeEncoder,
    VectorEncoder,
)

if TYPE_CHECKING:
    import scipy.sparse as sp


@builder
def table_lamp(
    train: MultiLabelDataset,
    label_graph: Data,
    node_messages: bool = False,
    *,
    channels: int = 64,
    num_components: int = 8,
    input_dropout: float = 0.2,
    frequency_strength: float = 0.5,
    latent: bool = False,
    min_df: int = 1,
    **kwargs: Any,
) -> LaMP:
    r"""Builds a :class:`~tg_mlc.models.LaMP` for bags of words, sequences of words, vectors, and
    any other kind of input, with the encoder of that kind.

    Its components are the words, or :obj:`num_components` linear images of the vector. The bias of
    the readout starts between the mean frequency of all labels and that of every label. If samples
    have an attribute :obj:`base_scores`, scores :math:`(L, C)` of other classifiers (see
    :class:`~tg_mlc.stacking.StackingFeatures`), labels take in their own and pass them on. With
    :obj:`score_skip`, the model starts from logits that are fitted to these scores (see
    :meth:`~tg_mlc.nn.base_scores.SharedLogits.start_from_scores`), to which messages, unless the
    readout is tied, contribute nothing at first.

    Args:
        train (MultiLabelDataset): The training samples, from whose labels the readout starts.
        label_graph (LabelGraph): The label graph.
        node_messages (bool, optional): If set to :obj:`False`, components do not send messages to
            each other, whatever :obj:`num_feature_layers` says. (default: :obj:`False`)
        channels (int, optional): Size of all states. (default: :obj:`64`)
        num_components (int, optional): Number of components that a vector becomes. (default:
            :obj:`8`)
        input_dropout (float, optional): Dropout on words, or on the entries of a vector. (default:
            :obj:`0.2`)
        frequency_strength (float, optional): How far the readout starts from the frequency of every
            label (see :meth:`~tg_mlc.nn.LabelHead.start_from_frequencies`). (default: :obj:`0.5`)
        latent (bool, optional): If set to :obj:`True`, embeddings of the words of bags start from a
            latent semantic analysis of the training documents (see
            :meth:`~tg_mlc.nn.encoders.BagEncoder.start_from_documents`), and labels at the centres
            of their training documents in it, less that of all documents, with keys as queries.
            (default: :obj:`False`)
        min_df (int, optional): Number of training documents from which a word of a bag is attended
            to; rarer ones are left out. (default: :obj:`1`)
        **kwargs (optional): Additional arguments of :class:`~tg_mlc.models.LaMP`.

    Raises:
        ValueError: If the samples are of no kind that has an encoder.
    """
    options: EncoderOptions = {
        "num_components": num_components,
        "input_dropout": input_dropout,
        "min_df": min_df,
    }
    inputs = kind_of(train).encoder(train, channels, **options)
    return compose(
        inputs, train, label_graph, node_messages, frequency_strength, latent=latent, **kwargs
    )


@builder
def molecule_lamp(
    train: MultiLabelDataset,
    label_graph: Data,
    node_messages: bool = True,
    *,
    channels: int = 64,
    num_components: int = 4,
    vector_dropout: float = 0.5,
    vectors: Sequence[str] = VECTORS,
    atoms: bool = True,
    **kwargs: Any,
) -> LaMP:
    r"""Builds a :class:`~tg_mlc.models.LaMP` for molecules.

    Its components are the atoms. If the samples have been through
    :class:`~tg_mlc.inputs.Fingerprint` or :class:`~tg_mlc.inputs.MoleculeDescriptors`, each of
    these vectors becomes a few more components. The readout starts from the frequency of every
    label.

    Samples with an attribute :obj:`base_scores`, scores :math:`(L, C)` of other classifiers
    relative to the frequency of every label, give a model that starts with the meaning of these
    (see :meth:`~tg_mlc.nn.base_scores.SharedLogits.start_from_scores`), which training leaves
    unchanged, and messages with nothing to add. In a model of samples without it, a linear path
    leads from the vectors to the logits.

    Args:
        train, label_graph: As in :func:`table_lamp`; the training samples also scale the
        descriptors.
        node_messages (bool, optional): If set to :obj:`False`, atoms do not send messages along
            their bonds, whatever :obj:`num_feature_layers` says. (default: :obj:`True`)
        channels, num_components (optional): As in :func:`table_lamp`. (default: :obj:`64` and
            :obj:`4`)
        vector_dropout (float, optional): Dropout on the entries of the vectors. (default:
            :obj:`0.5`)
        vectors (Sequence, optional): The vectors to take, as far as the samples have them.
            (default: all)
        atoms (bool, optional): If set to :obj:`False`, the atoms are left out, and only the vectors
            are components, without messages among them. (default: :obj:`True`)
        **kwargs (optional): Additional arguments of :class:`~tg_mlc.models.LaMP`.

    Raises:
        ValueError: If the atoms are left out and there is no vector.
    """
    check_flag("node_messages", node_messages)
    encoders = vector_encoders(train, channels, num_components, vector_dropout, vectors)
    if not atoms and not encoders:
        raise ValueError(
            f"Expected samples with one of {tuple(vectors)} for atoms=False (got {train[0]})"
        )
    of_atoms = [MoleculeEncoder(channels)] if atoms else []
    rated = "base_scores" in train[0]
    model = compose(
        JointEncoder([*of_atoms, *encoders]) if encoders else of_atoms[0],
        train,
        label_graph,
        node_messages and atoms,
        **{"score_skip": rated, **kwargs},
    )
    model.linear_path = LinearPath(encoders, train.y.size(1)) if encoders and not rated else None
    if rated and model.score_skip is not None:
        # It is the best for these scores already; messages alone have something to learn.
        model.score_skip.requires_grad_(False)
    return model


def vector_encoders(
    train: MultiLabelDataset,
    channels: int,
    num_components: int = 1,
    dropout: float = 0.5,
    keys: Sequence[str] = VECTORS,
) -> list[VectorEncoder]:
    """An encoder for each of the vectors of the training samples, to which its scaler is fitted."""
    vectors = {key: train.rows(key) for key in keys if key in train[0]}
    scalers = {key: molecule_scaler(key, x.size(1)).fit(x) for key, x in vectors.items()}
    return [
        VectorEncoder(
            x.size(1), channels, num_components, key=key, scaling=scalers[key], dropout=dropout
        )
        for key, x in vectors.items()
    ]


@builder
def dna_lamp(
    train: MultiLabelDataset,
    label_graph: Data,
    node_messages: bool = True,
    *,
    channels: int = 64,
    kernel_size: int = 16,
    pool: int = 4,
    **kwargs: Any,
) -> LaMP:
    r"""Builds a :class:`~tg_mlc.models.LaMP` whose components are pieces of DNA under a
    convolution.

    Args:
        train, label_graph: As in :func:`table_lamp`.
        node_messages, channels (optional): As there. (default: :obj:`True` and :obj:`64`)
        kernel_size (int, optional): The number of letters that a convolution sees. (default:
            :obj:`16`)
        pool (int, optional): The number of letters that become one component. (default: :obj:`4`)
        **kwargs (optional): Additional arguments of :class:`~tg_mlc.models.LaMP`.
    """
    inputs = DNAEncoder(channels, kernel_size, pool, both_strands=True)
    return compose(inputs, train, label_graph, node_messages, **kwargs)


@builder
def node_lamp(
    train: MultiLabelDataset,
    label_graph: Data,
    node_messages: bool = False,
    *,
    channels: int = 32,
    **kwargs: Any,
) -> LaMP:
    r"""Builds a :class:`~tg_mlc.models.LaMP` whose components are nodes with features.

    Args:
        train, label_graph: As in :func:`table_lamp`.
        node_messages, channels (optional): As there. (default: :obj:`False` and :obj:`32`)
        **kwargs (optional): Additional arguments of :class:`~tg_mlc.models.LaMP`.
    """
    return compose(
        NodeEncoder(train[0].x.size(1), channels), train, label_graph, node_messages, **kwargs
    )


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
    """Builds a LaMP that takes the base scores of its samples, if they have any, and starts from
    statistics of them.

    The readout starts from the frequencies of labels, logits from the meaning of the base scores,
    and with :obj:`latent` embeddings from the words of documents; of samples with unknown labels
    alone, nothing is taken.
    """
    check_flag("node_messages", node_messages)
    rated, is_known = "base_scores" in train[0], not train.y.isnan().all()
    if rated and "base_scores" not in kwargs:
        kwargs["base_scores"] = BaseScores(train[0].base_scores.size(-1), score_skip=score_skip)
    model = LaMP(
        encoder, label_graph, **(kwargs if node_messages else {**kwargs, "num_feature_layers": 0})
    )
    model.readout.start_from_frequencies(train.y, frequency_strength)
    key: str = getattr(model.base_scores, "key", "")
    if model.score_skip is not None and key in train[0] and is_known:
        model.score_skip.start_from_scores(
            train.rows(key), train.y, cast(Tensor, model.readout.bias)
        )
        if not model.readout.tied:  # the base scores alone: messages have nothing to add
            nn.init.zeros_(model.readout.weight)
    if latent and isinstance(encoder, BagEncoder) and is_known:
        start_from_documents(model, bag_of_words(train), train.y)
    return model


@torch.no_grad()
def start_from_documents(model: LaMP, documents: sp.csr_array, y: Tensor) -> None:
    r"""Starts the words of a model as :meth:`~tg_mlc.nn.encoders.BagEncoder.start_from_documents`
    does, every label at what sets its documents apart, and keys as queries.

    .. math::
        \mathbf{W}^y_i = \sqrt{d} \,
        \frac{\mathbf{E}^{\top} (\bar{\mathbf{x}}_i - \bar{\mathbf{x}})}
        {\lVert \mathbf{E}^{\top} (\bar{\mathbf{x}}_i - \bar{\mathbf{x}}) \rVert}, \qquad
        \mathbf{W}^k = \mathbf{W}^q

    with the embeddings :math:`\mathbf{E}` of the words, the mean :math:`\bar{\mathbf{x}}_i` of the
    documents that have label :math:`i` and that of all documents. A label thus attends first to the
    words by which its documents differ, which a label of few documents would hardly find otherwise.
    Labels of no document, and all labels if the readout is tied to them, keep their start.
    """
    encoder = cast(BagEncoder, model.encoder)
    encoder.start_from_documents(documents)
    if model.readout.tied:
        return
    words = encoder.embedding.weight.cpu().numpy()
    positive = y.nan_to_num(0.0).cpu().numpy()
    present = positive.sum(axis=0) > 0
    shares = (positive / np.maximum(positive.sum(axis=0), 1)).T[present]
    centres = (
        np.asarray(shares @ documents) @ words - np.asarray(documents.mean(axis=0)).ravel() @ words
    )
    states = nn.functional.normalize(torch.from_numpy(centres)) * encoder.channels**0.5
    labels = model.labels.embedding.weight
    labels[torch.from_numpy(present)] = states.to(labels)
    for conv in cast("Iterable[FeatureToLabelConv]", model.labels.feature_to_label):
        conv.lin_key.weight.copy_(conv.lin_query.weight)
