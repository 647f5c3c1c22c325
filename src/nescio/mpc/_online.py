"""The online phase: one round trip a layer, with what both parties prepared, for n inputs at once.

The server sees each result y as y + R, with a mask R that the client drew: it computes its share of
the next values from that, and the client's share is known ahead. See `_activation` for the messages
of a layer.

    client -> server   INPT   the inputs plus a mask; its size tells n
    server -> client   ASKS   places, masked entries                 for each activation
    client -> server   ANSW   masked entries, shares plus a mask
    server -> client   OUTS   the server's shares of the outputs

Semi-honest parties. What each of them sees is uniform, given what was prepared: docs/security.md.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from .. import _core
from .._arrays import ByteArray
from ..errors import MalformedMessageError
from ..net import Channel
from ._activation import ClientLookups, ServerLookups
from ._blas import one_blas_thread
from ._maps import Ring, check_ring
from ._network import Layer, Network
from ._public import PublicNetwork
from ._steps import Steps
from ._tables import Tables


@dataclass(frozen=True, eq=False)
class ClientLayer:
    """The client's part of a layer: its share of the values (n, *outputs), tables, and a mask.

    The last layer has no tables and no mask.
    """

    share: Ring
    tables: Tables | None = None
    mask: Ring | None = None


@dataclass(frozen=True, eq=False)
class ServerLayer:
    """The server's part: the subtracted numbers (n, *outputs), tables, the client's places."""

    subtracted: Ring
    tables: Tables | None = None
    places: ByteArray | None = None


@dataclass(frozen=True, eq=False)
class ClientMaterial:
    """All that the client prepared for `count` inferences together; `mask` is that of the input."""

    mask: Ring
    layers: tuple[ClientLayer, ...]


@dataclass(frozen=True, eq=False)
class ServerMaterial:
    """All that the server prepared."""

    layers: tuple[ServerLayer, ...]


def infer(
    channel: Channel,
    network: PublicNetwork,
    material: ClientMaterial,
    inputs: Ring,
    pool: _core.ThreadPool,
    *,
    steps: Steps | None = None,
) -> Ring:
    """Runs the client's side for inputs (n, *inputs), modulo 2^32; returns (n, *outputs).

    The material is for n inferences, and must never be used again. Raises ArgumentError for inputs
    of another shape, and the errors of the channel.
    """
    check_ring(inputs, "inputs", material.mask.shape)
    steps = Steps(channel) if steps is None else steps
    channel.send("INPT", inputs + material.mask)
    steps.end("input")
    for number, (layer, own) in enumerate(zip(network.layers, material.layers, strict=True), 1):
        if layer.activation is None or own.tables is None or own.mask is None:
            raw = channel.receive("OUTS", own.share.nbytes)
            outputs: Ring = np.frombuffer(raw, np.uint32).reshape(own.share.shape) + own.share
            steps.end("outputs", number)
            return outputs
        lookups = ClientLookups(
            layer.activation, own.tables, layer.shift, own.share.reshape(-1), pool
        )
        length = lookups.place_bytes + lookups.entry_bytes
        asked = np.frombuffer(channel.receive("ASKS", length), np.uint8)
        channel.send("ANSW", lookups.turn(asked, own.mask.reshape(-1)))
        steps.end("lookups", number)
    raise AssertionError("the last layer has no activation")


def receive_inputs(channel: Channel, network: PublicNetwork, most: int) -> Ring:
    """Receives the client's masked inputs (n, *inputs), from 1 to `most` of them.

    Raises MismatchError or MalformedMessageError for any other number of bytes, and the errors of
    the channel.
    """
    each = 4 * int(np.prod(network.inputs))
    raw = channel.receive_at_most("INPT", most * each)
    if not raw or len(raw) % each:
        raise MalformedMessageError(
            f"inputs: found {len(raw)} bytes, expected a positive multiple of {each}"
        )
    return np.frombuffer(raw, np.uint32).reshape(-1, *network.inputs)


def serve(
    channel: Channel,
    network: Network,
    material: ServerMaterial,
    pool: _core.ThreadPool,
    *,
    inputs: Ring | None = None,
    steps: Steps | None = None,
) -> None:
    """Runs the server's side of `infer`. The material must never be used again.

    `inputs` are the client's masked inputs if they have been received.
    """
    count = len(material.layers[0].subtracted)
    steps = Steps(channel) if steps is None else steps
    if inputs is None:
        raw = channel.receive("INPT", 4 * count * int(np.prod(network.inputs)))
        inputs = np.frombuffer(raw, np.uint32).reshape(count, *network.inputs)
        steps.end("input")
    results, threads = [inputs], min(pool.threads, count)
    for number, (layer, own) in enumerate(zip(network.layers, material.layers, strict=True), 1):
        values = _values(layer, results, own.subtracted, threads)
        if layer.activation is None or own.tables is None or own.places is None:
            channel.send("OUTS", np.ascontiguousarray(values))
            steps.end("outputs", number)
            return
        lookups = ServerLookups(layer.activation, own.tables, layer.shift, own.places, pool)
        channel.send("ASKS", lookups.turn(values.reshape(-1)))
        length = lookups.entry_bytes + 4 * count * layer.size
        answered = np.frombuffer(channel.receive("ANSW", length), np.uint8)
        results.append(lookups.results(answered).reshape(count, *layer.outputs))
        steps.end("lookups", number)


def _values(layer: Layer, results: Sequence[Ring], subtracted: Ring, threads: int) -> Ring:
    """Returns the server's share of a layer's values (n, *outputs); threads divide the inputs."""

    def some(part: slice) -> Ring:
        values = layer.biased(layer.total([own[part] for own in results]))
        values -= subtracted[part]
        return values

    with one_blas_thread():
        if threads == 1:
            return some(slice(None))
        ends = [number * len(subtracted) // threads for number in range(threads + 1)]
        with ThreadPoolExecutor(threads) as workers:
            return np.concatenate(list(workers.map(some, map(slice, ends, ends[1:]))))


def dithers_of(material: ClientMaterial) -> Sequence[Ring]:
    """Returns the client's shares, which decide the rounding: those of `Network.simulate`."""
    return [own.share for own in material.layers[:-1]]
