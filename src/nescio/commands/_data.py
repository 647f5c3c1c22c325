"""Opens the tables of `nescio serve --data`: from their folders, at the first start from files."""

import argparse
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from ..pir import Table
from ..pir._checksums import Source
from ..service._data import Folder, KeptTable, Origin, Recovery
from ._tables import DEFAULTS, Shown, TableFiles, open_table


def open_kept(
    files: TableFiles,
    arguments: argparse.Namespace,
    shown: Shown,
    say: Callable[[str], None],
    closing: ExitStack,
) -> Table:
    """Opens a table whose changes are kept in its folder, which `closing` closes.

    Raises FileError if the folder cannot be used, or began with other files; ArgumentError for
    other options.
    """
    folder = Folder(arguments.data / files.name)
    with ExitStack() as failed:
        failed.callback(folder.close)
        recovery = Recovery.of(folder)
        if recovery is None:
            kept = _begin(files, arguments, shown, folder, say)
        else:
            origin = _checked_origin(files, arguments, shown, folder, recovery)
            keep = arguments.keep_versions
            recovered = recovery.load(origin, arguments.threads, shown, keep)
            kept = recovered.kept
            say(f"data of {files.name}: {recovered.describe()}")
        failed.pop_all()
    kept.max_journal_bytes = arguments.max_journal
    closing.callback(kept.close)
    return kept.table


def _begin(
    files: TableFiles,
    arguments: argparse.Namespace,
    shown: Shown,
    folder: Folder,
    say: Callable[[str], None],
) -> KeptTable:
    """Makes a table from its files, and stores it."""
    sources = [Source.of(path) for path in _paths(files)]
    table = open_table(files, arguments, shown)
    began = time.monotonic()
    kept = KeptTable.begin(table, folder, Origin.of(table.params, sources))
    seconds = time.monotonic() - began
    say(f"data of {files.name}: stored in {folder.path} for the first time in {seconds:.2f} s")
    return kept


def _checked_origin(
    files: TableFiles,
    arguments: argparse.Namespace,
    shown: Shown,
    folder: Folder,
    recovery: Recovery,
) -> Origin:
    """Returns the origin of a folder with the present state of its files.

    Files that were written or copied since the first start are read once more and compared.
    """
    origin = recovery.origin
    origin.check_options(files.name, {name: getattr(arguments, name) for name in DEFAULTS})
    sources = tuple(Source.of(path) for path in _paths(files))
    if sources != origin.sources:
        table = open_table(files, arguments, shown)
        origin.check_digest(_paths(files), table.params.digest, folder.path)
    return replace(origin, sources=sources)


def _paths(files: TableFiles) -> list[Path]:
    return [path for path in (files.path, files.keys, files.layout) if path is not None]
