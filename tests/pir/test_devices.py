"""Servers on one or several devices, also while the table changes."""

import contextlib
import sys
import threading
import types
from unittest.mock import Mock

import numpy as np
import pytest

import devices
import nescio
from nescio import _device
from nescio.errors import ArgumentError, MismatchError, ResourceError
from nescio.pir import _device_table


def look_up(servers, indices):
    client = nescio.Client(servers[0].params, servers[0].tops)
    query = client.query(indices)
    return client.decode(query, *(s.answer(k) for s, k in zip(servers, query.keys, strict=True)))


def two_servers(table, **options):
    return [nescio.Server(table, party=party, **options) for party in (0, 1)]


@pytest.fixture
def values(rng):
    return rng.normal(size=(1500, 11)).astype("f4")


@pytest.mark.parametrize("device", devices.ALL)
@pytest.mark.parametrize("output", ["bit", "u32"])
def test_a_lookup(device, output, values):
    table = nescio.Table(values, output=output)
    indices = [0, 1499, 700]
    assert np.array_equal(look_up(two_servers(table, device=device), indices), values[indices])


def test_one_party_on_a_device_and_one_on_the_processor(values):
    table = nescio.Table(values)
    servers = [nescio.Server(table), nescio.Server(table, device="emulated")]
    assert np.array_equal(look_up(servers, [[3, 4], [5, 6]]), values[[[3, 4], [5, 6]]])


@pytest.mark.parametrize("strategy", _device_table.STRATEGIES)
def test_several_devices_and_strategies(strategy, values):
    table = nescio.Table(values, record_rows=1)
    servers = two_servers(table, devices=["emulated", "emulated:1"], strategy=strategy)
    assert np.array_equal(look_up(servers, [0, 511, 512, 1499]), values[[0, 511, 512, 1499]])


@pytest.mark.parametrize("device", devices.FIRST)
def test_a_table_that_changes(device, values, rng):
    table = nescio.Table(values)
    servers = two_servers(table, device=device)
    wanted = np.arange(0, 1400, 173)
    row = rng.normal(size=(2, 11)).astype("f4")

    def same(expected):
        return np.array_equal(look_up(servers, wanted), expected[wanted])

    table.update([346, 5, 346], [row[1], row[1], row[0]])  # row 346 twice: the later wins
    values[[346, 5]] = row
    assert same(values)
    table.update([519], row[:1])
    table.update([346], row[1:])  # a second version, without a query in between
    values[519], values[346] = row[0], row[1]
    assert same(values)
    table.delete([0, 1000])
    values = np.delete(values, [0, 1000], axis=0)
    assert same(values)
    table.insert([7], row[:1])
    values = np.insert(values, 7, row[0], axis=0)
    assert same(values)


def test_an_update_sends_what_it_changed(values, monkeypatch):
    table = nescio.Table(values)
    server = nescio.Server(table, device="emulated")
    stored = []
    monkeypatch.setattr(_device_table.DeviceTable, "store", lambda *a: stored.append(a))
    table.update([9], values[:1])
    table.update([900, 9], values[:2])
    server.answer(nescio.Client(table.params, table.tops).query([9]).keys[0])
    assert not stored


def test_an_array_of_indices_that_is_used_again(values):
    """The copy on the device follows the update only with the next answer."""
    table = nescio.Table(values)
    servers = two_servers(table, device="emulated")
    where = np.array([3, 4], np.uint64)
    table.update(where, values[:2])
    where[:] = 700
    assert np.array_equal(look_up(servers, [3, 4, 700]), values[[0, 1, 700]])


def test_more_updates_than_are_remembered(values):
    table = nescio.Table(values)
    servers = two_servers(table, device="emulated")
    for k in range(300):
        table.update([k], values[[k + 1]])
    assert np.array_equal(look_up(servers, [0, 299, 300]), values[[1, 300, 300]])


def test_queries_for_a_version_that_is_gone(values):
    table = nescio.Table(values)
    table.keep_versions(1)
    server = nescio.Server(table, device="emulated")
    old = server.check(nescio.Client(table.params, table.tops).query([1]).keys[0])
    table.update([1], values[:1])
    new = server.check(nescio.Client(table.params, table.tops).query([1, 2]).keys[0])
    answers = server.answer_batch([old, new, old])
    assert [isinstance(a, MismatchError) for a in answers] == [True, False, True]
    assert [isinstance(a, MismatchError) for a in server.answer_batch([old])] == [True]


def test_answers_while_rows_change(values):
    table = nescio.Table(values)
    servers = two_servers(table, device="emulated")
    stop = threading.Event()

    def change():
        while not stop.wait(0.05):
            table.update([3], values[[3]])  # the same row, under a new version

    worker = threading.Thread(target=change)
    worker.start()
    try:
        answered = 0
        while answered < 5:
            with contextlib.suppress(MismatchError):  # the version changed before the answer
                assert np.array_equal(look_up(servers, [3, 4]), values[[3, 4]])
                answered += 1
    finally:
        stop.set()
        worker.join()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "gpu"}, "device: found 'gpu', expected a GPU: 'cuda'.* or 'auto', or 'cpu'"),
        ({"device": "cuda:x"}, "device: found 'cuda:x'"),
        ({"device": None}, "device: found None"),
        ({"devices": []}, r"devices: found \[\], expected a list of names"),
        ({"devices": "cuda"}, "devices: found 'cuda', expected a list of names"),
        ({"devices": ["cpu"]}, "device: found 'cpu'"),
        ({"device": "emulated", "devices": ["emulated"]}, "not both"),
        ({"devices": ["emulated"] * 4}, "375 records cannot be split over 4 devices"),
        (
            {"device": "emulated", "strategy": "fast"},
            "strategy: found 'fast', expected one of auto",
        ),
        ({"strategy": "level"}, "the strategy 'level' needs a GPU: name one as the device"),
    ],
)
def test_invalid_devices(options, message, values):
    with pytest.raises(ArgumentError, match=message):
        nescio.Server(nescio.Table(values), **options)


def test_a_device_that_is_not_there(values):
    with pytest.raises(ResourceError, match="emulated:7 does not exist: found 4"):
        nescio.Server(nescio.Table(values), device="emulated:7")


def test_the_engine_has_the_same_strategies():
    assert _device.Device("emulated", 0).engine().STRATEGIES == _device_table.STRATEGIES


class NotHandedOut:
    """Rows that cannot be exported, as in PyTorch if another GPU is the current device."""

    shape = (600, 4)

    def __getitem__(self, rows):
        return self

    def __dlpack__(self, **options):
        raise BufferError("the current device is another")

    def __dlpack_device__(self):
        return (2, 1)


def test_rows_that_cannot_be_exported():
    table = _device_table.open_table("emulated", 600, 4, "bit")
    with pytest.raises(ArgumentError, match="the rows cannot be exported with DLPack"):
        table.store(0, NotHandedOut())


@pytest.mark.skipif(devices.cards() > 0, reason="this machine has a GPU")
def test_a_machine_without_a_gpu(values):
    with pytest.raises(ResourceError, match=r"no usable GPU|this build has no GPU part"):
        nescio.Server(nescio.Table(values), device="cuda")
    assert len(_device.gpus()) == 1
    assert _device.gpus()[0].startswith("none")


def test_a_build_without_the_gpu_part(values, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "nescio._cuda", None)
    with pytest.raises(ResourceError, match="cuda:1: this build has no GPU part: build it on"):
        nescio.Server(nescio.Table(values), device="cuda:1")
    (described,) = _device.gpus()
    assert described.startswith("none: this build has no GPU part: build it on a machine with")


def test_a_gpu_part_that_cannot_be_loaded(values, monkeypatch):
    def fail(name, package):
        raise ImportError("libstdc++.so.6: version `GLIBCXX_3.4.99' not found")

    monkeypatch.setattr(_device.importlib, "import_module", fail)
    with pytest.raises(ResourceError, match=r"cuda:0: .* cannot be loaded: libstdc\+\+"):
        nescio.Server(nescio.Table(values), device="cuda")


def card(monkeypatch, memory_bytes=8 << 30, found=True):
    """Puts an emulated device of the given memory in place of the machine's GPUs, if any."""
    engine = _device.Device("emulated", 0).engine()
    module = types.ModuleType("nescio._cuda")

    def device_info(number):
        if not found:
            raise ResourceError("no GPU")
        return engine.device_info(number) | {"memory_bytes": memory_bytes}

    module.devices, module.device_info, module.Table = engine.devices, device_info, engine.Table
    monkeypatch.setitem(sys.modules, "nescio._cuda", module)
    return module


def test_auto_is_the_first_gpu(values, monkeypatch):
    card(monkeypatch)
    servers = two_servers(nescio.Table(values))
    assert [server.devices for server in servers] == [("cuda:0",)] * 2
    assert np.array_equal(look_up(servers, [3, 1499]), values[[3, 1499]])
    for options in ({"device": "cpu"}, {"tier": "portable"}):
        assert nescio.Server(nescio.Table(values), **options).devices == ("cpu",)


def test_auto_goes_on_with_the_processor_if_the_table_outgrows_the_gpu(values, monkeypatch, caplog):
    module = card(monkeypatch)
    table = nescio.Table(values)
    servers = two_servers(table)
    assert servers[0].devices == ("cuda:0",)

    def out_of_memory(**_):
        raise ResourceError("cuda:0 is out of memory")

    module.Table = out_of_memory
    table.insert([0], values[:1])
    assert np.array_equal(look_up(servers, [0, 1500]), values[[0, 1499]])
    assert servers[0].devices == ("cpu",)
    assert "the CPU answers from now on: cuda:0 is out of memory" in caplog.text


def test_auto_is_the_processor_without_a_gpu(values, monkeypatch):
    monkeypatch.setitem(sys.modules, "nescio._cuda", None)  # a build without the GPU part
    table = nescio.Table(values)
    assert nescio.Server(table).devices == ("cpu",)
    with pytest.raises(ResourceError, match="no GPU part"):
        nescio.Server(table, device="cuda")
    card(monkeypatch, found=False)
    assert nescio.Server(table).devices == ("cpu",)


def test_auto_is_the_processor_for_a_table_that_does_not_fit(values, monkeypatch):
    table = nescio.Table(values)
    needed = 512 * 176 + (2 << 30)  # whole blocks of 512 records of 4 rows, and a batch
    card(monkeypatch, needed)
    assert nescio.Server(table).devices == ("cuda:0",)
    card(monkeypatch, needed - 1)
    assert nescio.Server(table).devices == ("cpu",)

    for error in (MemoryError(), ResourceError("cuda:0 is out of memory")):  # of host, of card
        card(monkeypatch).Table = Mock(side_effect=error)
        server = nescio.Server(table)
        assert server.devices == ("cpu",)
    other = nescio.Server(table, device="cpu")
    assert np.array_equal(look_up([server, other], [7]), values[[7]])


def test_threads_run_while_a_table_is_allocated():
    """The first use of a GPU takes a second; the constructor must not hold the interpreter."""
    engine = _device.Device("emulated", 0).engine()
    turns, stop = [0], threading.Event()

    def count():
        while not stop.wait(0.0005):
            turns[0] += 1

    interval = sys.getswitchinterval()
    counter = threading.Thread(target=count)
    counter.start()
    sys.setswitchinterval(60)  # only who releases the interpreter loses it
    try:
        before = turns[0]
        facts = {"bins": [(1, 1 << 20, 1)], "row_bytes": 256, "output": "bit"}
        engine.Table(device=0, first_row=0, rows=1 << 20, **facts)  # 268 MB, which it fills
        during = turns[0] - before
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        counter.join()
    assert during > 0
