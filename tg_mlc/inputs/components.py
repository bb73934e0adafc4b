"""Components: what the samples of one kind are made of, for people and for explanations."""

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

    names: list[str]  #: For people, such as :obj:`"C1=O3"`.
    ends: np.ndarray  #: The components at both ends :math:`(K, 2)`.
    symmetry: np.ndarray  #: numbers :math:`(K)` that links share which the sample cannot tell apart


class Components(ABC):
    """The components of samples: their names, and the same samples without some.

    An :class:`~tg_mlc.inputs.InputKind` knows it of its samples. Samples that no kind reads have a
    class of their own, such as :class:`Nodes`.
    """

    #: The name of the kind in the options of the command line.
    option: ClassVar[str]
    parts: ClassVar[str] = "components"  #: What components are, for people.
    #: Whether the components are the columns of the attribute :obj:`x` :math:`(1, F)`, which
    #: networks read together.
    are_columns: ClassVar[bool] = False

    @abstractmethod
    def components(self, sample: Data) -> list[str]:
        """Names the components of a sample for people: words, columns, atoms or k-mers."""

    def component_names(self, sample: Data, raw: Any) -> list[str]:
        """Names the components of a sample as its raw input does.

        Args:
            sample (Data): The sample.
            raw (Any): Its raw input as plain data; :obj:`None` if there is none.
        """
        return self.components(sample)

    def hide(self, sample: Data, kept: np.ndarray, steps: Sequence[Preprocessor] = ()) -> Data:
        """Returns a sample without some of its components.

        Args:
            sample (Data): The sample, which stays as it is.
            kept (numpy.ndarray): Which components it keeps, a mask :math:`(C)`.
            steps (Sequence[Preprocessor], optional): The fitted steps between the sample and what
                predicts, which may know what a hidden number becomes. (default: :obj:`()`)
        """
        hidden, rows = copy(sample), torch.from_numpy(kept)
        for key in ("x", "weight"):
            if key in sample:
                hidden[key] = sample[key][rows]
        return hidden

    def symmetry(self, sample: Data) -> np.ndarray:
        """Returns numbers :math:`(C)` that components share which the sample cannot tell apart."""
        return np.arange(len(self.components(sample)))

    def groups(self, sample: Data) -> np.ndarray | None:
        """Returns the components :math:`(G, C)` of each group that belongs together; :obj:`None` if
        samples of this kind have no groups.
        """
        return None

    def links(self, sample: Data) -> Links:
        """Returns the links between components that :meth:`without_link` can cut."""
        return Links([], np.empty((0, 2), int), np.empty(0, int))

    def without_link(self, sample: Data, index: int) -> Data:
        """Returns a sample without one of its :meth:`links`."""
        raise ValueError(f"Expected samples with links (got those of {type(self).__name__})")

    def smiles(self, sample: Data) -> str | None:
        """Returns the SMILES that draws a sample; :obj:`None` if it is no molecule."""
        return None

    def max_hidden(self, sample: Data) -> int:
        """Returns how many samples with hidden components may measure an explanation, fewer where
        each takes long to make.
        """
        return 3000

    def collate(self, samples: Sequence[Data], like: Any) -> Any:
        """Makes a data set of samples, as models take it.

        Args:
            samples (Sequence[Data]): The samples.
            like (MultiLabelDataset): The data set that they were taken from.
        """
        collated = Samples.collate(samples, like.label_names, None)
        features = {"feature_names": like.feature_names, "num_features": like.num_inputs}
        dataset: MultiLabelDataset = ArrayDataset(collated._replace(kind=like.kind, **features))
        dataset.tokenizer = like.tokenizer
        return dataset

    def state_fractions(
        self, sample: Data, prepared: Data, network: nn.Module, num_rows: int
    ) -> np.ndarray | None:
        """Returns the fraction :math:`(C, N)` of each component in the rows of a network's states;
        :obj:`None` if rows are not those of components alone.

        Args:
            sample (Data): The sample.
            prepared (Data): The same as the network takes it.
            network (torch.nn.Module): The network.
            num_rows (int): The number of rows.
        """
        number = len(self.components(sample))
        return np.eye(number) if num_rows == number else None


class Nodes(Components):
    """Graphs of one's own, whose components are their nodes."""

    option = "graph"

    def components(self, sample: Data) -> list[str]:
        return [f"node {node}" for node in range(sample.num_nodes or 0)]

    def hide(self, sample: Data, kept: np.ndarray, steps: Sequence[Preprocessor] = ()) -> Data:
        hidden: Data = sample.subgraph(torch.from_numpy(kept))
        hidden.y = sample.y
        return hidden
