"""Multi-label classification with message passing between labels, for PyTorch Geometric.

The modules of the package are imported one by one, so that ``import tg_mlc`` stays light:

* :mod:`tg_mlc.nn`: layers for your own models; :mod:`tg_mlc.models`: whole models.
* :mod:`tg_mlc.ops`: the attention operator below all of them.
* :mod:`tg_mlc.graphs`: label graphs.
* :mod:`tg_mlc.data`: data sets of your own, splits; :mod:`tg_mlc.datasets`: published ones.
* :mod:`tg_mlc.losses` and :mod:`tg_mlc.metrics`: losses, metrics, thresholds.
* :mod:`tg_mlc.training`: training with Lightning; :mod:`tg_mlc.papers.recipes`: settings for published data sets.
* :mod:`tg_mlc.sklearn`: estimators for scikit-learn.
* :mod:`tg_mlc.saving`: saved models that take raw inputs; :func:`tg_mlc.load` loads one.
* :mod:`tg_mlc.baselines`: classifiers to compare with; :mod:`tg_mlc.papers`: rivals, recipes and conversions.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0.dev0"

__all__ = ["__version__", "load", "set_backend"]


def __getattr__(name: str) -> Any:
    if name == "set_backend":
        from tg_mlc.ops import set_backend

        return set_backend
    if name == "load":
        from tg_mlc.saving import load

        return load
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
