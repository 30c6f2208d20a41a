"""How the docs site is built: `make docs`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from mctsvs import __version__

project = "mctsvs"
version = release = __version__
author = copyright = "the mctsvs authors"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "docstrings", "measured"]
exclude_patterns = ["_ext", "pictures"]
highlight_language = "none"  # of blocks that name no language: commands and output
nitpicky = False

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["myst.header"]  # pages made by commands begin at any level

extensions.insert(0, "sphinx.ext.napoleon")  # Google docstrings, before `docstrings` sees them
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the signature has them
autodoc_mock_imports = ["optuna", "ray", "distributed"]

html_theme = "furo"
html_title = f"mctsvs {version}"
html_show_copyright = False
html_static_path: list[str] = []
