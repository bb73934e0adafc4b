"""Models as programs without this package, for :func:`torch.export.load` or ONNX Runtime."""

from tg_mlc.exporting.folder import export

__all__ = ["export"]
