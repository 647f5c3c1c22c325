"""A dealer that makes both parties' material: insecure, since it knows everything; for tests."""

import os

import numpy as np

from .. import _core
from .._arrays import as_count
from . import _material as material
from ._activation import ClientLookups
from ._maps import Ring
from ._network import Layer, Network
from ._online import ClientLayer, ClientMaterial, ServerLayer, ServerMaterial
from ._store import MAX_COUNT
from ._store_writer import StoreWriter
from ._tables import Tables


def insecure_dealer(
    network: Network,
    client: str | os.PathLike[str],
    server: str | os.PathLike[str],
    count: int,
    *,
    seed: int,
) -> None:
    """Writes the stores of both parties for `count` inferences, without the offline phase.

    Insecure: whoever runs it knows the secrets of both parties, and a seed is no secret. It makes
    tests of a service quick. `client` and `server` are the paths of the new stores. Equal seeds
    make equal stores. Raises FileError for files that exist or cannot be written.
    """
    as_count(count, "count", 1, MAX_COUNT)
    random, public = np.random.default_rng(as_count(seed, "seed", 0, 1 << 64)), network.public
    session = f"{int(random.integers(1 << 63)):064x}"
    with (
        StoreWriter(client, material.contents(public, session, count)) as mine,
        StoreWriter(server, material.contents(network, session, count)) as theirs,
    ):
        for _ in range(count):
            own, other = insecure_deal(network, 1, random)
            mine.add(material.encode(public, own))
            theirs.add(material.encode(public, other))


def insecure_deal(
    network: Network, count: int, random: np.random.Generator
) -> tuple[ClientMaterial, ServerMaterial]:
    """Makes the material of both parties for `count` inferences together."""
    masks = [_uniform(random, (count, *network.inputs))]
    client, server = [], []
    pool = _core.ThreadPool(1)
    for layer in network.layers:
        subtracted = _uniform(random, (count, *layer.outputs))
        share = subtracted - layer.total(masks)
        if layer.activation is None:
            client.append(ClientLayer(share))
            server.append(ServerLayer(subtracted))
            continue
        mine, other = _tables(layer, count * layer.size, random)
        steps = ClientLookups(layer.activation, other, layer.shift, share.reshape(-1), pool)
        masks.append(_uniform(random, (count, *layer.outputs)))
        client.append(ClientLayer(share, other, masks[-1]))
        server.append(ServerLayer(subtracted, mine, steps.places))
    return ClientMaterial(masks[0], tuple(client)), ServerMaterial(tuple(server))


def _uniform(random: np.random.Generator, shape: tuple[int, ...]) -> Ring:
    return random.integers(0, 1 << 32, shape, np.uint32)


def _tables(layer: Layer, count: int, random: np.random.Generator) -> tuple[Tables, Tables]:
    assert layer.activation is not None
    return insecure_tables(count, layer.activation.bits, layer.activation.outputs, random)


def insecure_tables(
    count: int, bits: int, outputs: int, random: np.random.Generator
) -> tuple[Tables, Tables]:
    """Makes both parties' shares of one-time tables."""
    server, client = (Tables.empty(count, bits, outputs) for _ in range(2))
    places = random.integers(0, 1 << bits, count)
    inside = np.uint64((1 << min(64, 1 << bits)) - 1)
    server.one_hot[:] = random.integers(0, 1 << 64, server.one_hot.shape, np.uint64) & inside
    client.one_hot[:] = server.one_hot
    ones = np.uint64(1) << (places % 64).astype(np.uint64)
    client.one_hot[np.arange(count), places // 64] ^= ones
    server.offsets[:] = random.integers(0, 1 << bits, count)
    client.offsets[:] = (places - server.offsets) % (1 << bits)
    for tables in (server, client):
        tables.masks[:] = random.integers(0, 1 << outputs, count)
    server.dabits[:] = random.integers(0, 1 << 32, server.dabits.shape, np.uint32)
    masks = (server.masks ^ client.masks).astype(np.uint32)
    for number in range(outputs):
        weighted = (masks >> np.uint32(number) & np.uint32(1)) << np.uint32(number)
        client.dabits[number] = weighted - server.dabits[number]
    return server, client
