"""What data sets share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_geometric.data import InMemoryDataset

from tg_mlc.datasets._files import settings_key
from tg_mlc.datasets._processed import Samples
from tg_mlc.datasets.report import MoleculeReport

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch import Tensor
    from torch_geometric.data import Data


class MultiLabelDataset(InMemoryDataset):
    """A PyG :class:`~torch_geometric.data.InMemoryDataset` whose samples carry ``y`` of shape ``[1, num_labels]``.

    Attributes:
        label_names (list[str]): The name of each label, in the order of the columns of ``y``.
    """

    label_names: list[str]

    @property
    def num_labels(self) -> int:
        """The number of labels."""
        return len(self.label_names)

    @property
    def y(self) -> Tensor:
        """The labels of all samples, ``[num_samples, num_labels]``, with NaN where unknown."""
        y: Tensor = self._data.y
        return y if self._indices is None else y[list(self._indices)]

    def _adopt(self, samples: Samples) -> None:
        self.data, self.slices = samples.data, samples.slices
        self.label_names = samples.label_names


class LabeledMolecules(MultiLabelDataset):
    """A data set of molecules that knows what became of each row of its table.

    Attributes:
        report (MoleculeReport): Which rows were invalid, and which were duplicates.
    """

    report: MoleculeReport

    def _adopt(self, samples: Samples) -> None:
        super()._adopt(samples)
        if samples.report is None:
            raise RuntimeError(
                "Expected molecules with a report (got none); pass 'force_reload=True' to build them again"
            )
        self.report = MoleculeReport.from_dict(samples.report)


class ProcessedMolecules(LabeledMolecules):
    """A published data set of molecules that keeps its graphs in ``root/processed``; subclasses say how to make them.

    Args:
        root (str or Path): Folder to keep the data set in.
        transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)
        pre_transform (callable, optional): Applied to every sample before it is stored. (default: :obj:`None`)
        pre_filter (callable, optional): Says which samples to keep. (default: :obj:`None`)
        force_reload (bool, optional): Whether to make the graphs again. (default: :obj:`False`)
    """

    def __init__(
        self,
        root: str | Path,
        transform: Callable[[Data], Data] | None = None,
        pre_transform: Callable[[Data], Data] | None = None,
        pre_filter: Callable[[Data], bool] | None = None,
        force_reload: bool = False,
    ) -> None:
        super().__init__(str(root), transform, pre_transform, pre_filter, force_reload=force_reload)
        self._adopt(Samples.load(self.processed_paths[0]))

    @property
    def processed_dir(self) -> str:
        """``root/processed``, or a folder beside it for each pre-transform and pre-filter."""
        if self.pre_transform is None and self.pre_filter is None:
            return super().processed_dir  # type: ignore[no-any-return]
        return f"{super().processed_dir}_{settings_key(self.pre_transform, self.pre_filter)}"

    @property
    def processed_file_names(self) -> str:
        """The processed file in ``root/processed``."""
        return "data.pt"
