"""Label message passing over molecules, as we recommend it."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch_geometric.data import Data, Dataset

from tg_mlc.models.lamp import LaMP
from tg_mlc.nn.encoders import JointEncoder, LinearPath, LogCounts, MoleculeEncoder, QuantileScaler, VectorEncoder

#: The vectors that describe a molecule as a whole, by the attribute that holds them.
VECTORS = ("morgan", "atom_pair", "torsion", "maccs", "descriptors")


def molecule_lamp(
    train: Dataset,
    label_graph: Data,
    encoder: Literal["fmp", "emb", "vectors"] = "fmp",
    *,
    channels: int = 64,
    num_components: int = 4,
    vector_dropout: float = 0.5,
    **kwargs: Any,
) -> LaMP:
    r"""Builds a :class:`~tg_mlc.models.LaMP` for molecules.

    Its components are the atoms. If the samples have been through :class:`~tg_mlc.data.transforms.Fingerprint`
    or :class:`~tg_mlc.data.transforms.MoleculeDescriptors`, each of these vectors becomes a few more components, and a
    linear path leads from them to the logits. The readout starts from the frequency of every label.

    Args:
        train (Dataset): The training samples, which scale the descriptors and give the frequencies.
        label_graph (LabelGraph): The label graph.
        encoder (str, optional): :obj:`"fmp"` for feature message passing along the bonds, :obj:`"emb"` for none, and
            :obj:`"vectors"` to leave out the atoms. (default: :obj:`"fmp"`)
        channels (int, optional): Size of all states. (default: :obj:`64`)
        num_components (int, optional): Number of components that a vector becomes. (default: :obj:`4`)
        vector_dropout (float, optional): Dropout on the entries of the vectors. (default: :obj:`0.5`)
        **kwargs (optional): Additional arguments of :class:`~tg_mlc.models.LaMP`.

    Raises:
        ValueError: If the atoms are left out and there is no vector.
    """
    vectors = []
    for key in [key for key in VECTORS if key in train[0]]:
        values = torch.cat([data[key] for data in train])
        scaling = QuantileScaler(values.size(1)).fit(values) if key == "descriptors" else LogCounts()
        vectors.append(
            VectorEncoder(values.size(1), channels, num_components, key=key, scaling=scaling, dropout=vector_dropout)
        )
    atoms = [] if encoder == "vectors" else [MoleculeEncoder(channels)]
    if not atoms and not vectors:
        raise ValueError(f"Expected samples with one of {VECTORS} for encoder 'vectors' (got {train[0]})")
    y = torch.cat([data.y for data in train])
    model = LaMP(
        JointEncoder([*atoms, *vectors]) if vectors else atoms[0],
        label_graph,
        "fmp" if encoder == "fmp" else "emb",
        readout_bias=True,
        linear_path=LinearPath(vectors, y.size(1)) if vectors else None,
        **kwargs,
    )
    model.readout.start_from_frequencies(y)
    return model
