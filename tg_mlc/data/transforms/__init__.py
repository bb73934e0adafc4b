"""PyG transforms that add attributes to a sample."""

from tg_mlc.data.transforms.molecules import Fingerprint, MoleculeDescriptors

__all__ = ["Fingerprint", "MoleculeDescriptors"]
