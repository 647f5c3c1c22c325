"""The applications of `examples/`, trained."""

import argparse
import importlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import torch

from examples.common.application import Application
from examples.common.report import Report

__all__ = ["prepared"]


def prepared(arguments: argparse.Namespace) -> Iterator[Application]:
    """Trains one application after the other, as its command does, with its messages.

    Raises FileError for a data set that is missing.
    """
    torch.set_num_threads(1)
    for name in arguments.applications:
        yield _trained(name, Path(arguments.data) / name, arguments.size, arguments.seed)


@lru_cache(maxsize=3)  # `all` has several benchmarks of one application
def _trained(name: str, data: Path, size: str, seed: int) -> Application:
    print(f"\n==== {name}", flush=True)
    main = importlib.import_module(f"examples.{name}.main")
    application: Application = main.prepare(data, size, seed, Report())
    return application
