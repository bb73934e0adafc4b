"""Factory of label message passing over molecules, as we recommend it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from torch import Tensor, nn
from torch_geometric.data import Data

from tg_mlc.models._start import start_from_evidence, with_encoder
from tg_mlc.models.lamp import LaMP
from tg_mlc.nn.encoders import (
    GivenEvidence,
    JointEncoder,
    LinearPath,
    LogCounts,
    MoleculeEncoder,
    QuantileScaler,
    VectorEncoder,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tg_mlc.datasets import MultiLabelDataset

#: The vectors that describe a molecule as a whole, by the attribute that holds them.
VECTORS = ("morgan", "atom_pair", "torsion", "maccs", "descriptors")


def molecule_lamp(
    train: MultiLabelDataset,
    label_graph: Data,
    encoder: Literal["fmp", "emb", "vectors"] = "fmp",
    *,
    channels: int = 64,
    num_components: int = 4,
    vector_dropout: float = 0.5,
    vectors: Sequence[str] = VECTORS,
    **kwargs: Any,
) -> LaMP:
    r"""Builds a :class:`~tg_mlc.models.LaMP` for molecules.

    Its components are the atoms. If the samples have been through :class:`~tg_mlc.data.transforms.Fingerprint`
    or :class:`~tg_mlc.data.transforms.MoleculeDescriptors`, each of these vectors becomes a few more components. The
    readout starts from the frequency of every label.

    Samples with an attribute :obj:`evidence`, scores :math:`(L, C)` of other classifiers relative to the frequency of
    every label, give a model that starts with what these mean (see
    :meth:`~tg_mlc.nn.encoders.SharedLogits.start_from_scores`), which training leaves as it is, and messages with
    nothing to add. In a model of samples without it, a linear path leads from the vectors to the logits.

    Args:
        train (MultiLabelDataset): The training samples, which scale the descriptors and give the frequencies.
        label_graph (LabelGraph): The label graph.
        encoder (str, optional): :obj:`"fmp"` for feature message passing along the bonds, :obj:`"emb"` for none, and
            :obj:`"vectors"` to leave out the atoms. (default: :obj:`"fmp"`)
        channels (int, optional): Size of all states. (default: :obj:`64`)
        num_components (int, optional): Number of components that a vector becomes. (default: :obj:`4`)
        vector_dropout (float, optional): Dropout on the entries of the vectors. (default: :obj:`0.5`)
        vectors (Sequence, optional): The vectors to take, as far as the samples have them. (default: all)
        **kwargs (optional): Additional arguments of :class:`~tg_mlc.models.LaMP`.

    Raises:
        ValueError: If the atoms are left out and there is no vector.
    """
    encoders = vector_encoders(train, channels, num_components, vector_dropout, vectors)
    atoms = [] if encoder == "vectors" else [MoleculeEncoder(channels)]
    if not atoms and not encoders:
        raise ValueError(f"Expected samples with one of {tuple(vectors)} for encoder 'vectors' (got {train[0]})")
    evidence = GivenEvidence(train[0].evidence.size(-1)) if "evidence" in train[0] else None
    linear_path = LinearPath(encoders, train.y.size(1)) if encoders and evidence is None else None
    options = kwargs if evidence is None else {"evidence": evidence, "evidence_skip": True, **kwargs}
    model = LaMP(
        JointEncoder([*atoms, *encoders]) if encoders else atoms[0],
        label_graph,
        **with_encoder("emb" if encoder == "vectors" else encoder, options),
    )
    model.linear_path = linear_path
    model.readout.start_from_frequencies(train.y)
    if start_from_evidence(model, train) and model.skip is not None:
        # It is the best for these scores already; messages alone have something to learn.
        model.skip.requires_grad_(False)
    return model


def vector_encoders(
    train: MultiLabelDataset,
    channels: int,
    num_components: int = 1,
    dropout: float = 0.5,
    keys: Sequence[str] = VECTORS,
) -> list[VectorEncoder]:
    """An encoder for each of the vectors that the training samples have."""
    vectors = {key: train.rows(key) for key in keys if key in train[0]}
    return [
        VectorEncoder(
            values.size(1), channels, num_components, key=key, scaling=scaling_of(key, values), dropout=dropout
        )
        for key, values in vectors.items()
    ]


def scaling_of(key: str, values: Tensor) -> nn.Module:
    """What brings one of the :obj:`VECTORS` to a scale for linear layers and kernels, fitted to training samples."""
    return QuantileScaler(values.size(1)).fit(values) if key == "descriptors" else LogCounts()
