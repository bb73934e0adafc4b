"""Models as programs that run without this package: for :func:`torch.export.load`, or for ONNX Runtime."""

from tg_mlc.exporting.folder import export
from tg_mlc.exporting.program import featurize

__all__ = ["export", "featurize"]
