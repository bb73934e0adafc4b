from __future__ import annotations

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
