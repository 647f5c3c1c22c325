"""The commands of `nescio`, one module per command.

Each module has `add_parser`, which declares the command's arguments. It imports its dependencies
only when the command runs, so that `nescio info` needs nothing but NumPy.
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
    """Checks a generator's name for argparse, which prints the error."""
    try:
        return check_generator(name)
    except ArgumentError as error:
        raise _refusal(error) from error


def devices(names: str) -> str:
    """Checks device names joined by "+", or "cpu", for argparse, which prints the error."""
    try:
        parse_device_list(names)
    except ArgumentError as error:
        raise _refusal(error, "; or 'cpu'") from error
    return names


def _refusal(error: ArgumentError, more: str = "") -> argparse.ArgumentTypeError:
    """Converts an error "name: found ..."; argparse itself prints the name of the option."""
    message = re.sub(r"^[a-z]+: (?=found )", "", str(error))
    return argparse.ArgumentTypeError(message + more)


def count(text: str) -> int:
    """Parses a number, or a power such as 2^20, for argparse."""
    found = re.fullmatch(r"([0-9]{1,20})(?:\^([0-9]{1,2}))?", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number such as 1048576 or 2^20")
    return int(pow(int(found[1]), int(found[2] or 1)))
