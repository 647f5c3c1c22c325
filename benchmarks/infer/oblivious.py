"""Oblivious transfers inside the offline phase: their share, and what older or faster ones change.

Gan et al., "cuOT", ask this of Cheetah: "non-linear computations are 60 % of total runtime", of
which OT takes 59 %, for DenseNet121. Here a table needs transfers, and then its own messages.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from benchmarks.infer.published import TRANSFERS, Transfer
from nescio._report import Case
from nescio.mpc import PublicNetwork
from nescio.mpc._plans.costs import table_messages
from nescio.net import Channel, Link
from nescio.ot import Receiver, Sender
from nescio.ot._iknp import COLUMNS, MAX_SEEDS, _columns, _transpose
from nescio.ot._randomness import SystemRandomness

__all__ = ["Ours", "measure", "shares", "transfers_of", "with_other"]

_MEASURED = 1 << 21  # transfers of a run
_RUNS, _IKNP_RUNS = 3, 9
_IKNP_BYTES = 16


class Ours(NamedTuple):
    """Costs of a transfer: CPU nanoseconds of both parties with and without its hash; bytes."""

    random: float
    correlated: float
    bytes: float
    iknp: float


def transfers_of(network: PublicNetwork) -> int:
    """Counts the oblivious transfers of an inference."""
    return sum(
        layer.size * table_messages(layer.activation.bits, layer.activation.outputs)[0]
        for layer in network.layers
        if layer.activation is not None
    )


def measure() -> Ours:
    """Measures transfers in this process, a thread each: the least of some runs."""
    one, other = Channel.pair()
    with Sender(one, threads=1) as sender, Receiver(other, threads=1) as receiver:
        kinds = (
            (lambda: sender.extend(_MEASURED), lambda: receiver.extend(_MEASURED)),
            (lambda: sender.extend_random(_MEASURED), lambda: receiver.extend_random(_MEASURED)),
        )
        for kind in kinds:
            _cpu_seconds(*kind)
        before = one.counts.sent_bytes + other.counts.sent_bytes
        correlated, random = (min(_cpu_seconds(*kind) for _ in range(_RUNS)) for kind in kinds)
        sent = one.counts.sent_bytes + other.counts.sent_bytes - before
    scale = 1e9 / _MEASURED
    return Ours(scale * random, scale * correlated, sent / (2 * _RUNS * _MEASURED), _iknp())


def _iknp() -> float:
    """Returns the CPU nanoseconds of both parties for a transfer of IKNP, without base transfers.

    These are the steps of the code that seeds silent OT: the receiver expands both keys of each of
    128 columns, the sender one of them, and both transpose.
    """
    keys = SystemRandomness().blocks(COLUMNS).view(np.uint8)
    times = []
    for _ in range(_IKNP_RUNS):
        begin = time.process_time()
        own = _columns(keys, MAX_SEEDS, b"")
        sent = own ^ _columns(keys[::-1], MAX_SEEDS, b"")
        _transpose(own)
        columns = _columns(keys, MAX_SEEDS, b"")
        columns ^= sent
        _transpose(columns)
        times.append(time.process_time() - begin)
    return 1e9 * min(times) / MAX_SEEDS


def _cpu_seconds(sender: Callable[[], object], receiver: Callable[[], object]) -> float:
    """Runs both parties, in a thread each; returns the CPU time of both."""
    begin = time.process_time()
    with ThreadPoolExecutor(2) as threads:
        for party in [threads.submit(sender), threads.submit(receiver)]:
            party.result()
    return time.process_time() - begin


def shares(name: str, network: PublicNetwork, offline: Sequence[Case], ours: Ours) -> list[Case]:
    """Splits the offline phase of an inference by kind; `offline` are the cases of its phases.

    The CPU time of transfers is that of so many transfers alone, in the same run.
    """
    count = transfers_of(network)
    sums = {str(case["phase"]): _both(case) for case in offline}
    tables, linear = (sums.get(kind, (0.0, 0.0)) for kind in ("tables", "products"))
    transfers = count * ours.bytes, count * ours.random / 1e9
    rest = tuple(max(0.0, a - b) for a, b in zip(tables, transfers, strict=True))
    others = [own for kind, own in sums.items() if kind in ("places", "store")]
    kinds = {
        "oblivious transfers": transfers,
        "tables from them": rest,
        "linear layers (RLWE)": linear,
        "places and stores": tuple(sum(own[k] for own in others) for k in (0, 1)),
    }
    bytes_, seconds = (sum(own[k] for own in kinds.values()) for k in (0, 1))
    return [
        {
            "network": name,
            "kind": kind,
            "transfers": count if kind == "oblivious transfers" else None,
            "mb": own[0] / 1e6,
            "byte_share": own[0] / bytes_,
            "cpu_seconds": own[1],
            "cpu_share": own[1] / seconds,
        }
        for kind, own in kinds.items()
    ]


def _both(case: Case) -> tuple[float, float]:
    """Returns the bytes and the CPU seconds of both parties."""
    fields = ("client_bytes", "server_bytes", "client_cpu_ms", "server_cpu_ms")
    mine, theirs, first, second = (float(str(case[field])) for field in fields)
    return mine + theirs, (first + second) / 1e3


def with_other(
    name: str, kinds: Sequence[Case], rounds: float, links: Sequence[Link | None], ours: Ours
) -> list[Case]:
    """Computes the offline phase with other transfers in the place of ours.

    Its time over a link is taken as the CPU time of both parties, one after the other, plus the
    link's own time for the bytes and the rounds. Hashes are ours in every row.
    """
    count = next(int(str(case["transfers"])) for case in kinds if case["transfers"])
    bytes_, cpu = (
        sum(float(str(case[field])) * scale for case in kinds)
        for field, scale in (("mb", 1e6), ("cpu_seconds", 1.0))
    )
    hashed = ours.random - ours.correlated
    iknp = Transfer("IKNP, ours", "measured in this run: the code of seeds", 0, _IKNP_BYTES)
    rows = [
        Transfer("ours", "measured in this run", ours.correlated, ours.bytes),
        iknp._replace(nanoseconds=ours.iknp),
        *TRANSFERS,
        Transfer("transfers for nothing", "the limit of faster ones", -hashed, 0),
    ]
    cases: list[Case] = []
    for row in rows:
        seconds = cpu + count * (row.nanoseconds - ours.correlated) / 1e9
        sent = bytes_ + count * (row.bytes - ours.bytes)
        times = [seconds + _link_seconds(link, round(sent), rounds) for link in links]
        cases.append(
            {
                "network": name,
                "transfer": row.name,
                "source": row.source,
                "ns": row.nanoseconds + hashed,
                "mb": sent / 1e6,
                "cpu_seconds": seconds,
                **{f"seconds_{number}": own for number, own in enumerate(times)},
            }
        )
    return cases


def _link_seconds(link: Link | None, sent: int, rounds: float) -> float:
    if link is None:
        return 0.0
    return rounds * link.rtt_seconds + link.transfer_seconds(sent)
