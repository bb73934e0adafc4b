"""List of all kinds of input, and functions that find the kind of samples or raw inputs."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn

from tg_mlc._options import argument, check_choice
from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.data.bags import bag_of_words
from tg_mlc.inputs.components import Components, Nodes
from tg_mlc.inputs.dna import DNA
from tg_mlc.inputs.embeddings import Embeddings
from tg_mlc.inputs.kind import InputKind, View, as_texts
from tg_mlc.inputs.mixed import Mixed
from tg_mlc.inputs.molecules import Inchi, Molecules
from tg_mlc.inputs.registry import KINDS, claimed, kind_of, kinds_by_option
from tg_mlc.inputs.schema import Schema
from tg_mlc.inputs.vectors import Vectors
from tg_mlc.inputs.words import Words

KINDS += [Mixed, Embeddings, Words, Vectors, Molecules, Inchi, DNA]


def components_of(dataset: MultiLabelDataset) -> Components:
    """Returns the components of samples: a newly fitted kind, or the nodes of other graphs."""
    if dataset.kind is None and "smiles" not in dataset[0]:
        return Nodes()
    rows = torch.arange(len(dataset))
    return kind_of(dataset)().fit(dataset, Split(rows, rows[:0], rows[:0], "all samples"))


def kind_named(name: Any) -> type[InputKind]:
    """Returns the class for the :obj:`kind` of a data set. Raises ValueError if it is unknown."""
    kinds = {form.kind: kind for kind in reversed(KINDS) for form in kind.forms.values()}
    kinds.pop(None, None)
    check_choice("kind", name, tuple(map(str, kinds)))
    return kinds[name]


def infer_kind(X: Any) -> str:
    """Infers and announces the :obj:`kind` of the data set that arrays become."""
    return announce_kind(*next(filter(None, (kind.recognise(X) for kind in KINDS))))


def announce_kind(kind: str, reason: str) -> str:
    """Announces the inferred input kind, and returns it."""
    message = f"Taking the inputs as kind='{kind}' because {reason}; pass kind=... for another."
    print(message)  # noqa: T201
    return kind


def kind_of_option(option: str) -> type[InputKind]:
    """Returns the kind by its name in command-line options."""
    return next(kind for kind in KINDS if kind.option == option)


def kinds_by_form() -> dict[str, type[InputKind]]:
    """Returns the kinds by the names of the forms in which estimators take raw inputs."""
    return {form: kind for kind in KINDS for form in kind.forms}


def splits_of(options: Iterable[str]) -> tuple[str, ...]:
    """Returns the ways to choose test rows with inputs of some kinds, by their options."""
    kinds = kinds_by_option()
    return tuple(dict.fromkeys(chain.from_iterable(kinds[name].splits for name in options)))


def parts_of_schema(schema: Schema) -> dict[str, list[str]]:
    """Returns the columns of inputs by the option of their kind; none if they are all numbers and
    categories.
    """
    kinds, parts = kinds_by_columns(), dict[str, list[str]]()
    for column in schema.columns:
        options = (option for option, kind in kinds.items() if column.role in kind.roles())
        if (option := next(options, None)) is not None:
            parts.setdefault(option, []).append(column.name)
    return {} if all(kinds[option].reads_columns for option in parts) else parts


def kinds_by_columns() -> dict[str, type[InputKind]]:
    """Returns the kinds by the command-line options that specify their columns."""
    return {kind.command_option.name: kind for kind in KINDS if kind.command_option is not None}


def constant_names(dataset: MultiLabelDataset) -> list[str] | None:
    """Returns the feature names if all data sets of the kind share them, else :obj:`None`."""
    names = dataset.feature_names
    return names if any(names == kind.constant_names for kind in KINDS) else None


def infer_form(X: Any) -> str:
    """Infers the form: a sparse matrix holds bags of words, a dense one vectors, several
    matrices embeddings, and a data frame rows of several kinds if columns seem to hold texts,
    molecules or DNA; strings are SMILES if all are molecules, texts if half or more are not.
    """
    texts = as_texts(X)
    if Mixed.recognise(X) is not None:
        return "mixed"
    if texts is None and Embeddings.recognise(X) is not None:
        return "embeddings"
    if texts is None:
        return "bags" if sp.issparse(X) else "vectors"
    return "smiles" if Molecules.claims(texts) else "texts"


def claim_texts(schema: Schema, cells: Mapping[str, np.ndarray]) -> Schema:
    """Sets role and reason of the columns that :func:`claimed` yields."""
    for column, kind in claimed(schema, cells):
        column.role, option = kind.role, argument(f"{kind.option}_column", column.name)
        column.reason = f"perhaps inputs: pass {option}"
    return schema


def warn_of_claimed(
    schema: Schema, cells: Mapping[str, np.ndarray], ignored: Collection[str]
) -> None:
    """Warns of columns that may hold texts, molecules or DNA, except those in :obj:`ignored`."""
    for column, kind in claimed(schema, cells):
        name = column.name
        if name in ignored:
            continue
        use = "is a category" if column.role == "category" else "is left out"
        option, ignore = argument(f"{kind.option}_column", name), argument("ignore", [name])
        hint = f"To train on them, pass {option}; if they are none, leave the column out: {ignore}"
        message = f"Column '{name}' {use}, but its cells look like texts, molecules or DNA. {hint}"
        warnings.warn(message, stacklevel=2)


def views_of(dataset: MultiLabelDataset) -> dict[str, View]:
    """Returns the unfitted views of the kind of the samples."""
    return kind_of(dataset).make_views(dataset)


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
    """Makes the encoder of words, vectors, molecules or DNA, by the kind of the samples.

    Args:
        train (MultiLabelDataset): The training samples.
        channels (int): Size of all states.
        num_components (int, optional): Number of components that a vector becomes. (default:
            :obj:`8`)
        input_dropout (float, optional): Dropout on words of bags, or on the entries of a vector.
            (default: :obj:`0.2`)
        min_df (int, optional): Minimum number of training documents with a word of a bag.
            (default: :obj:`1`)
        latent (bool, optional): If set to :obj:`True`, embeddings of the words of bags start from a
            latent semantic analysis of training documents (see
            :meth:`.BagEncoder.start_from_documents`). (default: :obj:`False`)
        given_labels (bool, optional): If set to :obj:`True`, labels that are given become
            components (see :class:`~tg_mlc.nn.encoders.GivenComponents`). (default: :obj:`False`)
    """
    from tg_mlc.nn.encoders import BagEncoder, GivenComponents

    options: Any = {"num_components": num_components, "input_dropout": input_dropout}
    encoder = kind_of(train).encoder(train, channels, min_df=min_df, **options)
    if latent and isinstance(encoder, BagEncoder) and not train.y.isnan().all():
        encoder.start_from_documents(bag_of_words(train))
    return GivenComponents(encoder, train.num_labels) if given_labels else encoder


def pop_input_encoder(
    train: MultiLabelDataset, channels: int, options: dict[str, Any]
) -> nn.Module:
    """Calls :func:`input_encoder` with its arguments, which are removed from :obj:`options`."""
    keys = [key for key in (input_encoder.__kwdefaults__ or {}) if key in options]
    return input_encoder(train, channels, **{key: options.pop(key) for key in keys})
