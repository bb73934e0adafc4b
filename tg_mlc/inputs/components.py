"""Components of samples, such as words or atoms, for display and for explanations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data

from tg_mlc.data import ArrayDataset, MultiLabelDataset
from tg_mlc.data.samples import Samples
from tg_mlc.inputs.preprocessor import Preprocessor


class Links(NamedTuple):
    """Links between the components of a sample, such as the bonds of a molecule."""

    names: list[str]  #: Names for people, such as :obj:`"C1=O3"`.
    ends: np.ndarray  #: The components at both ends :math:`(K, 2)`.
    symmetry: np.ndarray  #: numbers :math:`(K)`, equal for symmetric links


class Section(NamedTuple):
    """Components of a sample that are drawn together, because they are of one part of it."""

    name: str  #: the name of the part
    raw: Any  #: its raw input as plain data; :obj:`None` if it is unknown
    names: list[str]  #: the names of its components
    start: int  #: the index of its first component
    smiles: str | None  #: the molecule, if the part is one

    @property
    def rows(self) -> slice:
        """Its components among those of the sample."""
        return slice(self.start, self.start + len(self.names))

    def atoms(self, num_components: int) -> np.ndarray:
        """Returns the atom index of each component of a sample, -1 outside of this molecule."""
        atoms = np.full(num_components, -1)
        atoms[self.rows] = np.arange(len(self.names))
        return atoms


class Components(ABC):
    """The components of samples: their names, and copies of samples without some of them.

    An :class:`~tg_mlc.inputs.InputKind` is also the :class:`Components` of its samples. Samples
    without an input kind have a separate class, such as :class:`Nodes`.
    """

    #: The name of the kind in command-line options.
    option: ClassVar[str]
    parts: ClassVar[str] = "components"  #: A noun for components in messages.
    #: Whether the components are the columns of the attribute :obj:`x` :math:`(1, F)`, which
    #: networks read together.
    are_columns: ClassVar[bool] = False

    @abstractmethod
    def components(self, sample: Data) -> list[str]:
        """Names the components of a sample for people: words, columns, atoms or k-mers."""

    def component_names(self, sample: Data, raw: Any) -> list[str]:
        """Returns the names of components, spelled as in the raw input.

        Args:
            sample (Data): The sample.
            raw (Any): Its raw input as plain data; :obj:`None` if there is none.
        """
        return self.components(sample)

    def hide(self, sample: Data, kept: np.ndarray, steps: Sequence[Preprocessor] = ()) -> Data:
        """Returns a sample without some of its components; hidden columns are zero.

        Args:
            sample (Data): The sample, which is not changed.
            kept (numpy.ndarray): A mask :math:`(C)` of the components to keep.
            steps (Sequence[Preprocessor], optional): The fitted steps between the sample and the
                model, whose :obj:`unknown` replaces hidden numbers. (default: :obj:`()`)
        """
        hidden, mask = copy(sample), torch.from_numpy(kept)
        if self.are_columns:
            hidden.x = sample.x * mask
            return hidden
        for key in ("x", "weight"):
            if key in sample:
                hidden[key] = sample[key][mask]
        return hidden

    def symmetry(self, sample: Data) -> np.ndarray:
        """Returns numbers :math:`(C)`, equal for components that are symmetric in the sample."""
        return np.arange(len(self.components(sample)))

    def groups(self, sample: Data) -> np.ndarray | None:
        """Returns masks :math:`(G, C)` of the components of each group; :obj:`None` if samples of
        this kind have no groups.
        """
        return None

    def links(self, sample: Data) -> Links:
        """Returns the links between components that :meth:`without_link` can cut."""
        return Links([], np.empty((0, 2), int), np.empty(0, int))

    def without_link(self, sample: Data, index: int) -> Data:
        """Returns a sample without one of its :meth:`links`."""
        raise ValueError(f"Expected samples with links (got those of {type(self).__name__})")

    def smiles(self, sample: Data) -> str | None:
        """Returns the SMILES of a sample, to draw it; :obj:`None` if it is not a molecule."""
        return None

    def sections(self, sample: Data, raw: Any) -> list[Section]:
        """Returns the parts of a sample in the order of their components; none if the sample has
        no parts.

        Args:
            sample, raw: As in :meth:`component_names`.
        """
        return []

    def max_hidden(self, sample: Data) -> int:
        """Returns the maximum number of samples with hidden components for an explanation; it is
        smaller if such samples are slow to make.
        """
        return 3000

    def collate(self, samples: Sequence[Data], like: Any) -> Any:
        """Makes a data set of samples for models.

        Args:
            samples (Sequence[Data]): The samples.
            like (MultiLabelDataset): The data set from which samples were taken.
        """
        collated = Samples.collate(samples, like.label_names, None)
        features = {"feature_names": like.feature_names, "num_features": like.num_inputs}
        dataset: MultiLabelDataset = ArrayDataset(collated._replace(kind=like.kind, **features))
        dataset.tokenizer = like.tokenizer
        return dataset

    def state_fractions(
        self, sample: Data, prepared: Data, network: nn.Module, num_rows: int
    ) -> np.ndarray | None:
        """Returns the fraction :math:`(C, N)` of each component in each row of a network's states;
        :obj:`None` if rows do not correspond to components.

        Args:
            sample (Data): The sample.
            prepared (Data): The same sample, preprocessed for the network.
            network (torch.nn.Module): The network.
            num_rows (int): The number of rows.
        """
        num_components = len(self.components(sample))
        return np.eye(num_components) if num_rows == num_components else None


class Nodes(Components):
    """Custom graphs, whose components are nodes.

    A graph around a seed node has the index of the seed in :obj:`seed_index` :math:`(1)`, which PyG
    increments in batches. The seed is never removed: if it is hidden, its features are zero. Nodes
    are named by :obj:`n_id` :math:`(C)`, their indices in the whole graph, or else by their order.
    """

    option = "graph"

    def components(self, sample: Data) -> list[str]:
        nodes = sample.n_id.tolist() if "n_id" in sample else range(sample.num_nodes or 0)
        names = [f"node {node}" for node in nodes]
        if "seed_index" in sample:
            names[_seed(sample)] += " (seed)"
        return names

    def hide(self, sample: Data, kept: np.ndarray, steps: Sequence[Preprocessor] = ()) -> Data:
        mask, has_seed = torch.from_numpy(kept), "seed_index" in sample
        if has_seed:
            seed = _seed(sample)
            is_seed = torch.arange(len(mask)) == seed
            sample, is_hidden, mask = copy(sample), is_seed & ~mask, mask | is_seed
            if "x" in sample:
                sample.x = sample.x.index_fill(0, is_hidden.nonzero().flatten(), 0)
        hidden: Data = sample.subgraph(mask)
        hidden.y = sample.y
        if has_seed:
            hidden.seed_index = mask[:seed].sum().view(1)
        return hidden


def _seed(sample: Data) -> int:
    """Returns the index of a sample's seed. Raises ValueError if it is not one of its nodes."""
    num_nodes, values = sample.num_nodes or 0, sample.seed_index.flatten().tolist()
    if len(values) != 1 or values[0] not in range(num_nodes):
        expected = f"'seed_index' to hold the index of one of {num_nodes} nodes in each sample"
        raise ValueError(f"Expected {expected} (got {values[:8]})")
    return int(values[0])
