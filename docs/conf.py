from __future__ import annotations

from typing import Any

import tg_mlc

project = "tg_mlc"
author = "tg_mlc contributors"
copyright = "tg_mlc contributors"
release = tg_mlc.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build"]
templates_path = ["_templates"]
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
autodoc_default_options = {"members": True, "show-inheritance": True}
# The types stand in the docstrings, as in PyTorch Geometric.
autodoc_typehints = "none"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Shapes", "notes_style")]

html_theme = "furo"
html_title = f"tg_mlc {release}"


def setup(app: Any) -> None:
    """Leaves out the methods that scikit-learn adds to every estimator, whose docstrings link to its own pages."""
    app.connect("autodoc-skip-member", lambda app, what, name, *rest: name.endswith("_request") or None)
