"""What Sphinx is told. The sources are those that staging.py gathers."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # for docs.site
os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"

from docs.site.python_pages import MADE_BY_PEOPLE, listed, short  # noqa: E402

from relaxdp import __version__  # noqa: E402

project = "relaxdp"
author = "the authors of relaxdp"
project_copyright = "the authors of relaxdp, Apache-2.0"
version = release = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_design", "sphinx_copybutton", "docs.site.markup"]
exclude_patterns = ["figures/*.md"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
myst_disable_syntax = ["myst_line_comment"]  # a percent sign may begin a line

nb_execution_mode = "force"  # a cache would not notice that the package has changed
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_execution_show_tb = True
nb_execution_in_temp = True
nb_number_source_lines = False

default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"exclude-members": "__init__, __new__", "no-value": True}
autodoc_preserve_defaults = True
maximum_signature_line_length = 100
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

html_theme = "pydata_sphinx_theme"
html_title = "relaxdp"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["site.css", "reference.css"]
html_show_sourcelink = False
html_copy_source = False
html_favicon = str(Path(__file__).parent / "static" / "icon.svg")
html_sidebars: dict[str, list[str]] = {"index": [], "ways": []}
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "relaxdp", "image_light": "_static/icon.svg", "image_dark": "_static/icon.svg"},
    "show_prev_next": True,
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def readable(_: Any, what: str, name: str, *given: Any) -> tuple[str, str] | None:
    """Show how a class is called only where a person calls it, and types by their names."""
    signature, returned = given[-2:]
    if signature is None:
        return None
    if what == "exception" or (what == "class" and name.rpartition(".")[2] not in MADE_BY_PEOPLE):
        return "", ""
    return short(signature), short(returned or "")


def with_arguments(*given: Any) -> None:
    """Make lists of what stands below "Args:" and "Raises:"."""
    lines = given[-1]
    lines[:] = listed(lines)


def setup(app: Any) -> None:
    """Tell Sphinx."""
    app.connect("autodoc-process-signature", readable)
    app.connect("autodoc-process-docstring", with_arguments)
