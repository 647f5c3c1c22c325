"""The checks of options before a long run."""

import argparse

from nescio._arrays import as_count
from nescio.errors import ArgumentError

__all__ = ["MAX_CLIENTS", "check_counts", "check_positive"]

MAX_CLIENTS = 1 << 16
"""Inferences that are answered together; also the keys of a query of whole lookups."""

_MOST = 1 << 20
_LEAST = {"checks": 0, "cache_rows": 0}


def check_counts(arguments: argparse.Namespace, *names: str) -> None:
    """Raises ArgumentError for a number below its limit. None stands for the default."""
    for name in names:
        value = getattr(arguments, name)
        most = MAX_CLIENTS if name == "clients" else _MOST
        for one in value if isinstance(value, list) else [value]:
            if one is not None:
                as_count(one, name, _LEAST.get(name, 1), most)


def check_positive(arguments: argparse.Namespace, *names: str) -> None:
    """Raises ArgumentError for a number, or one of a list, that is not more than 0."""
    for name in names:
        value = getattr(arguments, name)
        for one in value if isinstance(value, list) else [value]:
            if not one > 0:
                raise ArgumentError(f"{name}: found {one}, expected more than 0")
