"""Factories that build LaMP with the recommended encoder for a kind of input."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from tg_mlc._names import shorten
from tg_mlc._options import check_flag
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.bags import bag_of_words
from tg_mlc.inputs import kind_of
from tg_mlc.inputs.kind import EncoderOptions
from tg_mlc.inputs.molecules import molecule_scaler
from tg_mlc.inputs.smiles import VECTORS
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
    r"""Builds a :class:`~tg_mlc.models.LaMP` for any kind of input with the encoder of that kind.

    The components are words, or :obj:`num_components` linear images of a vector. If samples have
    an attribute :obj:`base_scores`, scores :math:`(L, C)` of other classifiers (see
    :class:`~tg_mlc.stacking.StackingFeatures`), labels add these to their states. With
    :obj:`score_skip`, the model starts from logits that are fitted to these scores (see
    :meth:`~tg_mlc.nn.base_scores.SharedLogits.start_from_scores`). Unless the readout is tied, the
    weight of the readout then starts at zero.

    Args:
        train (MultiLabelDataset): Training samples. Their label frequencies initialise the readout.
        label_graph (LabelGraph): The label graph.
        node_messages (bool, optional): Whether components send messages to each other, in
            :obj:`num_feature_layers` layers. (default: :obj:`False`)
        channels (int, optional): Size of all states. (default: :obj:`64`)
        num_components (int, optional): Number of components of a vector. (default: :obj:`8`)
        input_dropout (float, optional): Dropout on words, or on the entries of a vector.
            (default: :obj:`0.2`)
        frequency_strength (float, optional): The initial bias of the readout, between the mean
            frequency of labels (0) and the frequency of each label (1). (default: :obj:`0.5`)
        latent (bool, optional): Whether word embeddings of bags start from a latent semantic
            analysis, and label embeddings from documents (see :func:`start_from_documents`).
            (default: :obj:`False`)
        min_df (int, optional): Smallest number of training documents of a word component.
            (default: :obj:`1`)
        **kwargs (optional): Additional arguments of :class:`~tg_mlc.models.LaMP`.

    Raises:
        ValueError: If no encoder supports the kind of the samples.
    """
    options: EncoderOptions = {"num_components": num_components, "min_df": min_df}
    options["input_dropout"] = input_dropout
    inputs = kind_of(train).encoder(train, channels, **options)
    kwargs |= {"frequency_strength": frequency_strength, "latent": latent}
    return compose(inputs, train, label_graph, node_messages, **kwargs)


@builder
def mixed_lamp(
    train: MultiLabelDataset,
    label_graph: Data,
    *,
    channels: int = 64,
    num_components: int = 8,
    input_dropout: float = 0.2,
    **kwargs: Any,
) -> LaMP:
    r"""Builds a :class:`~tg_mlc.models.LaMP` for samples of several parts, whose labels attend to
    the components of all parts (see :class:`~tg_mlc.nn.encoders.MixedEncoder`).

    Components send messages along the edges of their parts, such as bonds, if any part has edges.

    Args:
        train, label_graph, channels, num_components, input_dropout: As in :func:`table_lamp`.
        **kwargs (optional): As in :func:`table_lamp`.
    """
    options: EncoderOptions = {"num_components": num_components, "input_dropout": input_dropout}
    inputs = kind_of(train).encoder(train, channels, **options)
    return compose(inputs, train, label_graph, inputs.edge_dim is not None, **kwargs)


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

    The components are the atoms, and :obj:`num_components` for each vector that
    :class:`~tg_mlc.inputs.Fingerprint` or :class:`~tg_mlc.inputs.MoleculeDescriptors` added.

    If samples have an attribute :obj:`base_scores`, scores :math:`(L, C)` of other classifiers
    relative to label frequencies, the model starts from logits that are fitted to these scores.
    The fit stays fixed in training. Without base scores, the model adds a linear path for vectors.

    Args:
        train, label_graph: As in :func:`table_lamp`; scalers of vectors are fitted to samples.
        node_messages (bool, optional): Whether atoms send messages along their bonds.
            (default: :obj:`True`)
        channels, num_components (optional): As in :func:`table_lamp`.
            (default: :obj:`64` and :obj:`4`)
        vector_dropout (float, optional): Dropout on the entries of the vectors.
            (default: :obj:`0.5`)
        vectors (Sequence, optional): The vectors to use, if samples have them. (default: all)
        atoms (bool, optional): Whether atoms are components. (default: :obj:`True`)
        **kwargs (optional): Additional arguments of :class:`~tg_mlc.models.LaMP`.

    Raises:
        ValueError: If :obj:`atoms` is :obj:`False` and samples have none of the vectors.
    """
    check_flag("node_messages", node_messages)
    encoders = vector_encoders(train, channels, num_components, vector_dropout, vectors)
    if not atoms and not encoders:
        expected = f"Expected samples with one of {tuple(vectors)} for atoms=False"
        raise ValueError(f"{expected} (got {shorten(train[0])})")
    atom_encoders = [MoleculeEncoder(channels)] if atoms else []
    has_scores = "base_scores" in train[0]
    encoder = JointEncoder([*atom_encoders, *encoders]) if encoders else atom_encoders[0]
    kwargs = {"score_skip": has_scores, **kwargs}
    model = compose(encoder, train, label_graph, node_messages and atoms, **kwargs)
    has_linear_path = encoders and not has_scores
    model.linear_path = LinearPath(encoders, train.y.size(1)) if has_linear_path else None
    if has_scores and model.score_skip is not None:
        # The fit to base scores is final; training changes only other parameters.
        model.score_skip.requires_grad_(False)
    return model


def vector_encoders(
    train: MultiLabelDataset,
    channels: int,
    num_components: int = 1,
    dropout: float = 0.5,
    keys: Sequence[str] = VECTORS,
) -> list[VectorEncoder]:
    """Returns one encoder with a fitted scaler for each vector of the training samples."""
    encoders = []
    for key in [key for key in keys if key in train[0]]:
        x = train.rows(key)
        options: Any = {"scaling": molecule_scaler(key, x.size(1)).fit(x), "dropout": dropout}
        encoders.append(VectorEncoder(x.size(1), channels, num_components, key=key, **options))
    return encoders


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
    r"""Builds a :class:`~tg_mlc.models.LaMP` with a convolution as encoder for DNA.

    Args:
        train, label_graph, node_messages, channels: As in :func:`table_lamp`. (default of
            :obj:`node_messages` and :obj:`channels`: :obj:`True` and :obj:`64`)
        kernel_size (int, optional): The length of the convolution. (default: :obj:`16`)
        pool (int, optional): The number of letters per component. (default: :obj:`4`)
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
        train, label_graph, node_messages, channels: As in :func:`table_lamp`. (default of
            :obj:`node_messages` and :obj:`channels`: :obj:`False` and :obj:`32`)
        **kwargs (optional): Additional arguments of :class:`~tg_mlc.models.LaMP`.
    """
    inputs = NodeEncoder(train[0].x.size(1), channels)
    return compose(inputs, train, label_graph, node_messages, **kwargs)


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
    """Builds a LaMP that starts from label frequencies, from base scores if samples have any, and
    with :obj:`latent` from documents. Samples without known labels determine only sizes.
    """
    check_flag("node_messages", node_messages)
    has_scores, is_known = "base_scores" in train[0], not train.y.isnan().all()
    if has_scores and "base_scores" not in kwargs:
        kwargs["base_scores"] = BaseScores(train[0].base_scores.size(-1), score_skip=score_skip)
    if not node_messages:
        kwargs["num_feature_layers"] = 0
    model = LaMP(encoder, label_graph, **kwargs)
    model.readout.start_from_frequencies(train.y, frequency_strength)
    key: str = getattr(model.base_scores, "key", "")
    if model.score_skip is not None and key in train[0] and is_known:
        bias = cast(Tensor, model.readout.bias)
        model.score_skip.start_from_scores(train.rows(key), train.y, bias)
        # Label states add nothing to the fitted logits at first.
        if not model.readout.tied:
            nn.init.zeros_(model.readout.weight)
    if latent and isinstance(encoder, BagEncoder) and is_known:
        start_from_documents(model, bag_of_words(train), train.y)
    return model


@torch.no_grad()
def start_from_documents(model: LaMP, documents: sp.csr_array, y: Tensor) -> None:
    r"""Initialises words by :meth:`~tg_mlc.nn.encoders.BagEncoder.start_from_documents`, labels by
    the mean of their documents minus the overall mean, and key weights by query weights.

    .. math::
        \mathbf{W}^y_i = \sqrt{d} \,
        \frac{\mathbf{E}^{\top} (\bar{\mathbf{x}}_i - \bar{\mathbf{x}})}
        {\lVert \mathbf{E}^{\top} (\bar{\mathbf{x}}_i - \bar{\mathbf{x}}) \rVert}, \qquad
        \mathbf{W}^k = \mathbf{W}^q

    with the embeddings :math:`\mathbf{E}` of the words, the mean :math:`\bar{\mathbf{x}}_i` of the
    documents with label :math:`i`, and the mean of all documents. Labels thus attend first to the
    words of their documents, which rare labels would hardly learn. Labels without documents, and
    all labels of a tied readout, keep their initial embeddings.
    """
    encoder = cast(BagEncoder, model.encoder)
    encoder.start_from_documents(documents)
    if model.readout.tied:
        return
    words = encoder.embedding.weight.cpu().numpy()
    positive = y.nan_to_num(0.0).cpu().numpy()
    has_documents = positive.sum(axis=0) > 0
    weights = (positive / np.maximum(positive.sum(axis=0), 1)).T[has_documents]
    mean = np.asarray(documents.mean(axis=0)).ravel()
    centres = np.asarray(weights @ documents) @ words - mean @ words
    embeddings = nn.functional.normalize(torch.from_numpy(centres)) * encoder.channels**0.5
    labels = model.labels.embedding.weight
    labels[torch.from_numpy(has_documents)] = embeddings.to(labels)
    for conv in cast("Iterable[FeatureToLabelConv]", model.labels.feature_to_label):
        conv.lin_key.weight.copy_(conv.lin_query.weight)
