"""The tables of `python -m benchmarks.infer figures`, as text and as Markdown."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TextIO

from benchmarks.infer.figures_rows import beside_chapter, beside_spu, select, targets
from benchmarks.infer.protocol import LINKS
from nescio._report import Case, Column, Report

__all__ = ["write", "write_markdown"]

_NAME: Column = ("network", "network", "9")
_LINK_COLUMNS = [
    (f"seconds_{number}", f"s, {name}", ">9.3f") for number, (name, _) in enumerate(LINKS)
]


class _Table(NamedTuple):
    """A table: its title, its columns, and its rows from all cases."""

    title: str
    columns: Sequence[Column]
    rows: Callable[[Sequence[Case]], Iterable[Case]]


def _of(table: str) -> Callable[[Sequence[Case]], Iterable[Case]]:
    return lambda cases: select(cases, table)


def _threads(cases: Sequence[Case]) -> Iterator[Case]:
    for row in select(cases, "online", link=LINKS[0][0]):
        same = {key: row[key] for key in ("network", "link", "threads")}
        found = {one["phase"]: one["seconds"] for one in select(cases, "phases", **same)}
        yield {**row, "tables_s": found.get("tables"), "products_s": found.get("products")}


_TABLES = (
    _Table(
        "Networks, compiled with tables of 2^8 entries",
        (
            _NAME,
            ("lookups", "lookups", "9,"),
            ("layers", "layers", "6"),
            ("calibration", "images", "6"),
            ("compile_seconds", "compile s", "9.1f"),
            ("compile_cpu_seconds", "CPU s", "7.1f"),
            ("source", "weights and images", ">1"),
        ),
        _of("networks"),
    ),
    _Table(
        "Online: bytes and time, beside Tables 4.5 and 4.8 of the thesis",
        (
            _NAME,
            ("lookups", "lookups", "9,"),
            ("chapter_relus", "chapter's ReLUs", ">5"),
            ("online_mb", "MB", "7.3f"),
            ("lookup_bytes", "B a lookup", "6.2f"),
            ("chapter_online_mb", "chapter MB", "6.1f"),
            ("online_ratio", "fewer", "5.1f"),
            ("rounds", "rounds", "4"),
            ("local_s", "s, loopback", "7.3f"),
            ("lan_s", "s, 1 ms, 1 Gbit/s", "7.3f"),
            ("wan_s", "s, 40 ms, 100 Mbit/s", "7.3f"),
            ("chapter_s", "chapter s", "6.2f"),
            ("checked", "= simulator", "4"),
        ),
        beside_chapter,
    ),
    _Table(
        "Offline: preprocessing and storage of an inference, beside Table 4.10 and Figure 4.6",
        (
            _NAME,
            ("tables_mb", "tables MB", "7.2f"),
            ("chapter_tables_mb", "chapter MB", "8,.0f"),
            ("tables_ratio", "fewer", "5.0f"),
            ("linear_mb", "linear MB", "7.2f"),
            ("tables_cpu_s", "tables CPU s", "7.3f"),
            ("linear_cpu_s", "linear CPU s", "7.3f"),
            ("once_cpu_s", "once, CPU s", "7.3f"),
            ("local_offline_s", "s, loopback", "7.2f"),
            ("lan_offline_s", "s, 1 ms, 1 Gbit/s", "7.2f"),
            ("wan_offline_s", "s, 40 ms, 100 Mbit/s", "7.2f"),
            ("client_stored_mb", "client stores MB", "6.1f"),
            ("server_stored_mb", "server stores MB", "6.1f"),
            ("chapter_stored_mb", "a Tabula of 8 bits stores MB", "8,.0f"),
        ),
        beside_chapter,
    ),
    _Table(
        "Peak memory of a process, MB",
        (
            _NAME,
            ("client_prepare_mb", "client, prepare", "9,.0f"),
            ("server_prepare_mb", "server, prepare", "9,.0f"),
            ("client_infer_mb", "client, infer", "9,.0f"),
            ("server_infer_mb", "server, infer", "9,.0f"),
        ),
        _of("sums"),
    ),
    _Table(
        "Threads of each party, over loopback",
        (
            _NAME,
            ("threads", "threads", "4"),
            ("online_seconds", "online s", "8.3f"),
            ("client_cpu_ms", "client CPU ms", "8.1f"),
            ("server_cpu_ms", "server CPU ms", "8.1f"),
            ("tables_s", "offline: tables s", "8.3f"),
            ("products_s", "linear s", "8.3f"),
        ),
        _threads,
    ),
    _Table(
        "Quality against the width of tables, by the simulator",
        (
            _NAME,
            ("table_bits", "bits", "4"),
            ("images", "images", "6,"),
            ("float_right", "float right", "6.1%"),
            ("right", "right", "6.1%"),
            ("agree", "agrees", "6.1%"),
            ("error", "error", "6.3f"),
            ("wraps", "wraps", "6,"),
            ("lookups", "of lookups", "13,"),
        ),
        _of("quality"),
    ),
    _Table(
        "Garbled circuits, by count: a ReLU's costs times the number of ReLUs",
        (
            _NAME,
            ("circuit", "circuit", ">1"),
            ("online_mb", "online MB", "8.1f"),
            ("offline_mb", "offline MB", "8,.0f"),
            ("seconds", "s", "7.1f"),
            ("source", "source", ">1"),
        ),
        _of("garbled"),
    ),
    _Table(
        "SPU and ours, both phases over loopback, in the same run",
        (
            _NAME,
            ("program", "program", ">1"),
            ("first_s", "first call s", "8.2f"),
            ("warm_s", "next call s", "8.2f"),
            ("online_s", "online s", "8.3f"),
            ("mb", "MB", "7.1f"),
            ("first_ratio", "first / ours", "6.1f"),
            ("warm_ratio", "next / ours", "6.1f"),
            ("online_ratio", "next / our online", "6.0f"),
            ("error", "largest error", "8.5f"),
        ),
        beside_spu,
    ),
    _Table(
        "Oblivious transfer inside the offline phase",
        (
            _NAME,
            ("kind", "kind", ">20"),
            ("transfers", "transfers", "10,"),
            ("mb", "MB", "8.2f"),
            ("byte_share", "of bytes", "6.1%"),
            ("cpu_seconds", "CPU s", "7.3f"),
            ("cpu_share", "of CPU", "6.1%"),
        ),
        _of("shares"),
    ),
    _Table(
        "Other transfers in the place of ours: the offline phase, computed",
        (
            _NAME,
            ("transfer", "transfer", ">1"),
            ("ns", "ns a transfer", "7.1f"),
            ("mb", "MB", "8.1f"),
            ("cpu_seconds", "CPU s", "7.3f"),
            *_LINK_COLUMNS,
            ("source", "source", ">1"),
        ),
        _of("other transfers"),
    ),
    _Table(
        "Targets",
        (
            ("target", "target", ">1"),
            ("bound", "bound", ">1"),
            ("found", "found", "8.3f"),
            ("met", "met", ">3"),
        ),
        targets,
    ),
)


def write(cases: Sequence[Case]) -> None:
    """Prints all tables that have rows, and the notes."""
    for table in _TABLES:
        rows = list(table.rows(cases))
        if rows:
            print(f"\n{table.title}")
            report = Report(_widened(table.columns, rows))
            for row in rows:
                report.add(row)
    for note in select(cases, "notes"):
        print(f"\nnote: {note['note']}")


def _widened(columns: Sequence[Column], rows: Sequence[Case]) -> list[Column]:
    """Gives columns of texts the width of the longest one."""
    found = []
    for name, heading, spec in columns:
        texts = [own for row in rows if isinstance(own := row.get(name), str)]
        found.append((name, heading, f"<{max(map(len, texts))}" if texts else spec))
    return found


def write_markdown(cases: Sequence[Case], file: TextIO) -> None:
    """Writes all tables that have rows, and the notes, for a page."""
    for table in _TABLES:
        rows = list(table.rows(cases))
        if rows:
            print(f"## {table.title}\n", file=file)
            _line((heading for _, heading, _ in table.columns), file)
            _line(("---" for _ in table.columns), file)
            for row in rows:
                _line((_cell(row.get(name), spec) for name, _, spec in table.columns), file)
            print(file=file)
    for note in select(cases, "notes"):
        print(f"- {note['note']}", file=file)


def _line(cells: Iterable[str], file: TextIO) -> None:
    print(f"| {' | '.join(cells)} |", file=file)


def _cell(value: object, spec: str) -> str:
    return "" if value is None else format(value, spec).strip()
