"""PyG transforms that add attributes to a sample."""

from __future__ import annotations

from tg_mlc.data.transforms.molecules import Fingerprint, MoleculeDescriptors

__all__ = ["Fingerprint", "MoleculeDescriptors"]
