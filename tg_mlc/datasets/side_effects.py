"""Frequencies of single side effects of drugs."""

from __future__ import annotations

import io
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tg_mlc._optional import require
from tg_mlc.data import ArrayDataset
from tg_mlc.data.samples import Samples
from tg_mlc.datasets.base import PublishedMolecules
from tg_mlc.datasets.downloads import read_checked
from tg_mlc.datasets.registry import published
from tg_mlc.graphs import LabelGraph
from tg_mlc.inputs.molecule_dataset import MoleculeReport


class SideEffectFrequencies(PublishedMolecules):
    """The drugs of the `"Predicting the Frequencies of Drug Side Effects"
    <https://doi.org/10.1038/s41467-020-18305-y>`_ paper with their single side effects, in the
    folds of the `"DSGAT" <https://doi.org/10.1093/bib/bbab586>`_ paper.

    A label is positive if the side effect was reported, at any frequency. Samples have the
    attributes ``drug``, ``fold`` and ``level`` (of each side effect) besides ``smiles`` and ``y``.
    These three are added after :obj:`pre_transform` and :obj:`pre_filter`.

    **Licence of the data:** `CC BY-NC-SA 4.0 <https://creativecommons.org/licenses/by-nc-sa/4.0/>`_
    (SIDER 4.1, http://sideeffects.embl.de): attribution, no commercial use, share alike.

    Args:
        root (str or Path): Folder to keep the data set in. Nothing is downloaded: the three files
            must be in ``root/raw``, or in ``side_effect_frequencies/derived`` of the folder
            :obj:`TG_MLC_DATA`. They are made from the repository https://github.com/xxy45/DSGAT:
            ``drugs.csv`` has the columns ``drug``, ``stitch_id``, ``smiles`` and ``fold``, from the
            test sets ``drug_sideEffect_blind_test0`` to ``9``; ``frequencies.csv`` has ``drug``,
            ``side_effect`` and ``level`` of reported pairs; ``side_effect_classes.csv`` has
            ``side_effect`` and ``class``, a line for each of its 2 to 8 term classes. The names of
            20 drugs that share a graph may be exchanged.
        transform, pre_transform, pre_filter, force_reload (optional), and errors: As in
            :class:`~tg_mlc.datasets.base.PublishedDataset`.
    """

    files = published("side-effects").files[0]
    license = published("side-effects").licence

    @property
    def fold(self) -> Tensor:
        """The published fold of each drug, 0 to 9, ``[num_samples]``."""
        return self.rows("fold")

    @property
    def level(self) -> Tensor:
        """The frequency of each side effect, from 1 (very rare) to 5 (very frequent), or 0 if
        it was not reported, ``[num_samples, num_labels]``.
        """
        return self.rows("level")

    @cached_property
    def classes(self) -> Tensor:
        """The term classes of each label, 0 or 1, ``[num_labels, num_classes]``."""
        table = self._table("side_effect_classes.csv").assign(member=1)
        members = table.pivot(index="side_effect", columns="class", values="member")
        members = members.reindex(index=self.label_names, columns=range(table["class"].max() + 1))
        return torch.tensor(members.fillna(0).to_numpy(np.float32))

    @property
    def label_graph(self) -> LabelGraph:
        """The undirected label graph of term classes: side effects are connected if they
        share a class, and the weight is the number of shared classes.
        """
        shared = (self.classes @ self.classes.T).fill_diagonal_(0)
        edge_index = shared.nonzero().T
        weight = shared[edge_index[0], edge_index[1]]
        graph = LabelGraph(edge_index, edge_weight=weight, label_names=self.label_names)
        graph.kind, graph.source = "term_classes", "side_effect_classes.csv"
        return graph

    def make(self) -> Samples:
        base = super().make()
        samples, drugs, level = list(ArrayDataset(base)), self._table("drugs.csv"), self._levels()
        rows = MoleculeReport.from_dict(base.report or {}).kept_rows
        for data, row in zip(samples, rows, strict=True):
            data.drug, data.fold = drugs["drug"][row], torch.tensor([drugs["fold"][row]])
            data.level = torch.tensor(level.iloc[[row]].to_numpy(np.uint8))
        return Samples.collate(samples, base.label_names, base.report)

    def read(self) -> tuple[list[str], Tensor, list[str]]:
        smiles, level = self._table("drugs.csv")["smiles"].tolist(), self._levels()
        return smiles, torch.tensor(level.to_numpy() > 0).float(), level.columns.tolist()

    def _levels(self) -> Any:
        """Returns the frequency of each side effect (column) of each drug (row)."""
        names = self._table("side_effect_classes.csv")["side_effect"].unique()
        pairs = self._table("frequencies.csv")
        levels = pairs.pivot(index="drug", columns="side_effect", values="level")
        return levels.reindex(index=self._table("drugs.csv")["drug"], columns=names).fillna(0)

    def _table(self, name: str) -> Any:
        (file,) = (file for file in self.files if file.name == name)
        content = io.BytesIO(read_checked(file, Path(self.raw_dir)))
        return require("pandas", extra="molecules").read_csv(content, keep_default_na=False)
