"""The commands of `nescio`, a module each.

A module offers `add_parser`, which says what the command takes, and imports what it needs to run
only when it runs: `nescio info` needs NumPy alone.
"""

import argparse
from typing import TYPE_CHECKING

__all__ = ["Subparsers"]

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Subparsers = object
