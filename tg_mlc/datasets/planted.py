"""Samples drawn from a known label graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from scipy.stats import norm
from torch_geometric.data import Data

from tg_mlc._options import check_count, check_share
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.samples import Samples
from tg_mlc.graphs import LabelGraph


class Planted(MultiLabelDataset):
    r"""Samples drawn from a known sparse label graph, in which a tunable share of the information on a label comes from
    its neighbours alone.

    In every sample each label :math:`i` has one component :math:`\mathbf{x}_i \sim \mathcal{N}(0, \mathbf{I})`, which
    says :math:`g_i = \mathbf{w}^{\top} \mathbf{x}_i` for a unit vector :math:`\mathbf{w}` that all labels share. With
    :math:`\rho` the :obj:`share` and :math:`k` the :obj:`degree`, the label occurs if

    .. math::
        \sqrt{1 - \rho} \; g_i + \sqrt{\rho / k} \sum_{j \in \mathcal{N}(i)} g_j > \tau

    so that neighbours carry the share :math:`\rho` of the variance, and :math:`\tau` sets how frequent labels are. A
    component sends messages to its own label only (``to_label``, an edge list of the bipartite graph with one edge for
    each component): information of a neighbour can reach a label along the label graph, and in no other way.
    A label without messages can therefore not be better than :math:`g_i` itself, see :meth:`scores`; a classifier that
    is given the components of all labels at once can.

    Args:
        num_samples (int, optional): Number of samples, whose last fifth is the test part. (default: :obj:`5000`)
        num_labels (int, optional): Number of labels :math:`L`. (default: :obj:`24`)
        degree (int, optional): Number of neighbours :math:`k` of a label in the planted graph, which is a random
            regular one. (default: :obj:`3`)
        share (float, optional): The share :math:`\rho` of the information that neighbours carry. (default: :obj:`0.5`)
        frequency (float, optional): How often a label occurs. (default: :obj:`0.3`)
        num_channels (int, optional): Size of a component. (default: :obj:`8`)
        seed (int, optional): Seed of the graph and of the samples. (default: :obj:`0`)
        transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)

    Attributes:
        true_graph (LabelGraph): The planted graph, with self-loops.
        threshold (float): The threshold :math:`\tau`.

    Raises:
        ValueError: If a number is out of range, or there is no regular graph of these sizes.
    """

    def __init__(
        self,
        num_samples: int = 5000,
        num_labels: int = 24,
        degree: int = 3,
        share: float = 0.5,
        frequency: float = 0.3,
        num_channels: int = 8,
        seed: int = 0,
        transform: Callable[[Data], Data] | None = None,
    ) -> None:
        import networkx as nx

        check_share("share", share)
        check_count("num_channels", num_channels)
        if not 0 < frequency < 1:
            raise ValueError(
                f"Expected 'frequency' to be between 0 and 1, both excluded (got {frequency})"
            )
        if num_samples < 5:
            raise ValueError(f"Expected 'num_samples' of at least 5 (got {num_samples})")
        if not 1 <= degree < num_labels or degree * num_labels % 2:
            expected = "at least 1, below 'num_labels', and their product to be even, or no regular graph exists"
            raise ValueError(
                f"Expected 'degree' to be {expected} (got degree={degree}, num_labels={num_labels})"
            )
        super().__init__(None, transform)
        self.share = share
        rng = np.random.default_rng(seed)
        planted = nx.random_regular_graph(degree, num_labels, seed=int(rng.integers(2**31)))
        names = [f"label_{i}" for i in range(num_labels)]
        edges = torch.tensor(list(planted.edges), dtype=torch.long).view(-1, 2).t()
        source = f"random {degree}-regular graph, seed={seed}"
        graph = LabelGraph(edges, label_names=names, kind="planted", source=source)
        self.true_graph = graph.to_undirected().add_self_loops()

        x = rng.standard_normal((num_samples, num_labels, num_channels)).astype(np.float32)
        direction = rng.standard_normal(num_channels)
        self._own = x @ (direction / np.linalg.norm(direction)).astype(np.float32)
        adjacency = nx.to_numpy_array(planted, nodelist=range(num_labels))
        self._neighbours = (self._own @ adjacency / np.sqrt(degree)).astype(np.float32)
        self.threshold = float(norm.isf(frequency))
        y = (self._scores(messages=True) > self.threshold).astype(np.float32)
        each, to_label = torch.arange(num_samples + 1), torch.arange(num_labels).repeat(num_samples)
        data = Data(
            x=torch.from_numpy(x).view(-1, num_channels), to_label=to_label, y=torch.from_numpy(y)
        )
        slices = {"x": each * num_labels, "to_label": each * num_labels, "y": each}
        train, test = each[:-1].tensor_split([num_samples - num_samples // 5])
        self._adopt(
            Samples(data, slices, names, None, num_features=num_channels, train=train, test=test)
        )

    def scores(self, messages: bool = True) -> np.ndarray:
        r"""The best possible scores of the samples, :math:`(N, L)`.

        Args:
            messages (bool, optional): Whether these scores know the neighbours. (default: :obj:`True`)
        """
        return self._scores(messages)[self._places()]

    def _scores(self, messages: bool) -> np.ndarray:
        scores: np.ndarray = np.sqrt(1 - self.share) * self._own
        return scores + np.sqrt(self.share) * self._neighbours if messages else scores
