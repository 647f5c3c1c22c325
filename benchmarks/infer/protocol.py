"""Both phases of a plan in two processes: bytes, times, memory, and the simulator's outputs."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.infer.outcomes import Expected, lookups_of, offline, online
from benchmarks.infer.party import Parties, Run
from benchmarks.infer.party import run as run_parties
from nescio._report import Case
from nescio.mpc import Network
from nescio.mpc._maps import Ring
from nescio.net import Link

__all__ = ["LINKS", "Protocol", "Setting", "measure"]

LINKS: tuple[tuple[str, Link | None], ...] = (
    ("loopback", None),
    ("1 ms, 1 Gbit/s", Link.parse(rtt="1ms", rate="1gbit")),
    ("40 ms, 100 Mbit/s", Link.parse(rtt="40ms", rate="100mbit")),
)
_LOCAL = LINKS[0][0]
_ONCE = ("agreement", "keys")
_FEW = 3  # inferences that are prepared over a link


class Setting(NamedTuple):
    """A network by name, its encoded images (n, *shape), and how often and where it runs.

    The first of `threads` is for all links, the others for loopback alone.
    """

    name: str
    network: Network
    inputs: Ring
    inferences: int
    threads: Sequence[int]
    folder: Path

    @property
    def parties(self) -> Parties:
        """Both parties, with the first number of threads."""
        stores = self.folder / "client", self.folder / "server"
        return Parties(self.network, *stores, threads=self.threads[0])

    def case(self, link: str, threads: int | None = None) -> Case:
        """Returns the first fields of a case."""
        own = self.threads[0] if threads is None else threads
        return {"network": self.name, "link": link, "threads": own}


class Protocol(NamedTuple):
    """Cases of one network: phases of the offline phase, links of the online one, and sums."""

    offline: list[Case]
    online: list[Case]
    sums: Case


def measure(setting: Setting) -> Protocol:
    """Prepares and runs inferences over every link, and with each number of threads.

    Images are taken in turns. The outputs of every inference are compared with the simulator's.
    Raises NescioError if they differ.
    """
    parties, inferences = setting.parties, setting.inferences
    total, lookups = len(LINKS) * inferences, lookups_of(setting.network)
    prepared = run_parties(parties, total)
    stored = [path.stat().st_size / total for path in (parties.client, parties.server)]
    phases: list[Case] = [
        {**setting.case(_LOCAL), **case} for case in offline(prepared, total, lookups)
    ]
    expected = Expected(setting.network, setting.inputs, parties, total)
    rows, runs = list[Case](), list[Run]()
    for number, (name, link) in enumerate(LINKS):
        part = range(number * inferences, (number + 1) * inferences)
        runs.append(run_parties(replace(parties, link=link), [expected.inputs[k] for k in part]))
        expected.check(runs[-1].outputs, part)
        rows.append({**setting.case(name), **online(runs[-1], lookups, link)})
    for threads in setting.threads[1:]:
        more, case = _again(setting, threads)
        phases += more
        rows.append(case)
    for name, link in LINKS[1:]:
        own = _prepared(replace(parties, link=link), lookups)
        phases += [{**setting.case(name), **phase} for phase in own]
    sums: Case = {
        "network": setting.name,
        **_sums(phases, rows),
        "client_stored_mb": stored[0] / 1e6,
        "server_stored_mb": stored[1] / 1e6,
        "offline_rounds": _rounds(prepared) / total,
        "checked": (len(LINKS) + len(setting.threads) - 1) * inferences,
        **_peaks(prepared, runs),
    }
    return Protocol(phases, rows, sums)


def _again(setting: Setting, threads: int) -> tuple[list[Case], Case]:
    """Prepares and runs with other threads, over loopback; returns the cases of both phases."""
    parties, count = replace(setting.parties, threads=threads), setting.inferences
    _remove(parties)
    prepared = run_parties(parties, count)
    expected = Expected(setting.network, setting.inputs, parties, count)
    found = run_parties(parties, list(expected.inputs))
    expected.check(found.outputs, range(count))
    own, lookups = setting.case(_LOCAL, threads), lookups_of(setting.network)
    phases: list[Case] = [{**own, **case} for case in offline(prepared, count, lookups)]
    return phases, {**own, **online(found, lookups, None)}


def _prepared(parties: Parties, lookups: int) -> Iterator[Case]:
    """Prepares a few inferences: the first one has the setup of oblivious transfers too."""
    _remove(parties)
    return offline(run_parties(parties, _FEW), _FEW, lookups)


def _remove(parties: Parties) -> None:
    for path in (parties.client, parties.server):
        path.unlink(missing_ok=True)


def _rounds(found: Run) -> int:
    """Counts the round trips of `prepare` without those of its start."""
    return sum(step.counts.rounds for step in found.client[0] if step.phase not in _ONCE)


def _peaks(prepared: Run, runs: Sequence[Run]) -> Case:
    return {
        "client_prepare_mb": prepared.client_bytes / 1e6,
        "server_prepare_mb": prepared.server_bytes / 1e6,
        "client_infer_mb": max(own.client_bytes for own in runs) / 1e6,
        "server_infer_mb": max(own.server_bytes for own in runs) / 1e6,
    }


def _sums(phases: Sequence[Case], rows: Sequence[Case]) -> Case:
    """Returns the sums of an inference; keys and prepared weights, made once, are apart."""
    sums: Case = {"online_mb": _number(rows[0], "online_bytes") / 1e6, "rounds": rows[0]["rounds"]}
    first = [one for one in phases if one["threads"] == phases[0]["threads"]]
    for phase, label in (("tables", "tables"), ("products", "linear"), ("keys", "once")):
        own = [one for one in first if one["phase"] == phase and one["link"] == _LOCAL]
        sums[f"{label}_mb"] = _total(own, "client_bytes", "server_bytes") / 1e6
        sums[f"{label}_cpu_s"] = _total(own, "client_cpu_ms", "server_cpu_ms") / 1e3
    for row, (link, _) in zip(rows, LINKS, strict=False):
        own = [one for one in first if one["link"] == link]
        each = [one for one in own if one["phase"] not in _ONCE]
        once = [one for one in own if one["phase"] in _ONCE]
        sums[f"offline_s, {link}"] = _total(each, "seconds")
        sums[f"offline_once_s, {link}"] = _total(once, "seconds")
        sums[f"online_s, {link}"] = row["online_seconds"]
    return sums


def _total(cases: Sequence[Case], *fields: str) -> float:
    return math.fsum(_number(case, field) for case in cases for field in fields)


def _number(case: Case, field: str) -> float:
    return float(str(case[field]))
