"""A queue that serves clients in turn, by keys: deficit round robin.

Shreedhar and Varghese, "Efficient Fair Queuing Using Deficit Round Robin", SIGCOMM 1995. A round
adds a share of a batch to each client's credit, and takes lookups for as much. Lookups are
independent, so a request may be spread over several batches: a request of many keys delays others
by no more than their own batch.
"""

import math
from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

_MAX_PROMPT = 4096
_NEWEST = 0.2  # weight of the last batch in the share of requests that come back
_PAUSE = 0.5  # of the time of a batch, that the next one waits at most
_WORTH = 2 / 3  # of the requests that wait, which must be expected in that time


@dataclass(slots=True, eq=False, kw_only=True)
class Job:
    """A request in the queue: its lookups, the keys for a bin of each, and the lookups taken."""

    client: Hashable
    lookups: int
    cost: int
    taken: int = 0

    @property
    def keys(self) -> int:
        """The keys that wait."""
        return (self.lookups - self.taken) * self.cost


J = TypeVar("J", bound=Job)


class Piece(NamedTuple, Generic[J]):
    """Consecutive lookups of one request: `lookups` of them, from number `first` on."""

    job: J
    first: int
    lookups: int


@dataclass(slots=True, eq=False)
class _Client(Generic[J]):
    """One client's requests, in the order of arrival."""

    name: Hashable
    jobs: deque[J] = field(default_factory=deque)
    keys: int = 0
    credit: int = 0
    in_turn: bool = False


class FairQueue(Generic[J]):
    """Requests that wait for an answer. It is not safe for use from several threads."""

    def __init__(self) -> None:
        self._clients: dict[Hashable, _Client[J]] = {}
        self._ring: deque[_Client[J]] = deque()  # whose turn it is comes first
        self._keys = 0

    def __bool__(self) -> bool:
        """Tells if a request waits."""
        return bool(self._ring)

    @property
    def keys(self) -> int:
        """The keys of all requests that wait."""
        return self._keys

    @property
    def requests(self) -> int:
        """The number of requests of which a lookup waits."""
        return sum(len(client.jobs) for client in tuple(self._ring))

    @property
    def clients(self) -> int:
        """The number of clients whose requests wait."""
        return len(self._ring)

    def keys_of(self, client: Hashable) -> int:
        """Returns the keys of a client that wait."""
        found = self._clients.get(client)
        return 0 if found is None else found.keys

    def most_keys(self) -> int:
        """Returns the keys of the client of which the most wait."""
        return max((client.keys for client in self._ring), default=0)

    def push(self, job: J) -> None:
        """Appends a request to those of its client."""
        client = self._clients.get(job.client)
        if client is None:
            client = self._clients[job.client] = _Client(job.client)
            self._ring.append(client)
        client.jobs.append(job)
        self._count(client, job.keys)

    def cancel(self, job: J) -> None:
        """Removes what is left of a request; a second call has no effect."""
        client = self._clients.get(job.client)
        if client is None or job not in client.jobs:
            return
        self._count(client, -job.keys)
        client.jobs.remove(job)
        if not client.jobs:
            self._ring.remove(client)
            del self._clients[client.name]

    def clear(self) -> list[J]:
        """Empties the queue; returns the requests."""
        jobs = [job for client in self._ring for job in client.jobs]
        self._clients.clear()
        self._ring.clear()
        self._keys = 0
        return jobs

    def take(self, limit: int) -> list[Piece[J]]:
        """Takes a batch: lookups of at most `limit` keys, or one lookup."""
        batch: list[Piece[J]] = []
        room = limit
        share = max(1, limit // max(1, len(self._ring)))
        while self._ring:
            client = self._ring[0]
            if not client.in_turn:
                client.credit += share
                client.in_turn = True
            room = self._serve(client, room, batch)
            if not client.jobs:
                self._ring.popleft()
                del self._clients[client.name]
            elif client.credit < client.jobs[0].cost:
                client.in_turn = False
                self._ring.rotate(-1)
            else:
                break  # the batch is full, in the middle of the turn
        return batch

    def _serve(self, client: _Client[J], room: int, batch: list[Piece[J]]) -> int:
        """Takes lookups of one client for its credit; returns the room that is left."""
        while client.jobs:
            job = client.jobs[0]
            left = job.lookups - job.taken
            count = left
            if job.cost:
                fits = room // job.cost if batch or room >= job.cost else 1
                count = max(0, min(left, client.credit // job.cost, fits))
            if left and not count:
                break
            batch.append(Piece(job, job.taken, count))
            job.taken += count
            spent = count * job.cost
            room -= spent
            client.credit -= spent
            self._count(client, -spent)
            if count == left:
                client.jobs.popleft()
        return room

    def _count(self, client: _Client[J], keys: int) -> None:
        client.keys += keys
        self._keys += keys


class Comebacks:
    """Requests that follow the answers of a batch: of how many the next batch should wait for.

    Clients that ask again as soon as they have an answer fall into groups, of which one waits while
    the other is answered. Each pass then answers half of them, and takes as long as one for all. So
    a batch waits, for half of the time of a batch at most, if by then more requests come than two
    thirds of those that wait, as they did after the last batches. Requests that come at a steady
    rate are about half of them.
    """

    def __init__(self) -> None:
        self._share = 0.0  # of the answers of a batch that requests follow within the pause
        self._answered = 0
        self._arrived = 0
        self._end = 0.0

    def answered(self, requests: int, seconds: float, now: float) -> None:
        """Notes the end of a batch of so many requests, and the time that batches take."""
        if self._answered:
            found = min(1.0, self._arrived / self._answered)
            self._share += _NEWEST * (found - self._share)
        self._answered, self._arrived, self._end = requests, 0, now + _PAUSE * seconds

    def arrived(self, now: float) -> None:
        """Notes a request."""
        self._arrived += now < self._end

    def wait(self, waiting: int, now: float) -> float:
        """Returns the seconds that a batch should wait, with so many requests in it already."""
        expected = self._share * self._answered
        before = waiting - self._arrived  # that waited when the last batch ended
        worth = expected > _WORTH * before and self._arrived < math.floor(expected)
        return max(0.0, self._end - now) if worth else 0.0


class Returns:
    """Clients that send their next request as soon as they have an answer.

    Between the answer and the next request of such a client nothing of it waits. A batch that
    starts in this moment would have only keys of clients with a long queue, and the next request
    would wait for all of it. So the batch waits up to `window` seconds for such clients, if they
    were that fast the last time. (Disk schedulers anticipate reads like this: Iyer and Druschel,
    "Anticipatory scheduling", SOSP 2001.)
    """

    def __init__(self, window: float) -> None:
        self._window = window
        self._absent: set[Hashable] = set()
        self._prompt: set[Hashable] = set()
        self._end = 0.0

    def answered(self, clients: Iterable[Hashable], now: float) -> None:
        """Notes the clients of a batch of which nothing waits."""
        self._absent = set(clients)
        self._end = now + self._window

    def arrived(self, client: Hashable, now: float) -> None:
        """Notes a request."""
        if client in self._absent:
            self._absent.discard(client)
            if now < self._end:
                if len(self._prompt) >= _MAX_PROMPT:
                    self._prompt.clear()
                self._prompt.add(client)

    def wait(self, now: float) -> float:
        """Returns the seconds that a batch should wait for clients that are expected."""
        expected = self._absent & self._prompt
        if expected and now >= self._end:
            self._prompt -= expected
            return 0.0
        return self._end - now if expected else 0.0
