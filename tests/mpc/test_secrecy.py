"""Statistics of whole transcripts against inputs and weights; each also finds planted leaks."""

from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from mpc.sessions import small_network
from mpc.transcripts import (
    POOL,
    Online,
    Recording,
    bytes_at,
    correlated,
    positions,
    together_uniform,
)
from nescio import _core
from nescio.mpc import _offline
from nescio.mpc._dealer import insecure_deal
from nescio.mpc._linear import ClientKeys, ServerWeights
from nescio.mpc._offline import OfflineClient, OfflineServer
from nescio.mpc._products import bits_of
from nescio.mpc._session import Client, Server, prepare
from nescio.mpc._store import Store
from nescio.mpc._tables import TableMaker
from ot.parties import together

COUNT = 4000
NETWORKS = [small_network(np.random.default_rng(seed), bits=8) for seed in (1, 2)]
LARGE_TABLES = small_network(np.random.default_rng(1), bits=9)
INPUTS = [np.full(NETWORKS[0].inputs, value, np.int32).view(np.uint32) for value in (0, -19)]


def online(network=0, x=0, change=None):
    """Runs many inferences of one input; `change` may plant a leak in the parties' material."""
    client, server = insecure_deal(NETWORKS[network], COUNT, np.random.default_rng(7))
    if change is not None:
        client, server = change(client, server)
    return Online(NETWORKS[network], client, server, INPUTS[x])


# ---- online --------------------------------------------------------------------------------------


def test_the_networks_differ_in_secrets_alone():
    assert NETWORKS[0].public.digest == NETWORKS[1].public.digest
    outputs = [online(network, x).outputs.view(np.int32) for network in (0, 1) for x in (0, 1)]
    means = np.array([own.mean(0) for own in outputs])
    assert np.abs(means[:, None] - means).max(-1)[~np.eye(4, dtype=bool)].min() > 10


@pytest.mark.parametrize("party", ["client", "server"])
@pytest.mark.parametrize(("network", "x"), [(0, 0), (0, 1), (1, 0)])
def test_what_a_party_sees_is_uniform_for_any_input_and_weights(party, network, x):
    """Each byte of each message, opened numbers, and those without the party's own shares."""
    run = online(network, x)
    assert bytes_at(run.view(party)) < 1
    assert correlated(run.messages()) < 1


def zero_input_mask(client, server):
    return replace(client, mask=np.zeros_like(client.mask)), server


def masks_used_twice(client, server):
    mask = client.mask.copy()
    mask[1::2] = mask[::2]
    return replace(client, mask=mask), server


def one_mask_for_two_values(client, server):
    mask = client.mask.copy()
    mask[:, :, 0, 0] = mask[:, :, 1, 1]
    return replace(client, mask=mask), server


def in_tables(party, **changes):
    """Changes arrays of the tables of a party's first layer."""

    def change(client, server):
        first, *others = (client if party == "client" else server).layers
        arrays = {name: by(getattr(first.tables, name)) for name, by in changes.items()}
        layers = (replace(first, tables=replace(first.tables, **arrays)), *others)
        if party == "client":
            return replace(client, layers=layers), server
        return client, replace(server, layers=layers)

    return change


def no_result_mask(client, server):
    first, *others = client.layers
    return replace(client, layers=(replace(first, mask=np.zeros_like(first.mask)), *others)), server


LEAKS = {
    "the input's mask is zero": ("server", zero_input_mask),
    "the input's mask is used twice": ("server", masks_used_twice),
    "two pixels have one mask": ("server", one_mask_for_two_values),
    "the results' mask is zero": ("server", no_result_mask),
    "the client's entries are not masked": ("server", in_tables("client", masks=np.zeros_like)),
    "the server's entries are not masked": ("client", in_tables("server", masks=np.zeros_like)),
    "the server's offsets are zero": ("client", in_tables("server", offsets=np.zeros_like)),
    "offsets miss a bit": ("client", in_tables("server", offsets=lambda own: own & 0x7F)),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_planted_leak_is_found(leak):
    party, change = LEAKS[leak]
    run = online(0, 1, change)
    assert max(bytes_at(run.view(party)), correlated(run.messages())) > 1


def test_places_that_are_not_reduced_are_found(monkeypatch):
    """Places of 16 bits: their sum has the bits of the value above the table's."""
    monkeypatch.setattr(_core, "lut_message_bytes", lambda _, count: 2 * count)
    monkeypatch.setattr(_core, "lut_pack", lambda _, numbers: numbers.copy().view(np.uint8))
    monkeypatch.setattr(
        _core, "lut_unpack", lambda _bits, _count, data: data.view(np.uint16).copy()
    )
    run = online(0, 1)
    assert bytes_at(np.concatenate([run.rows(layer.place) for layer in run.layers()], axis=1)) > 1


# ---- both phases, without the dealer -------------------------------------------------------------

SAMPLE = 150
SEEN = {"CIPH", "PROD", "TABL", "PLAC", "INPT", "ASKS", "ANSW", "OUTS"}
OF_TREES = {"TKEY", "FLIP"}


def both_phases(network, folder, *, at_once=1):
    """Prepares and runs inferences, SAMPLE for each input; returns the frames of each kind.

    Frames are (inferences, bytes), by party, kind, and number within an inference.
    """
    paths = folder / "client", folder / "server"
    sent = [[], []]

    def client(channel):
        ear = Recording(channel)
        prepare(ear, network.public, paths[0], 2 * SAMPLE, threads=1)
        with Client(ear, network.public, paths[0], threads=1, batch=at_once) as party:
            for x in INPUTS:
                party.infer_batch(np.stack([x] * SAMPLE))
        sent[0] = ear.sent

    def server(channel):
        ear = Recording(channel)
        prepare(ear, network, paths[1], 2 * SAMPLE, threads=1)
        with Server(ear, network, paths[1], threads=1, batch=at_once) as party:
            assert sum(party.serve() for _ in range(2 * SAMPLE // at_once)) == 2 * SAMPLE
        sent[1] = ear.sent

    together(client, server)
    return {
        (name, *key): rows
        for name, own in zip(("client", "server"), sent, strict=True)
        for key, rows in by_kind(own, at_once).items()
    }


SHARES = {"INPT": [1], "ASKS": [1, 1], "ANSW": [1, 4], "OUTS": [1]}
"""The parts of a frame of the online phase; those of several inferences follow each other."""


def by_kind(sent, at_once):
    """Arranges the frames of many inferences by kind and by number within an inference."""
    found = {}
    for kind in (SEEN | OF_TREES) & {kind for kind, _ in sent}:
        own = [data for other, data in sent if other == kind]
        together = at_once if kind in SHARES else 1
        each = len(own) * together // (2 * SAMPLE)
        for number in range(each):
            rows = [split(data, together, SHARES.get(kind, [1])) for data in own[number::each]]
            found[kind, number] = np.concatenate(rows)
    return found


def split(data, count, shares):
    """Splits the frame of a batch into lines for its inferences; entries have 8 bits."""
    ends = np.cumsum(shares) * len(data) // sum(shares)
    parts = [part.reshape(count, -1) for part in np.split(data, ends[:-1])]
    return np.concatenate(parts, axis=1)


@pytest.fixture
def quick_marks(monkeypatch):
    """Leaves out the syncing of marks to the disk, which has tests of its own."""
    monkeypatch.setattr("os.fsync", lambda _: None)


@pytest.mark.parametrize("network", [*NETWORKS, LARGE_TABLES], ids=["one", "other", "trees"])
def test_all_frames_of_both_phases_are_uniform(network, tmp_path, quick_marks):
    """For each input and both sets of weights; ciphertexts and products among them."""
    frames = both_phases(network, tmp_path)
    seen = SEEN | OF_TREES if network is LARGE_TABLES else SEEN
    assert {kind for _, kind, _ in frames} == seen
    for place, rows in frames.items():
        for own in (rows[:SAMPLE], rows[SAMPLE:]):
            assert positions(own) < 1, place
            assert together_uniform(own) < 1, place


def test_frames_of_inputs_that_run_together_are_uniform(tmp_path, quick_marks):
    """Also the differences of two inferences of a batch."""
    frames = both_phases(NETWORKS[0], tmp_path, at_once=SAMPLE)
    assert {kind for _, kind, _ in frames} == SEEN
    for place, rows in frames.items():
        for own in (rows[:SAMPLE], rows[SAMPLE:]):
            assert positions(own) < 1, place
            assert together_uniform(own) < 1, place


def test_a_batch_that_uses_a_prepared_inference_twice_is_found(tmp_path, quick_marks, monkeypatch):
    take = Store.use_all

    def twice(self, number, parts):
        take(self, number, parts)
        for one, other in zip(parts[::2], parts[1::2], strict=True):
            for source, target in zip(one, other, strict=True):
                target[:] = source

    monkeypatch.setattr(Store, "use_all", twice)
    frames = both_phases(NETWORKS[0], tmp_path, at_once=SAMPLE)
    for place in (("client", "INPT"), ("server", "ASKS"), ("client", "ANSW")):
        assert positions(frames[(*place, 0)][:SAMPLE]) > 1, place


def without_masks(monkeypatch):
    """Makes all masks of the client zero."""
    monkeypatch.setattr(_offline, "uniform", lambda shape: np.zeros(shape, np.uint32))


def test_leaks_are_found_in_frames_of_both_phases(tmp_path, quick_marks, monkeypatch):
    """Masks of the client that are zero, and equal pads of the transfers for tables."""
    write = _core.lut_write_message

    def without_pads(field, shares, bits, zero, _one, numbers, pool):
        return write(field, shares, bits, zero, zero, numbers, pool)

    without_masks(monkeypatch)
    monkeypatch.setattr(_core, "lut_write_message", without_pads)
    frames = both_phases(NETWORKS[0], tmp_path)
    assert positions(frames["client", "INPT", 0][:SAMPLE]) > 1
    tables = [rows for (_, kind, _), rows in frames.items() if kind == "TABL"]
    assert max(map(together_uniform, tables)) > 1


def shares_of(network):
    """Returns the client's shares of the products of many inferences: (inferences, bytes).

    Bytes with higher bits than those that lookups use are left out.
    """
    used = [bits_of(layer) // 8 for layer in network.layers]

    def client(channel):
        with TableMaker(channel, "client", threads=1) as maker:
            party = OfflineClient(channel, network.public, maker, POOL)
            return [party.make().layers for _ in range(SAMPLE)]

    def server(channel):
        with TableMaker(channel, "server", threads=1) as maker:
            party = OfflineServer(channel, network, maker, POOL)
            for _ in range(SAMPLE):
                party.make()

    found, _ = together(client, server)
    shares = [
        [
            layer.share.view(np.uint8).reshape(-1, 4)[:, :size].ravel()
            for layer, size in zip(layers, used, strict=True)
        ]
        for layers in found
    ]
    return np.array(list(map(np.concatenate, shares)))


@pytest.mark.parametrize("network", [0, 1])
def test_shares_of_products_hide_the_weights(network, monkeypatch):
    """Also from a client whose masks are zero, so that its share is what the server subtracts."""
    without_masks(monkeypatch)
    shares = shares_of(NETWORKS[network])
    assert positions(shares) < 1
    assert together_uniform(shares) < 1


def test_shares_without_the_servers_masks_are_found(monkeypatch):
    evaluate, decrypt, masks = ServerWeights.evaluate, ClientKeys.decrypt, deque()

    def evaluate_without(self, key, message):
        answer, share = evaluate(self, key, message)
        masks.append(share)
        return answer, 0 * share

    def decrypt_without(self, encoding, answer):
        return decrypt(self, encoding, answer) + masks.popleft()

    without_masks(monkeypatch)
    monkeypatch.setattr(ServerWeights, "evaluate", evaluate_without)
    monkeypatch.setattr(ClientKeys, "decrypt", decrypt_without)
    assert positions(shares_of(NETWORKS[0])) > 1
