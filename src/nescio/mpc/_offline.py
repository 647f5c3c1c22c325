"""The offline phase: material of inferences, made by both parties without a dealer.

For each inference, the client draws a mask R of the input and of each result. For the maps W
of a layer, the client gets c and the server s with s + c = W R, or 1 off, from encryptions of R
(docs/rlwe-parameters.md). The server's share of the values is then W (y + R) + b - s, and the
client's is -c: their sum is W y + b, modulo a power of two with the bits that lookups use.

    client -> server   RLKY   the public key, once
    client -> server   CIPH   encryptions of the masks, each once if its layouts agree
    server -> client   PROD   products, masked
    both               TABL   one-time tables (`_tables`)
    client -> server   PLAC   the client's shares of the places

Semi-honest parties. A message has a size that both know ahead.
"""

import io
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .. import _core
from ..net import Channel
from ._activation import ClientLookups
from ._linear import PUBLIC_KEY_BYTES, ClientKeys, PublicKey, ciphertexts
from ._maps import Ring
from ._network import Network, uniform
from ._online import ClientLayer, ClientMaterial, ServerLayer, ServerMaterial
from ._products import ProductPlan
from ._public import PublicLayer, PublicNetwork
from ._steps import Steps
from ._tables import TableMaker, Tables
from ._weights import PreparedWeights


class _Sizes(NamedTuple):
    """The tables of some layers, which are made together."""

    bits: int
    outputs: int


class _Party:
    """The part of both parties: the products of all maps, and the tables of all layers."""

    def __init__(
        self,
        channel: Channel,
        network: PublicNetwork,
        maker: TableMaker,
        pool: _core.ThreadPool,
        steps: Steps | None,
    ) -> None:
        self._channel, self._network, self._maker, self._pool = channel, network, maker, pool
        self._plan = ProductPlan.of(network)
        self._steps = Steps(channel) if steps is None else steps

    def _receive(self, kind: str, sizes: Sequence[int]) -> Iterator[bytes]:
        """Receives a message, and yields its parts of some sizes."""
        data = io.BytesIO(self._channel.receive(kind, sum(sizes)))
        return (data.read(size) for size in sizes)

    def _tables(self) -> list[Tables | None]:
        """Makes the tables of all layers; layers with tables of one size share a call."""
        sizes = [_sizes(layer) for layer in self._network.layers]
        found: list[Tables | None] = [None] * len(sizes)
        for size in dict.fromkeys(one for one in sizes if one is not None):
            layers = [number for number, one in enumerate(sizes) if one == size]
            counts = [self._network.layers[number].size for number in layers]
            tables = self._maker.make(sum(counts), *size)
            ends = np.cumsum(counts)
            for number, end, count in zip(layers, ends, counts, strict=True):
                found[number] = tables[int(end) - count : int(end)]
        self._steps.end("tables")
        return found


class OfflineClient(_Party):
    """Makes the client's material, with an `OfflineServer`."""

    def __init__(
        self,
        channel: Channel,
        network: PublicNetwork,
        maker: TableMaker,
        pool: _core.ThreadPool,
        steps: Steps | None = None,
    ) -> None:
        super().__init__(channel, network, maker, pool, steps)
        self._keys = ClientKeys(pool)
        channel.send("RLKY", self._keys.public_key)
        self._steps.end("keys")

    def make(self) -> ClientMaterial:
        """Makes the material of one inference. Raises the errors of the channel."""
        masks = [uniform((1, *self._network.inputs))]
        masks += [uniform((1, *layer.outputs)) for layer in self._network.layers[:-1]]
        shares, made = self._shares(masks), self._tables()
        layers, places = [], []
        parts = zip(self._network.layers, shares, made, strict=True)
        for number, (layer, share, tables) in enumerate(parts, 1):
            if layer.activation is None or tables is None:
                layers.append(ClientLayer(share))
                continue
            flat = share.reshape(-1)
            steps = ClientLookups(layer.activation, tables, layer.shift, flat, self._pool)
            places.append(steps.places)
            layers.append(ClientLayer(share, tables, masks[number]))
        self._channel.send("PLAC", np.concatenate([*places, np.empty(0, np.uint8)]))
        self._steps.end("places")
        return ClientMaterial(masks[0], tuple(layers))

    def _shares(self, masks: Sequence[Ring]) -> list[Ring]:
        """Returns the client's shares of the values of each layer."""
        messages = [
            self._keys.encrypt(message.layout, message.image(masks))
            for message in self._plan.messages
        ]
        self._channel.send("CIPH", b"".join(messages))
        sizes = [product.encoding.bytes_out for own in self._plan.layers for product in own]
        answers = self._receive("PROD", sizes)
        shares = []
        for layer, own in zip(self._network.layers, self._plan.layers, strict=True):
            total: Ring = np.zeros((1, *layer.outputs), np.uint32)
            for product in own:
                total -= self._keys.decrypt(product.encoding, next(answers)).reshape(total.shape)
            shares.append(total)
        self._steps.end("products")
        return shares


class OfflineServer(_Party):
    """Makes the server's material, with an `OfflineClient`.

    `weights` are those of the network, by default prepared here. Raises ArgumentError for others.
    """

    def __init__(
        self,
        channel: Channel,
        network: Network,
        maker: TableMaker,
        pool: _core.ThreadPool,
        steps: Steps | None = None,
        *,
        weights: PreparedWeights | None = None,
    ) -> None:
        super().__init__(channel, network.public, maker, pool, steps)
        if weights is None:
            weights = PreparedWeights(network, threads=pool.threads)
        weights.check(network)
        self._weights = weights.layers
        self._key = PublicKey(bytes(channel.receive("RLKY", PUBLIC_KEY_BYTES)), pool)
        self._steps.end("keys")

    def make(self) -> ServerMaterial:
        """Makes the material of one inference. Raises the errors of the channel."""
        subtracted = self._shares()
        tables = self._tables()
        sizes = [
            _core.lut_message_bytes((layer.activation.bits, 0, 0), layer.size)
            for layer in self._network.layers
            if layer.activation is not None
        ]
        received = np.frombuffer(self._channel.receive("PLAC", sum(sizes)), np.uint8)
        self._steps.end("places")
        places = iter(np.split(received, np.cumsum(sizes)[:-1]))
        layers = [
            ServerLayer(own) if made is None else ServerLayer(own, made, next(places))
            for own, made in zip(subtracted, tables, strict=True)
        ]
        return ServerMaterial(tuple(layers))

    def _shares(self) -> list[Ring]:
        """Answers the client's encryptions; returns the server's shares for each layer."""
        shares, answers = [], []
        inputs = self._inputs()
        for layer, own, given in zip(self._network.layers, self._weights, inputs, strict=True):
            total: Ring = np.zeros((1, *layer.outputs), np.uint32)
            for weights, parsed in zip(own, given, strict=True):
                answer, share = weights.evaluate(self._key, parsed)
                answers.append(answer)
                total += share.reshape(total.shape)
            shares.append(total)
        self._channel.send("PROD", b"".join(answers))
        self._steps.end("products")
        return shares

    def _inputs(self) -> Iterator[list[list[_core.RlweCiphertexts]]]:
        """Yields the ciphertexts of each layer's products; each message is parsed once."""
        layouts, last = [message.layout for message in self._plan.messages], self._plan.last_uses()
        received = self._receive("CIPH", [layout.bytes for layout in layouts])
        parsed: dict[int, _core.RlweCiphertexts] = {}
        for number, own in enumerate(self._plan.layers):
            used = {at for product in own for at in product.messages}
            for at in sorted(used - parsed.keys()):
                parsed[at] = ciphertexts(layouts[at], next(received), self._pool)
            yield [[parsed[at] for at in product.messages] for product in own]
            parsed = {at: one for at, one in parsed.items() if last[at] > number}


def _sizes(layer: PublicLayer) -> _Sizes | None:
    if layer.activation is None:
        return None
    return _Sizes(layer.activation.bits, layer.activation.outputs)
