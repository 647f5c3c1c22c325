"""Sphinx configuration: `make docs`."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import _torch

project = "Nescio"
author = "The Nescio authors"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "Nescio"
html_show_copyright = False
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing"]  # links to files of the repository outside docs/

# The API reference: what `__all__` of each public module names.
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "groupwise"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_mock_imports = [
    "flint",
    "flwr",
    "matplotlib",
    "nacl",
    "PIL",
    "safetensors",
    "scipy",
]
_torch.install()


def _as_rst(lines):
    """Returns a docstring as reStructuredText: names as code, indented lines as they are."""
    found = []
    for line in lines:
        indented = line.startswith("    ")
        if indented and not (found and (found[-1].startswith("    ") or not found[-1])):
            found.append("")
        before = next((text for text in reversed(found) if text), "")
        if indented and not before.startswith("    "):
            found += ["::", ""]
        if not indented and line and found and found[-1].startswith("    "):
            found.append("")
        text = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", line)
        parts = re.split(r"(``[^`]+``)", text)
        if not indented:
            parts[::2] = [re.sub(r"([*|\\]|_\b)", r"\\\1", part) for part in parts[::2]]
        found.append("".join(parts))
    return found


def _process(app, what, name, thing, options, lines):
    lines[:] = _as_rst(lines)


def setup(app):
    app.connect("autodoc-process-docstring", _process)
