from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from pydoc import locate
from typing import Any

from docutils import nodes
from sphinx import addnodes

import tg_mlc

project = "tg_mlc"
author = "tg_mlc contributors"
copyright = "tg_mlc contributors"
release = tg_mlc.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx-mathjax-offline",
    "sphinx_copybutton",
    "sphinx_design",
]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3

# Tutorials run at each build, offline and in a folder of their own, unless they and the package
# are unchanged.
nb_execution_mode = "cache"
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_output_stderr = "remove"
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
autodoc_default_options = {"members": True, "show-inheritance": True}
# The types stand in the docstrings, as in PyTorch Geometric.
autodoc_typehints = "none"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Shapes", "notes_style")]
# PyTorch Geometric's docstrings mark values as objects; names of this package have to be there.
nitpick_ignore_regex = [("py:.*", r"(?!tg_mlc\.).*")]
#: The modules that the reference documents, and where each of their names stands.
MODULES = [
    import_module(name)
    for page in sorted(Path(__file__).parent.glob("reference/*.rst"))
    for name in re.findall(r"automodule:: (\S+)", page.read_text(encoding="utf-8"))
]
DOCUMENTED = {
    id(getattr(module, name)): f"{module.__name__}.{name}"
    for module in MODULES
    for name in getattr(module, "__all__", ())
}

html_theme = "furo"
html_title = f"tg_mlc {release}"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_js_files = ["custom.js"]


def write_llms_txt(app: Any, error: Exception | None) -> None:
    """Writes llms.txt: the address and first sentence of every page, by the parts of the index."""
    if error or app.builder.name != "html":
        return
    env = app.env
    lines = [f"# {project}", "", f"> {summary(env.get_doctree('index'))}"]
    for toctree in env.get_doctree("index").findall(addnodes.toctree):
        lines += ["", f"## {toctree.get('caption') or 'Pages'}", ""]
        for name in toctree["includefiles"]:
            for page in [name, *env.toctree_includes.get(name, ())]:
                text = summary(env.get_doctree(page))
                link = f"- [{env.titles[page].astext()}]({page}.html)"
                lines.append(f"{link}: {text}" if text else link)
    Path(app.outdir, "llms.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")


def summary(page: nodes.document) -> str:
    """The first sentence of a page."""
    for paragraph in page.findall(nodes.paragraph):
        if paragraph.parent.tagname == "section":
            return re.split(r"(?<=[.:?])\s", paragraph.astext().replace("\n", " "))[0].rstrip(".:")
    return ""


def resolve(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Links a name of the package to its documentation, unless it is private."""
    target = node.get("reftarget", "")
    found = locate(target) if target.startswith("tg_mlc.") else None
    if found is None:
        return None
    name = DOCUMENTED.get(id(found), target)
    if name == target:
        return content
    resolve = env.domains["py"].resolve_any_xref
    places = resolve(env, node["refdoc"], app.builder, name, node, content)
    return places[0][1] if places else content


def setup(app: Any) -> None:
    """Connects the hooks above, and skips methods that scikit-learn adds to all estimators."""

    def skip(app: Any, what: str, name: str, *rest: Any) -> bool | None:
        return name.endswith("_request") or None

    app.connect("autodoc-skip-member", skip)
    app.connect("missing-reference", resolve)
    app.connect("build-finished", write_llms_txt)
