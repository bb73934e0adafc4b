"""Encoders for the inputs of a data set, which all models share."""

from __future__ import annotations

from typing import Any

from torch import nn

from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.bags import bag_of_words
from tg_mlc.inputs.kind import EncoderOptions
from tg_mlc.inputs.kinds import kind_of


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
    """Makes the encoder of samples: of words, of a vector, of the atoms of a molecule, or of DNA.

    Args:
        train (MultiLabelDataset): The training samples.
        channels (int): Size of all states.
        num_components (int, optional): Number of components that a vector becomes. (default: :obj:`8`)
        input_dropout (float, optional): Dropout on words of bags, or on the entries of a vector. (default: :obj:`0.2`)
        min_df (int, optional): Number of training documents from which a word of a bag is kept. (default: :obj:`1`)
        latent (bool, optional): If set to :obj:`True`, embeddings of the words of bags start from a latent semantic
            analysis of the training documents (see :meth:`~tg_mlc.nn.encoders.BagEncoder.start_from_documents`).
            (default: :obj:`False`)
        given_labels (bool, optional): If set to :obj:`True`, labels that are given become components (see
            :class:`~tg_mlc.nn.encoders.GivenComponents`). (default: :obj:`False`)

    Raises:
        ValueError: If the samples are of no kind that has an encoder.
    """
    from tg_mlc.nn.encoders import BagEncoder, GivenComponents

    options: EncoderOptions = {"num_components": num_components, "input_dropout": input_dropout, "min_df": min_df}
    encoder = kind_of(train).encoder(train, channels, **options)
    if latent and isinstance(encoder, BagEncoder) and not train.y.isnan().all():
        encoder.start_from_documents(bag_of_words(train))
    return GivenComponents(encoder, train.num_labels) if given_labels else encoder


def pop_input_encoder(train: MultiLabelDataset, channels: int, options: dict[str, Any]) -> nn.Module:
    """Makes the encoder by :func:`input_encoder`, whose arguments are removed from those of a whole model."""
    taken = {key: options.pop(key) for key in (input_encoder.__kwdefaults__ or {}) if key in options}
    return input_encoder(train, channels, **taken)
