"""Exports models as programs for :func:`torch.export.load` or ONNX Runtime."""

from tg_mlc.exporting.folder import export

__all__ = ["export"]
