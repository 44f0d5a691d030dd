"""How the site is made of these pages: `make docs`."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "bayesvm"
author = "The bayesvm developers"
version = release = version_of("bayesvm")
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "repository",
]
exclude_patterns = [
    "_ext",
    "_templates",
    "gallery/*.ipynb",
    "gallery/*.py",
    "gallery/*.md5",
    "gallery/*.json",
]
templates_path = ["_templates"]
nitpicky = True
# numpydoc links attributes that are properties, which have no entry.
PROPERTIES = """
prior_variance_ offset_ loo_scores_ is_pair points
classes_ is_regression recipe is_cross_validated default_evaluation
"""
nitpick_ignore = [("py:obj", name) for name in PROPERTIES.split()]
nitpick_ignore_regex = [
    (r"py:.*", r"sklearn\..*")
]  # "See Also" names them; links would need the network
smartquotes = False  # what is copied from a page must work

# Pages are GitHub's Markdown: formulas between dollars, anchors as GitHub makes them.
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
math_renderer = html_math_renderer = "mathml"

autosummary_generate = True
# Two names that differ in their case only would be one file on some systems.
autosummary_filename_map = {
    "bayesvm.evaluation.reliability": "bayesvm.evaluation.reliability-function"
}
autodoc_typehints = "none"  # docstrings say it in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template shows them
numpydoc_class_members_toctree = False

html_theme = "furo"
html_title = "bayesvm"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "_ext" / "scorer.js")  # guides first
html_copy_source = html_use_index = False
html_favicon = "_static/icon.svg"
html_show_sphinx = html_show_copyright = False
pygments_style = "friendly"
pygments_dark_style = "monokai"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "ignore_pattern": r"(^|/)(gallery|serve_\w+)\.py$",
    "within_subsection_order": "FileNameSortKey",
    "write_computation_times": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "image_scrapers": ("matplotlib",),
    "capture_repr": (),
}
