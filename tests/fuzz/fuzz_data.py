"""Fuzzes the parsers of a data folder's files, by coverage (atheris, libFuzzer).

    python tests/fuzz/fuzz_data.py -max_total_time=60

Whatever a file contains, it is either read or refused with a FileError. Checksums of damaged bytes
are made anew half of the time, so that what is behind them is reached. Options are libFuzzer's.
"""

import io
import sys
from types import FunctionType

import atheris
import numpy as np
from xxhash import xxh3_128_digest

import nescio
from nescio.errors import FileError
from nescio.pir._change import Change
from nescio.pir._durable import Kept, Versions, _replay, _versions
from nescio.pir._keyed import KeyedTable
from nescio.service._data import Origin, _journal, _origin, _state

for module in (_journal, _journal.JournalReader, _journal.Head, _state, _state.State, _origin):
    for thing in list(vars(module).values()):
        function = getattr(thing, "__func__", thing)
        if isinstance(function, FunctionType) and function.__module__.startswith("nescio."):
            atheris.instrument_func(function)
replays = (_versions.Versions, _replay.Replay, _replay._StandIn)
for function in (one for kind in replays for one in vars(kind).values()):
    if isinstance(function, FunctionType):
        atheris.instrument_func(function)

ROWS = np.arange(1800, dtype="u1").reshape(600, 3)
PARAMS = nescio.Table(ROWS, threads=1).params
HEAD = _journal.Head(1, PARAMS.id, PARAMS.id, bytes(16))
MESSAGES = [
    Change(kind, "2", np.array([7, 599], np.uint64), np.ones((count, 3), np.uint8)).encode(PARAMS)
    for kind, count in (("update", 2), ("insert", 2), ("delete", 0))
]
JOURNAL = HEAD.encode() + b"".join(
    part
    for number, message in enumerate(MESSAGES)
    for part in _journal.encode_record(HEAD.name, number, _journal.Record(message, b"", bytes(16)))
)
KEPT = Kept(bytes(16), bytes(32), None, b"", np.zeros(2, np.uint64), np.zeros((2, 4), np.uint64))
STATE = _state.State(PARAMS.id, Origin.of(PARAMS, []), KEPT).encode()


def damaged(provider: atheris.FuzzedDataProvider, sound: bytes) -> bytes:
    """Overwrites or cuts a part of valid bytes."""
    at = provider.ConsumeIntInRange(0, len(sound))
    keep = provider.ConsumeIntInRange(at, len(sound))
    noise = provider.ConsumeBytes(64)
    if provider.ConsumeBool():
        return sound[:at] + noise + sound[at + len(noise) :]
    return sound[:at] + noise + sound[keep:]


def fuzz_journal(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes journals."""
    data = damaged(provider, JOURNAL)
    reader = _journal.JournalReader(io.BytesIO(data))
    for record in reader:
        assert record.message in MESSAGES
    assert reader.end + reader.torn_bytes == len(data)


def fuzz_state(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes states, with valid checksums."""
    body = damaged(provider, STATE[32:])
    length = provider.PickValueInList([int.from_bytes(STATE[12:16], "little"), len(body)])
    head = STATE[:12] + length.to_bytes(4, "little") + xxh3_128_digest(body)
    found = _state.State.parse(head + body)
    assert len(found.kept.words) == len(found.kept.slots)


def fuzz_replay(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes the messages and the moved rows of records, with valid checksums."""
    message = damaged(provider, provider.PickValueInList(MESSAGES))
    table = nescio.Table(ROWS, threads=1)
    if provider.ConsumeBool():
        table = KeyedTable(["a", "b", "c"], np.ones((3, 4), np.uint8), threads=1).table
        message = message[:16] + table.params.id + message[32:]
    replay = Versions(table, 4)
    if provider.ConsumeBool():
        replay.mark()
    replay.add(message, provider.ConsumeBytes(40), bytes(16))
    replay.finish()


def one_input(data: bytes) -> None:
    """Runs one input of the fuzzer."""
    provider = atheris.FuzzedDataProvider(data)
    try:
        provider.PickValueInList([fuzz_journal, fuzz_state, fuzz_replay])(provider)
    except FileError:
        return


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
