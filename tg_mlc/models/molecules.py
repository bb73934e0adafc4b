"""Factory of label message passing over molecules, as we recommend it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch_geometric.data import Data

from tg_mlc._options import check_flag
from tg_mlc.data import MultiLabelDataset
from tg_mlc.inputs.molecules import VECTORS, molecule_scaler
from tg_mlc.models._compose import compose
from tg_mlc.models.builders import builder
from tg_mlc.models.lamp import LaMP
from tg_mlc.nn.encoders import JointEncoder, LinearPath, MoleculeEncoder, VectorEncoder


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

    Its components are the atoms. If the samples have been through :class:`~tg_mlc.inputs.Fingerprint`
    or :class:`~tg_mlc.inputs.MoleculeDescriptors`, each of these vectors becomes a few more components. The
    readout starts from the frequency of every label.

    Samples with an attribute :obj:`base_scores`, scores :math:`(L, C)` of other classifiers relative to the frequency
    of
    every label, give a model that starts with what these mean (see
    :meth:`~tg_mlc.nn.base_scores.SharedLogits.start_from_scores`), which training leaves as it is, and messages with
    nothing to add. In a model of samples without it, a linear path leads from the vectors to the logits.

    Args:
        train, label_graph: As in :func:`table_lamp`; the training samples also scale the descriptors.
        node_messages (bool, optional): If set to :obj:`False`, atoms do not send messages along their bonds, whatever
            :obj:`num_feature_layers` says. (default: :obj:`True`)
        channels, num_components (optional): As in :func:`table_lamp`. (default: :obj:`64` and :obj:`4`)
        vector_dropout (float, optional): Dropout on the entries of the vectors. (default: :obj:`0.5`)
        vectors (Sequence, optional): The vectors to take, as far as the samples have them. (default: all)
        atoms (bool, optional): If set to :obj:`False`, the atoms are left out, and only the vectors are components,
            without messages among them. (default: :obj:`True`)
        **kwargs (optional): Additional arguments of :class:`~tg_mlc.models.LaMP`.

    Raises:
        ValueError: If the atoms are left out and there is no vector.
    """
    check_flag("node_messages", node_messages)
    encoders = vector_encoders(train, channels, num_components, vector_dropout, vectors)
    if not atoms and not encoders:
        raise ValueError(f"Expected samples with one of {tuple(vectors)} for atoms=False (got {train[0]})")
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
        VectorEncoder(x.size(1), channels, num_components, key=key, scaling=scalers[key], dropout=dropout)
        for key, x in vectors.items()
    ]
