"""Transcripts of inferences, what each party sees in them, and statistics of it.

A fair bit is off by z standard deviations with a probability of at most 2 exp(-z^2 / 2), for any
number of samples: Hoeffding's bound. So is a character of a uniform byte, the parity of some of its
bits.
"""

import math

import numpy as np

from nescio import _core
from nescio.mpc._online import infer, serve
from ot.parties import together

POOL = _core.ThreadPool(1)
FALSE_ALARM = 1e-9
"""The probability of a false alarm of one test, however many values it compares; of all, 10^-6."""
CHARACTERS = np.array(
    [[1 - 2 * ((a & b).bit_count() & 1) for b in range(256)] for a in range(1, 256)], np.float32
)


class Recording:
    """A channel that keeps the frames that are sent, in `sent`."""

    def __init__(self, channel):
        self._channel, self.sent = channel, []

    def send(self, kind, data):
        self.sent.append((kind, np.frombuffer(bytes(memoryview(data)), np.uint8)))
        self._channel.send(kind, data)

    def __getattr__(self, name):
        return getattr(self._channel, name)


# ---- statistics ----------------------------------------------------------------------------------


def exceeds(deviations, tests):
    """Tests whether the largest of `tests` deviations is too large, in parts of the limit."""
    return float(np.abs(deviations).max()) / math.sqrt(2 * math.log(2 * tests / FALSE_ALARM))


def bits_of(rows):
    """Returns the bits of rows (n, bytes) as 1 and -1."""
    return 1 - 2 * np.unpackbits(rows, axis=1).astype(np.float32)


def positions(rows):
    """Tests each bit of rows (n, bytes), and each difference of two rows, for fairness."""
    found = []
    for own in with_pairs(rows):
        ones = np.array([(own >> bit & 1).sum(0, np.int64) for bit in range(8)])
        found.append(exceeds((2 * ones - len(own)) / len(own) ** 0.5, ones.size))
    return max(found)


def bytes_at(rows):
    """Tests that each byte of rows (n, bytes), and of differences of two, is uniform."""
    found = []
    for own in with_pairs(rows):
        places = own + 256 * np.arange(own.shape[1])
        counts = np.bincount(places.ravel(), minlength=256 * own.shape[1]).reshape(-1, 256)
        sums = counts.astype(np.float32) @ CHARACTERS.T
        found.append(exceeds(sums / len(own) ** 0.5, sums.size))
    return max(found)


def together_uniform(rows):
    """Tests that all bytes of rows (n, bytes), and of differences of two, have one uniform law."""
    return max(bytes_at(own.reshape(-1, 1)) for own in with_pairs(rows))


def correlated(rows):
    """Tests that no two bits of rows (n, bytes) are correlated."""
    bits = bits_of(rows)
    products = bits.T @ bits
    np.fill_diagonal(products, 0)
    return exceeds(products / len(rows) ** 0.5, products.size / 2)


def with_pairs(rows):
    """Yields rows, and the differences of the second, fourth, ... from the rows before them."""
    yield rows
    even = len(rows) // 2 * 2
    yield rows[1:even:2] ^ rows[:even:2]


# ---- views ---------------------------------------------------------------------------------------


class Online:
    """An online phase of `count` inferences at once, from material of the dealer."""

    def __init__(self, network, client, server, inputs):
        self.network, self.client, self.server = network, client, server
        self.count = len(client.mask)
        batch = np.ascontiguousarray(np.broadcast_to(inputs, client.mask.shape))
        self._ends = [None, None]

        def run_client(channel):
            self._ends[0] = Recording(channel)
            return infer(self._ends[0], network.public, client, batch, POOL)

        def run_server(channel):
            self._ends[1] = Recording(channel)
            serve(self._ends[1], network, server, POOL)

        self.outputs, _ = together(run_client, run_server)

    def _sent(self, party, kind):
        return [data for own, data in self._ends[party].sent if own == kind]

    def rows(self, values):
        """Returns the bytes of values of all inferences, in their order: (count, bytes)."""
        return np.ascontiguousarray(values).view(np.uint8).reshape(self.count, -1)

    def layers(self):
        """Yields each activation's messages, opened numbers, and material of both parties."""
        asked, answered = self._sent(1, "ASKS"), self._sent(0, "ANSW")
        parts = zip(self.network.layers, self.client.layers, self.server.layers, strict=True)
        for number, (layer, mine, theirs) in enumerate(list(parts)[:-1]):
            tables, bits, outputs = (
                len(mine.tables),
                layer.activation.bits,
                layer.activation.outputs,
            )
            split = _core.lut_message_bytes((bits, 0, 0), tables)
            places = [unpacked(bits, tables, one) for one in (theirs.places, asked[number][:split])]
            end = _core.lut_message_bytes((outputs, 0, 0), tables)
            entries = [
                unpacked(outputs, tables, one)
                for one in (answered[number][:end], asked[number][split:])
            ]
            yield Opened(places, entries, answered[number][end:].view(np.uint8), mine, theirs)

    def messages(self):
        """Returns all messages of each inference."""
        parts = [self.rows(data) for data in (*self._sent(0, "INPT"), *self._sent(1, "OUTS"))]
        for layer in self.layers():
            parts += [self.rows(one) for one in (*layer.places, *layer.entries, layer.shares)]
        return np.concatenate(parts, axis=1)

    def view(self, party):
        """Returns the messages, and what a party computes from them and its own shares."""
        parts = [self.messages()]
        for layer in self.layers():
            own = (layer.client if party == "client" else layer.server).tables
            narrow = layer.places[0].dtype
            parts.append(self.rows(layer.place))
            parts.append(self.rows(layer.place - own.offsets.astype(narrow)))
            parts.append(self.rows(layer.entry))
            parts.append(self.rows(layer.entry ^ own.masks.astype(layer.entry.dtype)))
            if party == "server":
                parts.append(self.rows(layer.results()))
        return np.concatenate(parts, axis=1)


class Opened:
    """The messages of an activation: the client's numbers first, and what they open."""

    def __init__(self, places, entries, shares, client, server):
        self.places, self.entries, self.shares = places, entries, shares
        self.client, self.server = client, server
        self.place, self.entry = places[0] + places[1], entries[0] ^ entries[1]

    def results(self):
        """Returns the results plus the client's masks, as the server has them."""
        total = self.shares.view(np.uint32) + self.entry
        for number, shares in enumerate(self.server.tables.dabits):
            total += np.where(self.entry >> number & 1, -shares, shares)
        return total


def unpacked(bits, count, data):
    """Returns packed numbers, in as many bits as they were sent in."""
    found = _core.lut_unpack(bits, count, np.ascontiguousarray(data))
    return found.astype(np.uint8) if len(data) == count else found
