"""Private inference with an exported model, whose tables two processes serve."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import torch

import nescio.torch
from nescio.errors import FileError
from nescio.pir.batch import Layout

from .application import Application
from .measured import MeasuredTable, TimedModel
from .servers import two_servers

MAX_KEYS = 16384
"""The most keys for a bin that a server takes in a request."""
_QUOTAS = f"--max-keys={MAX_KEYS}", f"--max-body={64 << 20}"


def at_once(lookups: int, most: int = 64) -> int:
    """Returns the inferences of a call: `most`, or fewer where each has very many lookups."""
    return max(1, min(most, MAX_KEYS // lookups))


def export(
    application: Application,
    folder: Path,
    layout: Layout | None,
    quantize: Mapping[str, tuple[int, int] | None] | None = None,
) -> None:
    """Exports the model of an application, with a layout of its table or none.

    Arguments and errors are those of `nescio.torch.export`.
    """
    table = application.table
    layouts = {table: layout} if layout else None
    nescio.torch.export(
        application.model, folder, tables=[table], layouts=layouts, quantize=quantize
    )


@contextmanager
def private_model(
    make: Callable[[], torch.nn.Module], folder: Path, *options: str, seconds: float = 900
) -> Iterator[TimedModel]:
    """Serves the tables of an exported model until the block ends; gives its device's half.

    `folder` is that of `nescio.torch.export`, `options` are further ones of `nescio serve`. Rows
    that do not fit a layout are zeros. Raises FileError for a folder without tables, and the errors
    of `nescio.torch.load` and `two_servers`.
    """
    tables = sorted((folder / "servers").glob("*.npy"))
    if not tables:
        raise FileError(
            f"{folder}: found no tables for servers, expected what a run of an application exports "
            "there; run it again to its end, into a new folder"
        )
    layouts = [path.with_suffix(".layout") for path in tables]
    parts = [f"--layout={path.stem}={path}" for path in layouts if path.exists()]
    with ExitStack() as opened:
        arguments = (*parts, *_QUOTAS, *options)
        servers = opened.enter_context(two_servers(tables, *arguments, seconds=seconds))
        lookups = {
            path.stem: opened.enter_context(closing(MeasuredTable(servers, path.stem)))
            for path in tables
        }
        yield TimedModel(nescio.torch.load(make, folder / "device", lookups), lookups)
