"""How the manual is built: ``python -m sphinx -W --keep-going -n docs docs/_build``."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import matplotlib

import kernelcore as kc

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
matplotlib.use("agg")

project = "kernelcore"
author = "The kernelcore developers"
copyright = "the kernelcore developers, BSD 3-Clause"
version = release = kc.__version__

extensions = [
    "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_parser",
    "sphinx_gallery.gen_gallery", "mathml",
]  # fmt: skip
exclude_patterns = ["_build", "examples"]
templates_path = ["_templates"]
nitpicky = True

# ---- pages are Markdown; directives have colons, since fences hold code that tests run

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3

# ---- the reference

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # docstrings say it in words
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False  # the template of classes lists what is ours
numpydoc_xref_param_type = False
# What docstrings name in words of their own, and what signatures name of other packages.
nitpick_ignore_regex = [("py:.*", r"(?!kernelcore\.).*")]

# ---- the gallery

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "remove_config_comments": True,
}

# ---- pages

html_theme = "pydata_sphinx_theme"
html_math_renderer = "mathml"
html_title = f"kernelcore {version}"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_show_sourcelink = False
html_sidebars = {"index": [], "start": []}
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 5,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}


def _ours(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Skip what classes have from other packages, and fields, which docstrings list by name."""
    home = getattr(getattr(obj, "fget", obj), "__module__", None) or ""
    if what == "class" and not home.startswith("kernelcore"):
        return True
    return None


def setup(app: Any) -> None:
    app.connect("autodoc-skip-member", _ours)
