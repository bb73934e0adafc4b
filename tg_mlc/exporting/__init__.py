"""Models as programs that run without this package: for :func:`torch.export.load`, or for ONNX Runtime."""

from tg_mlc.exporting.folder import export

__all__ = ["export"]
