"""Encoders that fit the inputs of a data set, for any model of the family."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.bags import bag_of_words

if TYPE_CHECKING:
    import scipy.sparse as sp

    from tg_mlc.nn.encoders import BagEncoder, SequenceEncoder, VectorEncoder


def input_encoder(
    train: MultiLabelDataset,
    channels: int,
    *,
    num_components: int = 8,
    input_dropout: float = 0.2,
    min_df: int = 1,
    latent: bool = False,
    given_labels: bool = False,
) -> nn.Module:
    """Makes the encoder of bags or sequences of words, of vectors, or of the atoms of molecules.

    Args:
        train (MultiLabelDataset): The training samples, which say what kind they are.
        channels (int): Size of all states.
        num_components (int, optional): Number of components that a vector becomes. (default: :obj:`8`)
        input_dropout (float, optional): Dropout on words of bags, or on the entries of a vector. (default: :obj:`0.2`)
        min_df (int, optional): Number of training documents from which a word of a bag is kept. (default: :obj:`1`)
        latent (bool, optional): If set to :obj:`True`, embeddings of the words of bags start from a latent semantic
            analysis of the training documents (see :meth:`~tg_mlc.nn.encoders.BagEncoder.start_from_documents`).
            (default: :obj:`False`)
        given_labels (bool, optional): If set to :obj:`True`, labels that are known already become components (see
            :class:`~tg_mlc.nn.encoders.GivenComponents`). (default: :obj:`False`)

    Raises:
        ValueError: If no encoder is known for this kind of samples.
    """
    from tg_mlc.nn.encoders import BagEncoder, GivenComponents, MoleculeEncoder

    encoder: nn.Module
    if train.kind is None and "edge_attr" in train[0]:
        encoder = MoleculeEncoder(channels)
    else:
        encoder = table_encoder(train, channels, num_components, input_dropout, min_df)
    if latent and isinstance(encoder, BagEncoder) and not train.y.isnan().all():
        encoder.start_from_documents(bag_of_words(train))
    return GivenComponents(encoder, train.num_labels) if given_labels else encoder


def check_encoder(encoder: str) -> None:
    """Refuses what is neither with nor without messages among components."""
    if encoder not in ("fmp", "emb"):
        raise ValueError(f"Expected 'encoder' to be 'fmp' or 'emb' (got {encoder!r})")


def pop_input_encoder(train: MultiLabelDataset, channels: int, options: dict[str, Any]) -> nn.Module:
    """The encoder by :func:`input_encoder`, whose arguments are taken out of those of a whole model."""
    taken = {key: options.pop(key) for key in (input_encoder.__kwdefaults__ or {}) if key in options}
    return input_encoder(train, channels, **taken)


def table_encoder(
    train: MultiLabelDataset, channels: int, num_components: int, dropout: float, min_df: int
) -> BagEncoder | SequenceEncoder | VectorEncoder:
    """The encoder of words or vectors; see :func:`input_encoder`."""
    from tg_mlc.nn.encoders import BagEncoder, SequenceEncoder, VectorEncoder

    size = cast(int, train.num_inputs)
    if train.kind == "bag":
        kept = kept_words(bag_of_words(train), min_df) if min_df > 1 else None
        return BagEncoder(size, channels, dropout=dropout, normalized="weight" in train[0], kept=kept)
    if train.kind == "sequence":
        return SequenceEncoder(size, channels)
    if train.kind == "vector":
        return VectorEncoder(size, channels, num_components, dropout=dropout)
    raise ValueError(f"Expected samples of kind 'bag', 'sequence' or 'vector', or molecules (got {train.kind!r})")


def kept_words(documents: sp.csr_array, min_df: int) -> Tensor:
    """A mask of the words that occur in at least so many documents."""
    return torch.from_numpy(np.asarray((documents != 0).sum(axis=0)).ravel() >= min_df)
