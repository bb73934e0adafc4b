"""BlogCatalog, one graph whose nodes have labels."""

from __future__ import annotations

import io
import warnings

import numpy as np
import scipy.io
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from tg_mlc.data.samples import Samples
from tg_mlc.datasets.base import PublishedDataset
from tg_mlc.datasets.registry import published


class BlogCatalog(PublishedDataset):
    """The friendships of bloggers with the categories of their blogs, from the `"Relational
    Learning via Latent Social Dimensions" <https://doi.org/10.1145/1557019.1557109>`_ paper.

    Each node of the single graph has its own labels, and there are no node features. Arguments and
    errors are those of :class:`~tg_mlc.datasets.base.PublishedDataset`; the single graph is
    never filtered out.
    """

    files = published("blogcatalog").files[0]

    @property
    def y(self) -> Tensor:
        """The labels of all nodes, ``[num_nodes, num_labels]``."""
        y: Tensor = self._data.y
        return y

    def make(self) -> Samples:
        # SciPy warns that its matrices will become arrays; both work here.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            arrays = scipy.io.loadmat(io.BytesIO(*self.read_raw().values()))
        network, group = sp.coo_array(arrays["network"]), arrays["group"].toarray()
        edge_index = torch.from_numpy(np.stack(network.coords)).long()
        y = torch.from_numpy(group).float()
        data = Data(edge_index=edge_index, y=y, num_nodes=len(y)).coalesce()
        data = data if self.pre_transform is None else self.pre_transform(data)
        names = [f"group {number}" for number in range(1, group.shape[1] + 1)]
        return Samples(data, None, names, None, kind="node", num_features=data.num_node_features)
