"""One-time tables: bytes, rounds and CPU time of both ways to make them, and the limit."""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nescio._report import Case, Report, check_writable
from nescio.errors import ArgumentError
from nescio.mpc._tables import MAX_BITS, MAX_TABLES, MIN_BITS, TableMaker
from nescio.mpc._trees import BLOCK_BITS
from nescio.net import Channel
from nescio.ot import Receiver, Sender

__all__ = ["run"]

Pair = tuple[Channel, Channel]

_COLUMNS = (
    ("table_bits", "bits", ">4"),
    ("way", "made by", ">9"),
    ("bytes", "bytes", "9,.1f"),
    ("rounds", "rounds", "6"),
    ("cpu_us", "CPU us", "7.3f"),
    ("limit_us", "limit us", "8.3f"),
)


def run(arguments: argparse.Namespace) -> int:
    """Prints a line for each size and way. Raises ArgumentError for sizes that no table has."""
    for bits in arguments.bits:
        if not MIN_BITS <= bits <= MAX_BITS:
            raise ArgumentError(f"--bits: found {bits}, expected {MIN_BITS} to {MAX_BITS}")
    if arguments.repeat < 1 or not 1 <= arguments.count <= MAX_TABLES:
        raise ArgumentError(
            f"--repeat, --count: found {arguments.repeat} and {arguments.count}, expected at "
            f"least 1, and at most {MAX_TABLES} tables"
        )
    check_writable(arguments.json)
    print("per table: bytes of both parties; CPU time of one thread per party, medians")
    report, cases = Report(_COLUMNS), []
    for bits in arguments.bits:
        for case in _measure(bits, arguments.count, arguments.repeat):
            cases.append(case)
            report.add(case)
    if arguments.json is not None:
        Path(arguments.json).write_text(json.dumps(cases, indent=1) + "\n")
    return 0


def _measure(bits: int, count: int, repeat: int) -> list[Case]:
    """Measures all ways in turn, so that they have the same conditions."""
    ways = {"transfers": MAX_BITS + 1} | ({"trees": bits} if bits > BLOCK_BITS else {})
    channels = {way: Channel.pair() for way in (*ways, "limit")}
    work = {
        way: _tables(channels[way], bits, count, trees_from) for way, trees_from in ways.items()
    }
    work["limit"] = _transfers(channels["limit"], 2 * bits, bits - 1, count)
    for once in work.values():
        once()  # the base OTs, and memory
    times: dict[str, list[float]] = {way: [] for way in work}
    before = {way: _sent(pair) for way, pair in channels.items()}
    for _ in range(repeat):
        for way, once in work.items():
            begin = time.process_time()
            once()
            times[way].append(1e6 * (time.process_time() - begin) / 2 / count)
    cases: list[Case] = []
    for way in ways:
        sent, rounds = (a - b for a, b in zip(_sent(channels[way]), before[way], strict=True))
        cases.append(
            {
                "table_bits": bits,
                "way": way,
                "tables": count,
                "bytes": sent / repeat / count,
                "rounds": round(rounds / repeat),
                "cpu_us": statistics.median(times[way]),
                "limit_us": statistics.median(times["limit"]),
            }
        )
    return cases


def _sent(channels: Pair) -> tuple[int, int]:
    """Returns the bytes of both parties, and the rounds."""
    counts = [channel.counts for channel in channels]
    return sum(one.sent_bytes for one in counts), counts[0].rounds


def _tables(channels: Pair, bits: int, count: int, trees_from: int) -> Callable[[], None]:
    server = TableMaker(channels[0], "server", threads=1, trees_from=trees_from)
    client = TableMaker(channels[1], "client", threads=1, trees_from=trees_from)
    return _together(lambda: server.make(count, bits), lambda: client.make(count, bits))


def _transfers(channels: Pair, forth: int, back: int, count: int) -> Callable[[], None]:
    """Returns the limit: the correlated transfers of the tables, in both directions."""
    senders = [Sender(channel, threads=1) for channel in channels]
    receivers = [Receiver(channel, threads=1) for channel in channels]

    def server() -> None:
        receivers[0].extend(forth * count)
        senders[0].extend(back * count)

    def client() -> None:
        senders[1].extend(forth * count)
        receivers[1].extend(back * count)

    return _together(server, client)


def _together(server: Callable[[], object], client: Callable[[], object]) -> Callable[[], None]:
    """Returns a function that runs both parties, in a thread each, to their end."""

    def run_both() -> None:
        with ThreadPoolExecutor(2) as threads:
            for party in [threads.submit(server), threads.submit(client)]:
                party.result()

    return run_both
