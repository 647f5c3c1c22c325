"""Two parties, clients and an operator, and what became of them."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
import numpy as np

from nescio.errors import NescioError
from nescio.pir import Table
from nescio.service import RemoteTable

from .model import WORDS, Model
from .operator import Operator
from .party import TABLE, Party
from .reader import Reader

ROWS = 4096
_KEPT_VERSIONS = 16
_SETTLE_SECONDS = 30.0


@dataclass
class Outcome:
    """One line of the report: a fault, and what it did."""

    fault: str
    times: int = 0
    lookups: int = 0
    updates: int = 0
    refused: int = 0
    lost: int = 0
    wrong: int = 0
    behind: int = 0
    outage: float = 0.0
    saw: dict[str, int] = field(default_factory=dict)
    operator_saw: dict[str, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    tracebacks: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    skipped: str = ""
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """True if nothing is lost or wrong, and no server printed a traceback."""
        return not (self.lost or self.wrong or self.tracebacks or self.failed)

    def to_dict(self) -> dict[str, object]:
        """Converts the outcome to JSON types."""
        return asdict(self)


class Scene:
    """Two parties that serve one table, clients that read it, and an operator that changes it.

    Leaving the block finishes the last update, reads the whole table once more, compares it with
    the model, and ends the servers. Without `pause`, there is no operator.
    """

    def __init__(
        self,
        fault: str,
        folder: Path,
        *,
        rows: int = ROWS,
        words: int = WORDS,
        options: Sequence[str] = (),
        readers: int = 2,
        timeout: float = 3.0,
        pause: float | None = 0.02,
        update_rows: tuple[int, int] = (1, 50),
        parties: Sequence[Party] | None = None,
    ) -> None:
        self.outcome = Outcome(fault)
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.model = Model(rows, _KEPT_VERSIONS, words)
        table = folder / "table.npy"
        np.save(table, self.model.initial())
        self.parties = parties or [Party(n, table, folder, options) for n in range(2)]
        self._urls: list[str | Sequence[str]] = [party.url for party in self.parties]
        self._pause, self._timeout, self._update_rows = pause, timeout, update_rows
        self._number = readers
        self.readers: list[Reader] = []
        self.operator: Operator | None = None
        self._begun = time.monotonic()

    def connect(self, urls: Sequence[str | Sequence[str]]) -> None:
        """Gives clients and the operator other addresses, such as those of proxies.

        The operator uses the first address of a party.
        """
        self._urls = list(urls)

    def __enter__(self) -> Self:
        """Starts the servers, then the clients and the operator."""
        try:
            for party in self.parties:
                party.start(wait=False)
            for party in self.parties:
                party.wait_until_ready()
        except BaseException:
            self._end()
            raise
        self.readers = [
            Reader(self.model, self._urls, timeout=self._timeout, seed=seed)
            for seed in range(self._number)
        ]
        for reader in self.readers:
            reader.start()
        self.wait_for_lookups(1)
        for reader in self.readers:
            reader.outage = 0.0  # the start does not count as one
        if self._pause is not None:
            tokens = [party.token for party in self.parties]
            self.operator = Operator(
                self.model,
                [url if isinstance(url, str) else url[0] for url in self._urls],
                tokens,
                self.folder / "operator.journal",
                pause=self._pause,
                rows=self._update_rows,
            )
            self.operator.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Judges what has happened, and ends the servers."""
        try:
            if error is None:
                self._settle()
                self._read_all()
        finally:
            for reader in self.readers:
                if reader.is_alive():
                    reader.stop()
            self._end()
            self._gather()

    def version(self, party: Party) -> int:
        """Returns the number of the last update that a party has."""
        reply = httpx.get(f"{party.url}/v1/tables/{TABLE}", trust_env=False, timeout=10)
        return int(reply.json()["params"]["version"])

    def wait_for_lookups(self, count: int, seconds: float = 20.0) -> None:
        """Waits until each client has looked up as many rows more, within some seconds."""
        wanted = [reader.lookups + count for reader in self.readers]
        end = time.monotonic() + seconds
        while any(r.lookups < w for r, w in zip(self.readers, wanted, strict=True)):
            if time.monotonic() > end:
                self.outcome.failed.append(f"no {count} lookups of each client in {seconds:g} s")
                return
            time.sleep(0.01)

    def _settle(self) -> None:
        if self.operator is not None and not self.operator.settle(_SETTLE_SECONDS):
            last = list(self.operator.texts.values())[-1:]
            self.outcome.failed.append(f"the last update could not be finished: {last}")
        self.wait_for_lookups(1)
        for reader in self.readers:
            reader.stop()

    def _read_all(self) -> None:
        """Compares the table with the model: its digest, and up to 4,096 rows by lookups."""
        indices = np.random.default_rng().permutation(self.model.rows)[:ROWS]
        urls = [party.url for party in self.parties]
        try:
            with RemoteTable(urls, TABLE, insecure_generator=True) as remote:
                rows = remote.lookup(indices)
                digest = remote.params.digest
        except NescioError as error:
            self.outcome.failed.append(f"afterwards: {error}")
            return
        lost, wrong = self.model.missing(indices, rows)
        self.outcome.lost += len(lost)
        self.outcome.wrong += wrong
        if self.operator is not None and digest != Table(self.model.newest()).params.digest:
            self.outcome.failed.append(f"the table's digest {digest} is not that of the model")

    def _end(self) -> None:
        for party in self.parties:
            party.stop()

    def _gather(self) -> None:
        """Adds what the clients saw and what the servers printed to the outcome."""
        out = self.outcome
        saw: Counter[str] = Counter()
        for reader in self.readers:
            out.lookups += reader.lookups
            out.wrong += reader.wrong
            out.refused += reader.refused
            out.behind = max(out.behind, reader.behind)
            out.outage = max(out.outage, reader.outage)
            saw += reader.saw
            out.texts.update(reader.texts)
        out.saw = dict(saw.most_common())
        if self.operator is not None:
            out.updates = self.operator.updates
            out.operator_saw = dict(self.operator.saw.most_common())
            out.texts.update({f"operator: {k}": v for k, v in self.operator.texts.items()})
        for party in self.parties:
            out.tracebacks += suspicious(party.log)
        out.seconds = time.monotonic() - self._begun


def suspicious(log: Path) -> list[str]:
    """Lists the tracebacks of a log, and the lines of its end that show what they are."""
    text = log.read_text(errors="replace") if log.exists() else ""
    found = text.split("Traceback (most recent call last)")[1:]
    return [part[:1500] for part in found] + [
        line for line in text.splitlines() if line.startswith("faults: ")
    ]
