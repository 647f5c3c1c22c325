"""The commands of `nescio`, a module each.

A module offers `add_parser`, which says what the command takes, and imports what it needs to run
only when it runs: `nescio info` needs NumPy alone.
"""

import argparse
import re
from typing import TYPE_CHECKING

from .._device import parse_device_list
from ..dpf import Generator, check_generator
from ..errors import ArgumentError

__all__ = ["Subparsers", "count", "devices", "generator"]

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Subparsers = object


def generator(name: str) -> Generator:
    """A generator's name, for argparse, which prints why it is none."""
    try:
        return check_generator(name)
    except ArgumentError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def devices(names: str) -> str:
    """Devices' names joined by "+", or "cpu", for argparse, which prints why they are none."""
    try:
        parse_device_list(names)
    except ArgumentError as error:
        raise argparse.ArgumentTypeError(f"{error}; or 'cpu'") from error
    return names


def count(text: str) -> int:
    """A number, or a power such as 2^20, for argparse."""
    found = re.fullmatch(r"([0-9]{1,20})(?:\^([0-9]{1,2}))?", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number such as 1048576 or 2^20")
    return int(pow(int(found[1]), int(found[2] or 1)))
