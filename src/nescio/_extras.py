"""The packages of extras, which may be missing."""

import importlib.util
import sys

__all__ = ["installed"]


def installed(name: str) -> bool:
    """Tests if a package can be imported, without importing it."""
    if name in sys.modules:  # None if its import is blocked
        return sys.modules[name] is not None
    return importlib.util.find_spec(name) is not None
