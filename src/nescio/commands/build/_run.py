"""The run of `nescio build`: files opened, shards built, a summary."""

import argparse
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .._progress import Progress
from .._tables import spare_rows

if TYPE_CHECKING:
    from ...service._build import Built, Runner


def run(arguments: argparse.Namespace) -> int:
    """Builds the table; returns the exit code."""
    from ...service._build import BuildOptions, build, open_output, open_rows  # noqa: PLC0415

    names = [arguments.out, *arguments.inputs]
    if arguments.ray is not None:  # workers have other working directories
        names = [name if "://" in name else str(Path(name).absolute()) for name in names]
    place = open_output(names[0])
    rows = open_rows(names[1:], arguments.column)
    options = BuildOptions(
        shards=arguments.shards,
        version=arguments.version,
        output=arguments.output,
        generator=arguments.generator,
        spare=spare_rows(arguments.spare, rows.rows),
        threads=arguments.threads,
    )
    with Progress() as progress, _runner(arguments, progress) as runner, _interrupted():
        begin = time.monotonic()
        built = build(rows, place, options, runner)
        spent = time.monotonic() - begin
    _print(built, arguments.out, spent)
    return 0


@contextmanager
def _interrupted() -> Iterator[None]:
    """Lets SIGTERM end the block as SIGINT does, so that it removes what it wrote."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _runner(arguments: argparse.Namespace, progress: Progress) -> "Iterator[Runner]":
    """Gives what runs the tasks of a build, and shows their progress."""
    from ...service._build import Here, on_ray  # noqa: PLC0415

    passes: dict[str, tuple[float, int]] = {}

    def told(what: str, shards: int, rows: int) -> None:
        now = time.monotonic()
        begin, first = passes.setdefault(what, (now, rows))
        rate = f", {(rows - first) / (now - begin):,.0f} rows a second" if now > begin else ""
        progress(f"{shards} of {arguments.shards} shards {what}{rate}")

    if arguments.ray is None:
        yield Here(told)
        return
    with on_ray(arguments.ray, told) as runner:
        yield runner


def _print(built: "Built", out: str, spent: float) -> None:
    params = built.params
    print(f"table: {params.describe()}")
    print(f"digest: {params.digest}")
    files = f"{len(built.files)} in {out}, {built.bytes:,} bytes, at most {built.largest:,} each"
    print(f"shards: {files}")
    print(f"time: {spent:.1f} s, {params.rows / spent:,.0f} rows a second")
