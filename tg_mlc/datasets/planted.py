"""Samples drawn from a known label graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.stats import norm
from torch_geometric.data import Data

from tg_mlc._options import check_count, check_share
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.samples import Samples
from tg_mlc.graphs import LabelGraph


class Planted(MultiLabelDataset):
    r"""Samples drawn from a known sparse label graph. A specified fraction of the information on a
    label is only in the components of its neighbours.

    In every sample each label :math:`i` has one component :math:`\mathbf{x}_i \sim \mathcal{N}(0,
    \mathbf{I})` with the signal :math:`g_i = \mathbf{w}^{\top} \mathbf{x}_i` for a unit vector
    :math:`\mathbf{w}` that all labels share. With :math:`\rho` the :obj:`share` and :math:`k` the
    :obj:`degree`, the label occurs if

    .. math::
        \sqrt{1 - \rho} \; g_i + \sqrt{\rho / k} \sum_{j \in \mathcal{N}(i)} g_j > \tau

    so that neighbours carry the fraction :math:`\rho` of the variance, and :math:`\tau` sets the
    frequency of labels. A component sends messages to its own label only (``to_label``), so that
    information of a neighbour reaches a label only along the label graph. Without messages between
    labels, no score of a label ranks samples better than :math:`g_i` (see :meth:`scores`). A
    classifier that reads all components can do better.

    Args:
        num_samples (int, optional): Number of samples; the last fifth is the test part.
            (default: :obj:`5000`)
        num_labels (int, optional): Number of labels :math:`L`. (default: :obj:`24`)
        degree (int, optional): Number of neighbours :math:`k` of a label in the planted, random
            regular graph. (default: :obj:`3`)
        share (float, optional): The fraction :math:`\rho` of information in neighbours.
            (default: :obj:`0.5`)
        frequency (float, optional): Probability of a label. (default: :obj:`0.3`)
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
            raise ValueError(f"Expected 'frequency' to be in (0, 1) (got {frequency})")
        if num_samples < 5:
            raise ValueError(f"Expected 'num_samples' of at least 5 (got {num_samples})")
        if not 1 <= degree < num_labels or degree * num_labels % 2:
            expected = "'degree' to be at least 1, below 'num_labels', and their product to be even"
            raise ValueError(f"Expected {expected} (got degree={degree}, num_labels={num_labels})")
        super().__init__(None, transform)
        self.share = share
        rng = np.random.default_rng(seed)
        nx_graph = nx.random_regular_graph(degree, num_labels, seed=int(rng.integers(2**31)))
        names = [f"label_{i}" for i in range(num_labels)]
        edges = torch.tensor(list(nx_graph.edges), dtype=torch.long).view(-1, 2).t()
        source = f"random {degree}-regular graph, seed={seed}"
        graph = LabelGraph(edges, label_names=names, kind="planted", source=source)
        self.true_graph = graph.to_undirected().add_self_loops()

        x = rng.standard_normal((num_samples, num_labels, num_channels)).astype(np.float32)
        direction = rng.standard_normal(num_channels)
        self._signals = x @ (direction / np.linalg.norm(direction)).astype(np.float32)
        adjacency = nx.to_numpy_array(nx_graph, nodelist=range(num_labels))
        self._neighbour_signals = (self._signals @ adjacency / np.sqrt(degree)).astype(np.float32)
        self.threshold = float(norm.isf(frequency))
        y = (self._scores(messages=True) > self.threshold).astype(np.float32)
        to_label = torch.arange(num_labels).repeat(num_samples)
        components = torch.from_numpy(x).view(-1, num_channels)
        data = Data(x=components, to_label=to_label, y=torch.from_numpy(y))
        ptr = torch.arange(num_samples + 1)
        slices = {"x": ptr * num_labels, "to_label": ptr * num_labels, "y": ptr}
        train, test = ptr[:-1].tensor_split([num_samples - num_samples // 5])
        options: dict[str, Any] = {"num_features": num_channels, "train": train, "test": test}
        self._adopt(Samples(data, slices, names, None, **options))

    def scores(self, messages: bool = True) -> np.ndarray:
        """Returns the best possible scores :math:`(N, L)` with or without label messages."""
        return self._scores(messages)[self._places()]

    def _scores(self, messages: bool) -> np.ndarray:
        scores: np.ndarray = np.sqrt(1 - self.share) * self._signals
        return scores + np.sqrt(self.share) * self._neighbour_signals if messages else scores
