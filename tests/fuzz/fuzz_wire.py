"""Fuzzes the Python parsers of outside bytes, by coverage (atheris, libFuzzer).

    python tests/fuzz/fuzz_wire.py -max_total_time=60

Whatever comes in, the wire either accepts it, and then it can be answered or decoded, or refuses it
with a NescioError. Options are libFuzzer's.
"""

import socket
import sys
import tempfile
from pathlib import Path
from types import FunctionType

import atheris
import numpy as np

import nescio
from nescio.net import _channel, _frame, _transport
from nescio.ot import _base_ot
from nescio.ot._randomness import SystemRandomness
from nescio.pir import _change as change
from nescio.pir import _params as params
from nescio.pir import _stored as stored
from nescio.pir import _tops as tops
from nescio.pir import _vacancy as vacancy
from nescio.pir import _wire as wire
from nescio.pir._keyed import KeyedLayout
from nescio.pir._keyed import _layout as keyed_layout
from nescio.pir.batch import FullPart, HotPart, Layout, Together
from nescio.pir.batch import _layout_file as layout_file
from nescio.pir.batch import _packing as packing
from nescio.pir.batch import _parts as parts

# By function: atheris's import hook does not see packages that are installed in place.
MODULES = (_frame, _base_ot, wire, tops, params, params.TableParams, change, change.Change, stored)
BATCH = (layout_file, layout_file._Reader, packing, parts, HotPart, FullPart, Together, Layout)
for module in (*MODULES, change._Head, vacancy, vacancy.Vacancy, keyed_layout, KeyedLayout, *BATCH):
    for thing in list(vars(module).values()):
        function = getattr(thing, "__func__", thing)  # of a class method
        if isinstance(function, FunctionType) and function.__module__.startswith("nescio."):
            atheris.instrument_func(function)

ROWS = np.arange(1800, dtype="u1").reshape(600, 3)
CHANGED, NOWHERE = np.ones((1, 3), np.uint8), np.zeros(0, np.uint64)
TABLE = nescio.Table(ROWS, spare=2)
EXTRA = TABLE.extra_state()
PARAMS = TABLE.params
SERVERS = [nescio.Server(TABLE, threads=1, party=party) for party in (0, 1)]
CLIENT = nescio.Client(PARAMS, TABLE.tops)
QUERY = CLIENT.query([1, 599])
ANSWERS = [server.answer(key) for server, key in zip(SERVERS, QUERY.keys, strict=True)]
FOLDER = tempfile.TemporaryDirectory(prefix="nescio-fuzz-")
FILE = Path(FOLDER.name, "table.nescio")
TABLE.save(FILE)
STORED = FILE.read_bytes()
CHANGES = [
    change.Change(operation, "2", np.array([7, 599], np.uint64), rows).encode(PARAMS)
    for operation, rows in [
        ("update", np.ones((2, 3), np.uint8)),
        ("insert", np.ones((2, 3), np.uint8)),
        ("delete", np.ones((0, 3), np.uint8)),
        ("clear", np.ones((0, 3), np.uint8)),
    ]
]
CHANGES.append(change.Change("append", "2", np.array([600], np.uint64), CHANGED).encode(PARAMS))
CHANGES.append(change.Change("grow", "2", NOWHERE, CHANGED[:0], count=9).encode(PARAMS))

KEYS = ["a", "b", "c"]


def keyed_table() -> nescio.pir.KeyedTable:
    """Makes a small table with keys."""
    return nescio.pir.KeyedTable(KEYS, np.ones((3, 4), np.uint8), threads=1)


KEYED = keyed_table()
KEYED_CHANGES = [
    change.Change(operation, "2", words, np.ones((rows, 4), np.uint8)).encode(KEYED.params)
    for words in [np.arange(1, 9, dtype=np.uint64).reshape(2, 4)]
    for operation, rows in [("update", 2), ("insert", 2), ("delete", 0)]
]

BATCH_LAYOUT = Layout(
    600,
    FullPart(5, hashes=2, seed=3),
    HotPart(np.arange(0, 600, 9), 4, keys=2),
    Together(np.arange(3), np.array([[7, -1], [8, 9], [0, 1]])),
    lookups=8,
).to_bytes()

with TABLE.reading() as state:
    TOPS = [tops.encode_tops(state), tops.encode_tops(state, PARAMS.id)]

FRAMES = b"".join(
    _frame.encode_header(kind, number, len(data)) + data
    for number, (kind, data) in enumerate([("ROWS", bytes(32)), ("TEXT", b"abc"), ("ABRT", b"no")])
)


def damaged(provider: atheris.FuzzedDataProvider, sound: bytes) -> bytes:
    """Damages a valid message: overwrites or swaps bytes, or returns random bytes."""
    at = provider.ConsumeIntInRange(0, len(sound))
    keep = provider.ConsumeIntInRange(0, len(sound))
    way = provider.ConsumeIntInRange(0, 2)
    noise = provider.ConsumeBytes(64)
    if way == 0:
        return noise
    if way == 1:
        return sound[:at] + noise + sound[at + len(noise) :]
    return sound[:at] + noise + sound[keep:]


def fuzz_query(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes queries, as a server parses them."""
    party = provider.ConsumeIntInRange(0, 1)
    answer = SERVERS[party].answer(damaged(provider, QUERY.keys[party]))
    assert len(answer) >= wire.HEADER_BYTES


def fuzz_answer(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes answers, as a client parses them."""
    rows = CLIENT.decode(QUERY, damaged(provider, ANSWERS[0]), ANSWERS[1])
    assert np.array_equal(rows, TABLE[[1, 599]])  # a wrong answer is refused


def fuzz_tops(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes tops, as a client parses them; what is accepted is the table's."""
    sound = provider.PickValueInList(TOPS)
    found = tops.parse_tops(PARAMS, damaged(provider, sound), TABLE.tops)
    assert np.array_equal(found, TABLE.tops)


def fuzz_params(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes parameters, and encodes the parsed ones again."""
    found = nescio.TableParams.from_json(damaged(provider, PARAMS.to_json().encode()))
    assert nescio.TableParams.from_json(found.to_json()) == found


def fuzz_change(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes changes, and applies the parsed ones to a table."""
    sound = provider.PickValueInList(CHANGES)
    found = change.Change.parse(PARAMS, damaged(provider, sound))
    if found.count > 1 << 20:
        return  # takes too much memory
    table = nescio.Table(ROWS, spare=2, threads=1)
    found.apply(table)
    assert table.params != PARAMS


def fuzz_change_head(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes heads of changes, which a server checks before it gets the change."""
    sound = change.head_of(provider.PickValueInList(CHANGES))
    change.check_head(TABLE, damaged(provider, sound), 1 << 20)


def fuzz_keyed_change(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes changes of keys; what is refused changes nothing."""
    table, number = keyed_table(), provider.ConsumeIntInRange(0, len(KEYED_CHANGES) - 1)
    try:
        change.make_change(table.table, damaged(provider, KEYED_CHANGES[number]))
    except nescio.NescioError:
        assert table.params == KEYED.params
        assert all(key in table for key in KEYS)
        raise
    rows = table.table[np.arange(len(table.table))]
    assert (rows[:, :8].any(axis=1)).sum() == len(table)


def fuzz_keyed_layout(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes layouts of keyed tables; only their own bytes are accepted."""
    data = damaged(provider, KEYED.layout.to_bytes())
    assert KeyedLayout.from_bytes(data).to_bytes() == data


def fuzz_batch_layout(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes batch layouts, as a client and `nescio serve` parse them."""
    data = damaged(provider, BATCH_LAYOUT)
    assert Layout.from_bytes(data).to_bytes() == data


def fuzz_stored(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes stored tables."""
    FILE.write_bytes(damaged(provider, STORED))
    table = nescio.Table.load(FILE, threads=1)
    assert table[[0, len(table) - 1]].shape[0] == 2


def fuzz_vacancy(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes sets of vacant rows, which come with snapshots."""
    data = damaged(provider, EXTRA)
    found = vacancy.Vacancy.from_bytes(data, len(TABLE))
    assert len(found.lowest(len(TABLE))) == found.count


class LocalSocket(socket.socket):
    """A socket of a pair, which ignores TCP options."""

    def setsockopt(self, *options: object) -> None:
        """Does nothing."""


def fuzz_frames(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes frames: the other end of a channel sends bytes and closes."""
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.sendall(damaged(provider, FRAMES))
    local = LocalSocket(fileno=ours.detach())
    with _channel.Channel(_transport.SocketTransport(local), 5.0, None) as end:
        assert len(end.receive("ROWS", 32)) == 32
        assert len(end.receive_at_most("TEXT", 100)) <= 100
        end.receive("LAST", 0)


class OtherReceiver:
    """A channel to a receiver of one base OT that sends the fuzzer's bytes."""

    def __init__(self, reply: bytes) -> None:
        self._reply = reply

    def send(self, kind: str, data: bytes) -> None:
        """Discards the data."""

    def receive(self, kind: str, length: int) -> bytes:
        """Returns `length` of the fuzzer's bytes."""
        return self._reply[:length].ljust(length, b"\0")


def fuzz_points(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes curve points, as a sender of base OTs parses them."""
    sound = bytes(16) + 2 * (bytes([0x58]) + bytes([0x66] * 31))  # the base point, twice
    reply = OtherReceiver(damaged(provider, sound))
    assert _base_ot.send_base(reply, 1, SystemRandomness()).shape == (1, 2, 16)


def one_input(data: bytes) -> None:
    """Runs one input of the fuzzer."""
    provider = atheris.FuzzedDataProvider(data)
    target = provider.PickValueInList(
        [
            *(fuzz_query, fuzz_answer, fuzz_tops, fuzz_params, fuzz_change, fuzz_stored),
            *(fuzz_change_head, fuzz_keyed_change, fuzz_keyed_layout, fuzz_batch_layout),
            *(fuzz_frames, fuzz_points, fuzz_vacancy),
        ]
    )
    try:
        target(provider)
    except nescio.NescioError:
        return


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
