"""Multi-label classification with message passing between labels, for PyTorch Geometric.

At the top are :class:`LabelMessagePassing`, :class:`LabelHead` and :class:`LabelGraph` for models of your own,
:func:`fit` to train them, :func:`auto` to fit the default to any samples, :func:`compare` to see whether a label graph
helps, :func:`load` to predict with a saved model, :func:`explain` to see why it predicts a label, :func:`export` to run
it elsewhere, and :func:`set_backend`. The rooms are imported one by one, so that ``import tg_mlc`` stays light:

* :mod:`tg_mlc.inputs`: kinds of inputs (words, vectors, embeddings, molecules, DNA), each in one file.
* :mod:`tg_mlc.data`: data sets of your own, samples and splits; :mod:`tg_mlc.datasets`: published ones.
* :mod:`tg_mlc.graphs`: label graphs.
* :mod:`tg_mlc.ops`: the attention operator and its backends.
* :mod:`tg_mlc.nn`: layers; :mod:`tg_mlc.models`: LaMP, and the composition of models of your own.
* :mod:`tg_mlc.losses`, :mod:`tg_mlc.metrics` and :mod:`tg_mlc.baselines`: losses; metrics and thresholds; classifiers.
* :mod:`tg_mlc.training`: training with Lightning.
* :mod:`tg_mlc.stacking`: the default, of base classifiers with label message passing on top.
* :mod:`tg_mlc.inference`: a model, its stages, and its folder; :mod:`tg_mlc.exporting`: models as programs for other
  tools; :mod:`tg_mlc.serving`: models behind an HTTP server.
* :mod:`tg_mlc.explanations`: why a model predicts a label.
* :mod:`tg_mlc.sequences`: dated label sets.
* :mod:`tg_mlc.papers`: models, recipes and weights of papers, to reproduce and to compare.
* :mod:`tg_mlc.sklearn`: estimators for scikit-learn; :mod:`tg_mlc.cli`: the command ``tg-mlc``.
"""

from __future__ import annotations

import sys
import warnings
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Any

from tg_mlc._optional import imported_on_use

if TYPE_CHECKING:
    from types import ModuleType

    from tg_mlc.explanations import explain
    from tg_mlc.exporting import export
    from tg_mlc.graphs import LabelGraph
    from tg_mlc.inference import load
    from tg_mlc.nn import LabelHead, LabelMessagePassing
    from tg_mlc.ops import set_backend
    from tg_mlc.stacking import auto
    from tg_mlc.stacking.comparison import compare
    from tg_mlc.training import fit

__version__ = "0.1.0"

__all__ = [
    "LabelGraph",
    "LabelHead",
    "LabelMessagePassing",
    "__version__",
    "auto",
    "compare",
    "explain",
    "export",
    "fit",
    "load",
    "set_backend",
]

__getattr__ = imported_on_use(
    __name__,
    {
        "LabelGraph": "tg_mlc.graphs",
        "LabelHead": "tg_mlc.nn",
        "LabelMessagePassing": "tg_mlc.nn",
        "auto": "tg_mlc.stacking",
        "compare": "tg_mlc.stacking.comparison",
        "explain": "tg_mlc.explanations",
        "export": "tg_mlc.exporting",
        "fit": "tg_mlc.training",
        "load": "tg_mlc.inference",
        "set_backend": "tg_mlc.ops",
    },
)


class _QuietImport:
    """Imports PyTorch Geometric without the warning, of PyTorch 2.14, that it uses ``torch.jit.script``."""

    @staticmethod
    def find_spec(name: str, *rest: Any) -> ModuleSpec | None:
        """Returns where PyTorch Geometric is, with a loader that holds this warning back while it is imported."""
        spec = PathFinder.find_spec(name, *rest) if name == "torch_geometric" else None
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                with warnings.catch_warnings():
                    warnings.filterwarnings(
                        "ignore", r"`torch\.jit\.\w+` is (deprecated|not supported)"
                    )
                    execute(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


sys.meta_path[:0] = [_QuietImport]
