"""Description of molecules by vectors, for samples that come without them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from typing_extensions import Self

from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.data.bags import with_attribute
from tg_mlc.inputs.kinds import VECTORS
from tg_mlc.inputs.preprocessor import Preprocessor
from tg_mlc.inputs.transforms import Fingerprint, MoleculeDescriptors


class Described(Preprocessor):
    """Molecules with all :obj:`VECTORS`, of which those that samples lack are computed; raw inputs stay as they are.

    Raises:
        ImportError: On use, if RDKit is not installed (extra ``molecules``).
    """

    def fit(self, dataset: MultiLabelDataset, split: Split) -> Self:
        """Learns nothing: what describes a molecule is the same for all."""
        return self

    def transform(self, raw: Any) -> MultiLabelDataset:
        """Samples with all vectors."""
        samples = cast(MultiLabelDataset, raw)
        if not isinstance(raw, MultiLabelDataset):
            return samples
        for key in (key for key in VECTORS if key not in raw[0]):
            describe = MoleculeDescriptors() if key == "descriptors" else Fingerprint(cast(Any, key))
            samples = with_attribute(samples, key, torch.cat([describe(data)[key] for data in raw]))
        return samples

    def state_dict(self) -> dict[str, Any]:
        """Nothing, as nothing is learned."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Takes nothing."""
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
