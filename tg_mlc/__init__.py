"""Multi-label classification with message passing between labels, for PyTorch Geometric.

At the top are :class:`LabelMessagePassing`, :class:`LabelHead` and :class:`LabelGraph` for models
of your own, :func:`fit` to train them, :func:`auto` to fit the default to any samples,
:func:`compare` to see whether a label graph helps, :func:`load` to predict with a saved model,
:func:`explain` to see why it predicts a label, :func:`export` to run it elsewhere, and
:func:`set_backend`. The rooms are imported one by one, so that ``import tg_mlc`` stays light:

* :mod:`tg_mlc.inputs`: kinds of inputs (words, vectors, embeddings, molecules, DNA).
* :mod:`tg_mlc.data`: data sets of your own, samples and splits.
* :mod:`tg_mlc.datasets`: published data sets.
* :mod:`tg_mlc.graphs`: label graphs.
* :mod:`tg_mlc.ops`: the attention operator and its backends.
* :mod:`tg_mlc.nn`: layers.
* :mod:`tg_mlc.models`: LaMP, and the composition of models of your own.
* :mod:`tg_mlc.losses`, :mod:`tg_mlc.metrics`: losses; metrics and thresholds.
* :mod:`tg_mlc.baselines`: classifiers to compare with.
* :mod:`tg_mlc.training`: training with Lightning.
* :mod:`tg_mlc.stacking`: the default, of base classifiers with label message passing on top.
* :mod:`tg_mlc.inference`: a model, its stages, and its folder.
* :mod:`tg_mlc.exporting`, :mod:`tg_mlc.serving`: models as programs, and behind an HTTP server.
* :mod:`tg_mlc.explanations`: why a model predicts a label.
* :mod:`tg_mlc.sequences`: dated label sets.
* :mod:`tg_mlc.papers`: models, recipes and weights of papers, to reproduce and to compare.
* :mod:`tg_mlc.sklearn`, :mod:`tg_mlc.cli`: estimators for scikit-learn; the command ``tg-mlc``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tg_mlc._optional import imported_on_use

if TYPE_CHECKING:
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
