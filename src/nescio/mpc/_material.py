"""The material of an inference as bytes, a part of a store; and of several, joined in memory."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .. import _core
from .._arrays import Array
from ._network import Network
from ._online import ClientLayer, ClientMaterial, ServerLayer, ServerMaterial
from ._public import PublicLayer, PublicNetwork
from ._store import Contents, Role
from ._tables import Tables

_SMALL_BITS = 8
_ALIGNMENT = 8  # of arrays


class Slot(NamedTuple):
    """The shape and the dtype of an array; those of several inferences are joined along `axis`."""

    shape: tuple[int, ...]
    dtype: str
    axis: int = 0

    @property
    def nbytes(self) -> int:
        """The bytes of the array."""
        return int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize

    def joined(self, count: int) -> tuple[int, ...]:
        """Returns the shape of the arrays of `count` inferences, joined."""
        length = count * self.shape[self.axis]
        return (*self.shape[: self.axis], length, *self.shape[self.axis + 1 :])


def size(network: PublicNetwork, role: Role) -> int:
    """Returns the bytes of a party's material."""
    return sum(_aligned(slot.nbytes) for slot in _slots(network, role))


def contents(network: Network | PublicNetwork, session: str, count: int) -> Contents:
    """Returns what the store of `count` inferences has, of a server with a Network or a client."""
    if isinstance(network, Network):
        public, weights = network.public, network.weights_digest
        own = size(public, "server")
        return Contents("server", public.digest, session, count, own, weights)
    return Contents("client", network.digest, session, count, size(network, "client"))


def encode(network: PublicNetwork, material: ClientMaterial | ServerMaterial) -> bytes:
    """Encodes a party's material for one inference."""
    if isinstance(material, ClientMaterial):
        return _encoded(_slots(network, "client"), _client_arrays(material))
    return _encoded(_slots(network, "server"), _server_arrays(material))


def decode_client(network: PublicNetwork, data: bytearray) -> ClientMaterial:
    """Decodes the client's material for one inference, from bytes of its size."""
    return _client(network, _decoded(_slots(network, "client"), data))


def decode_server(network: PublicNetwork, data: bytearray) -> ServerMaterial:
    """Decodes the server's material for one inference, from bytes of its size."""
    return _server(network, _decoded(_slots(network, "server"), data), 1)


class Room:
    """Memory for a party's material for `count` inferences, in joined arrays.

    `parts[i]` are the pieces of the memory that take the bytes of inference i, in their order.
    """

    def __init__(self, network: PublicNetwork, role: Role, count: int) -> None:
        self._network, self.count = network, count
        memory = np.empty(count * size(network, role), np.uint8)
        self._arrays: list[Array] = []
        self.parts: list[list[memoryview]] = [[] for _ in range(count)]
        offset = 0
        for slot in _slots(network, role):
            own = memory[offset : offset + count * slot.nbytes].view(f"<{slot.dtype}")
            self._arrays.append(own.reshape(slot.joined(count)))
            offset += count * _aligned(slot.nbytes)
            self._add_pieces(slot)
        if count == 1:
            self.parts = [[memory.data]]  # the same bytes, in one piece

    def _add_pieces(self, slot: Slot) -> None:
        padding = memoryview(bytearray(-slot.nbytes % _ALIGNMENT))
        each = np.split(self._arrays[-1], self.count, slot.axis)
        for own, pieces in zip(each, self.parts, strict=True):
            lines = own if slot.axis else own[None]
            pieces.extend(line.reshape(-1).view(np.uint8).data for line in lines)
            pieces.extend([padding] * bool(padding))

    def client(self) -> ClientMaterial:
        """Returns the material of a client."""
        return _client(self._network, iter(self._arrays))

    def server(self) -> ServerMaterial:
        """Returns the material of a server."""
        return _server(self._network, iter(self._arrays), self.count)


def _client(network: PublicNetwork, arrays: Iterator[Array]) -> ClientMaterial:
    mask, layers = next(arrays), []
    for layer in network.layers:
        share = next(arrays)
        if layer.activation is None:
            layers.append(ClientLayer(share))
        else:
            tables = _tables(layer, arrays)
            layers.append(ClientLayer(share, tables, next(arrays)))
    return ClientMaterial(mask, tuple(layers))


def _server(network: PublicNetwork, arrays: Iterator[Array], count: int) -> ServerMaterial:
    layers = []
    for layer in network.layers:
        subtracted = next(arrays)
        if layer.activation is None:
            layers.append(ServerLayer(subtracted))
        else:
            tables = _tables(layer, arrays)
            places = _joined(next(arrays), layer.activation.bits, layer.size, count)
            layers.append(ServerLayer(subtracted, tables, places))
    return ServerMaterial(tuple(layers))


def _joined(packed: Array, bits: int, size: int, count: int) -> Array:
    """Joins packed numbers, `size` of each inference, without the gaps between inferences."""
    if count == 1 or size * bits % 8 == 0:
        return packed
    each = [_core.lut_unpack(bits, size, own) for own in packed.reshape(count, -1)]
    return _core.lut_pack(bits, np.concatenate(each))


def _slots(network: PublicNetwork, role: Role) -> list[Slot]:
    """Lists the arrays of a party's material, in their order."""
    slots = [Slot((1, *network.inputs), "u4")] if role == "client" else []
    for layer in network.layers:
        values = Slot((1, *layer.outputs), "u4")
        slots.append(values)
        if layer.activation is not None:
            places = _core.lut_message_bytes((layer.activation.bits, 0, 0), layer.size)
            slots += _table_slots(layer)
            slots.append(values if role == "client" else Slot((places,), "u1"))
    return slots


def _client_arrays(material: ClientMaterial) -> list[Array]:
    arrays: list[Array] = [material.mask]
    for layer in material.layers:
        arrays.append(layer.share)
        if layer.tables is not None and layer.mask is not None:
            arrays += [*_arrays(layer.tables), layer.mask]
    return arrays


def _server_arrays(material: ServerMaterial) -> list[Array]:
    arrays: list[Array] = []
    for layer in material.layers:
        arrays.append(layer.subtracted)
        if layer.tables is not None and layer.places is not None:
            arrays += [*_arrays(layer.tables), layer.places]
    return arrays


def _table_slots(layer: PublicLayer) -> list[Slot]:
    activation = layer.activation
    assert activation is not None
    words = max(1, (1 << activation.bits) // 64)
    return [
        Slot((layer.size, words), "u8"),
        Slot((layer.size,), _kind(activation.bits)),
        Slot((layer.size,), _kind(activation.outputs)),
        Slot((activation.outputs, layer.size), "u4", axis=1),
    ]


def _kind(bits: int) -> str:
    return "u1" if bits <= _SMALL_BITS else "u2"


def _arrays(tables: Tables) -> list[Array]:
    return [tables.one_hot, tables.offsets, tables.masks, tables.dabits]


def _tables(layer: PublicLayer, arrays: Iterator[Array]) -> Tables:
    assert layer.activation is not None
    one_hot, offsets, masks, dabits = (next(arrays) for _ in range(4))
    wide = [one.astype(np.uint16, copy=False) for one in (offsets, masks)]
    return Tables(layer.activation.bits, one_hot, wide[0], wide[1], dabits)


def _encoded(slots: list[Slot], arrays: list[Array]) -> bytes:
    parts = []
    for slot, array in zip(slots, arrays, strict=True):
        assert array.shape == slot.shape
        raw = array.astype(f"<{slot.dtype}", copy=False).tobytes()
        parts += [raw, bytes(-len(raw) % _ALIGNMENT)]
    return b"".join(parts)


def _decoded(slots: list[Slot], data: bytearray) -> Iterator[Array]:
    offset = 0
    for slot in slots:
        count = int(np.prod(slot.shape))
        yield np.frombuffer(data, f"<{slot.dtype}", count, offset).reshape(slot.shape)
        offset += _aligned(slot.nbytes)


def _aligned(length: int) -> int:
    return -(-length // _ALIGNMENT) * _ALIGNMENT
