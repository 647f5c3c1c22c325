"""Input and output of the demonstration."""

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid

from ._lookup import Result

DEFAULT_SENTENCE = "the doctor prescribed new medication for her anxiety after the divorce"
_STEPS = 3
_HEX_SHOWN = 48


def read_sentence(given: str | None) -> str:
    """Returns the given sentence, or reads one from the terminal, or returns the default."""
    if given is not None:
        return given
    typed = ""
    if sys.stdin.isatty() and sys.stdout.isatty():
        with suppress(EOFError):
            typed = input(f"A sentence (Enter for: {DEFAULT_SENTENCE}): ").strip()
    return typed or DEFAULT_SENTENCE


@contextmanager
def progress(show: bool) -> Iterator[Callable[[str], None]]:
    """Shows a progress bar on standard error; nothing if `show` is false."""
    if not show:
        yield lambda title: None  # noqa: ARG005 - nothing is shown
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task("", total=_STEPS)
        begun = False

        def step(title: str) -> None:
            nonlocal begun
            bars.update(bar, description=title, advance=1 if begun else 0)
            begun = True

        yield step


def print_json(result: Result) -> None:
    """Prints one JSON object on one line."""
    print(json.dumps(dataclasses.asdict(result)))


def print_report(result: Result) -> None:
    """Prints the result as text."""
    console = Console(highlight=False, soft_wrap=True)
    show = console.print
    show(f"\nSentence   [bold]{escape(result.sentence)}[/]")
    show(f"Topics     {', '.join(f'{word} {cosine:.2f}' for word, cosine in result.topics)}")
    if result.unknown_words:
        show(f"Not in the table, not looked up: {escape(', '.join(result.unknown_words))}")
    show(
        f"\n{len(result.words)} words of {result.rows:,}, padded to {result.lookups} lookups "
        f"with random rows."
    )
    _print_keys(show, result)
    show(_costs(result))
    if result.verified:
        show(
            f"[green]Verified:[/] every row was checked against the digest {result.digest[:12]}, "
            "and equals that of the plaintext table."
        )
    else:
        show("[red]Wrong:[/] a row differs from that of the plaintext table.")


def _print_keys(show: Callable[[str], None], result: Result) -> None:
    for party, keys in enumerate(result.keys):
        show(f"\nAll that server {party} saw: {len(keys)} lookups of {len(keys[0]) // 2} bytes.")
        for key in keys:
            show(f"  {key[:_HEX_SHOWN]}...{key[-_HEX_SHOWN:]}")
    show("")


def _costs(result: Result) -> Grid:
    grid = Grid(box=None, show_header=False, padding=(0, 3, 0, 0))
    grid.add_column()
    grid.add_column(justify="right")
    for name, value in result.milliseconds.items():
        grid.add_row(name.replace("_", " "), f"{value:.2f} ms")
    grid.add_row("bytes up, both servers", f"{result.bytes_up:,}")
    grid.add_row("bytes down, both servers", f"{result.bytes_down:,}")
    grid.add_row("bytes of the whole table", f"{result.bytes_table:,}")
    share = result.bytes_table / (result.bytes_up + result.bytes_down)
    grid.add_row("sending the table instead", f"{share:,.0f} times as much")
    return grid
