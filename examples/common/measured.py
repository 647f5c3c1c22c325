"""Tables on two servers that keep the times and sizes of their requests, and timed models."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy.typing as npt
import torch

from nescio.pir import TableParams
from nescio.service import RemoteTable
from nescio.torch import PrivateEmbedding, PrivateEmbeddingBag

Array = npt.NDArray[Any]


class Request(NamedTuple):
    """A request to both servers: bytes to and from each of them, and seconds.

    `servers` is the time of the slower server, as its reply says. `network` is the rest until both
    replies are there: HTTP, sockets, and the wait for a processor.
    """

    bytes_up: int
    bytes_down: int
    keys: float
    servers: float
    network: float
    decode: float


class MeasuredTable:
    """A `RemoteTable` whose lookups are measured; each is one request, within the servers' quotas.

    `requests` has those made so far, `seen` the last message to the first server. Arguments and
    errors are those of RemoteTable.
    """

    def __init__(self, servers: Sequence[str], name: str, *, digest: str | None = None) -> None:
        self._remote = RemoteTable(servers, name, digest=digest)
        self.requests: list[Request] = []
        self.seen = b""

    @property
    def params(self) -> TableParams:
        """The table's public parameters."""
        return self._remote.params

    @property
    def layout(self) -> bytes:
        """The table's layout; empty for most tables."""
        return self._remote.layout

    @property
    def sizes(self) -> tuple[int, int]:
        """The bytes of a request to and from each server. All requests must be alike."""
        ((up, down),) = {(one.bytes_up, one.bytes_down) for one in self.requests}
        return up, down

    def lookup(self, indices: object, *, layout: str | None = None) -> Array:
        """Looks up rows as `RemoteTable.lookup` does, and measures the steps."""
        client = self._remote.client
        client.check_layout(layout)
        clock = [perf_counter()]
        query = client.query(indices)
        clock.append(perf_counter())
        replies = self._remote.exchange(query)
        clock.append(perf_counter())
        rows = client.decode(query, *(reply.body for reply in replies))
        clock.append(perf_counter())
        keys, exchange, decode = (end - begin for begin, end in pairwise(clock))
        servers = max(_server_seconds(reply.headers.get("Server-Timing", "")) for reply in replies)
        network = max(0.0, exchange - servers)
        self.seen = query.keys[0]
        up, down = len(self.seen), len(replies[0].body)
        self.requests.append(Request(up, down, keys, servers, network, decode))
        return rows

    def close(self) -> None:
        """Closes the connections."""
        self._remote.close()


def _server_seconds(header: str) -> float:
    """Parses the time of an answer in a Server-Timing header."""
    found = re.search(r"answer;dur=([0-9.]+)", header)
    return float(found[1]) / 1000 if found else 0.0


@dataclass(frozen=True)
class Phases:
    """The seconds of a call of a model, by step.

    `plan` chooses a place for each row; `model` is what the device computes from the rows.
    """

    plan: float
    keys: float
    servers: float
    network: float
    decode: float
    model: float

    @property
    def total(self) -> float:
        """The time of the whole call."""
        seconds: float = sum(getattr(self, field.name) for field in fields(self))
        return seconds


def milliseconds(calls: Sequence[Phases], inferences: int = 1) -> dict[str, float]:
    """Returns the median of each phase over some calls, in milliseconds for one inference."""
    names = [*(field.name for field in fields(Phases)), "total"]
    return {
        name: 1000 * median(getattr(call, name) for call in calls) / inferences for name in names
    }


class TimedModel:
    """Calls a model whose private embeddings use measured tables; `calls` has the phases of each.

    `tables` are all tables that the model uses.
    """

    def __init__(self, model: torch.nn.Module, tables: Mapping[str, MeasuredTable]) -> None:
        self.model, self.tables = model, tables
        self.calls: list[Phases] = []
        self._clock: list[float] = []
        for module in model.modules():
            if isinstance(module, PrivateEmbedding | PrivateEmbeddingBag):
                module.register_forward_pre_hook(self._tick)
                module.register_forward_hook(self._tick)

    def _tick(self, *_: object) -> None:
        self._clock.append(perf_counter())

    def __call__(self, *inputs: Any) -> Any:  # noqa: ANN401 - as the model has them
        """Calls the model without gradients."""
        self._clock = []
        done = {name: len(table.requests) for name, table in self.tables.items()}
        begin = perf_counter()
        with torch.no_grad():
            output = self.model(*inputs)
        whole = perf_counter() - begin
        lookups = sum(self._clock[1::2]) - sum(self._clock[::2])
        own = [request for name in done for request in self.tables[name].requests[done[name] :]]
        names = ("keys", "servers", "network", "decode")
        steps = {name: sum(getattr(request, name) for request in own) for name in names}
        plan = max(0.0, lookups - sum(steps.values()))
        self.calls.append(Phases(plan=plan, model=whole - lookups, **steps))
        return output
