"""Sphinx configuration: `make docs`."""

project = "Nescio"
author = "The Nescio authors"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "Nescio"
html_show_copyright = False
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing"]  # links to files of the repository outside docs/
