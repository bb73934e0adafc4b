"""Multi-label classification with message passing between labels, for PyTorch Geometric.

The package exports :class:`LabelMessagePassing`, :class:`LabelHead` and :class:`LabelGraph` for
your own models, :func:`fit` to train these models, :func:`auto` to fit the default model,
:func:`compare` to test whether a label graph helps, :func:`load` to load a saved model,
:func:`explain` to explain predictions, :func:`audit` to find recorded labels that are wrong,
:func:`export` to write a model as a program, and :func:`set_backend`. Subpackages are imported by
their own names, so ``import tg_mlc`` is fast:

* :mod:`tg_mlc.inputs`: kinds of inputs (words, vectors, embeddings, molecules, DNA).
* :mod:`tg_mlc.data`: your own data sets, samples and splits.
* :mod:`tg_mlc.datasets`: published data sets.
* :mod:`tg_mlc.graphs`: label graphs.
* :mod:`tg_mlc.ops`: the attention operator and its backends.
* :mod:`tg_mlc.nn`: layers.
* :mod:`tg_mlc.models`: LaMP, and builders for your own models.
* :mod:`tg_mlc.losses`: losses; :mod:`tg_mlc.metrics`: metrics and thresholds.
* :mod:`tg_mlc.baselines`: baseline classifiers for comparison.
* :mod:`tg_mlc.training`: training with Lightning.
* :mod:`tg_mlc.stacking`: the default model, label message passing on top of base classifiers.
* :mod:`tg_mlc.inference`: trained models, their stages, and the folders that store them.
* :mod:`tg_mlc.exporting`: models as programs; :mod:`tg_mlc.serving`: an HTTP server for models.
* :mod:`tg_mlc.joint`: labels to look up next, recorded labels that are wrong, and who tells whom.
* :mod:`tg_mlc.explanations`: explanations of predicted labels.
* :mod:`tg_mlc.sequences`: dated label sets.
* :mod:`tg_mlc.papers`: models, recipes and weights from papers, for reproduction and comparison.
* :mod:`tg_mlc.sklearn`: scikit-learn estimators; :mod:`tg_mlc.cli`: the command ``tg-mlc``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tg_mlc._optional import imported_on_use

if TYPE_CHECKING:
    from tg_mlc.explanations import explain
    from tg_mlc.exporting import export
    from tg_mlc.graphs import LabelGraph
    from tg_mlc.inference import load
    from tg_mlc.joint import audit
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
    "audit",
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
        "audit": "tg_mlc.joint",
        "auto": "tg_mlc.stacking",
        "compare": "tg_mlc.stacking.comparison",
        "explain": "tg_mlc.explanations",
        "export": "tg_mlc.exporting",
        "fit": "tg_mlc.training",
        "load": "tg_mlc.inference",
        "set_backend": "tg_mlc.ops",
    },
)
