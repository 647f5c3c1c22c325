"""The vectors of one-time tables and their lookups, from the executable specification."""

import hashlib

from spec import lut, lut_tree
from spec.blocks import BITS, to_bytes

CASES = ((4, 3, 0), (8, 8, 12), (8, 9, 24))  # bits, bits of an entry, shift; no trees
TREES = ((9, 300, 0), (10, 5, 63), (12, 4095, 64))  # bits, place, number of the table
VALUES = (0, 1, -1, 1000, -70000, (1 << 26) + 5)
RING = 1 << lut.RING_BITS


class Stream:
    """Reproducible numbers of any size."""

    def __init__(self, label: str) -> None:
        self._label, self._count = f"nescio test vector lut {label}", 0

    def draw(self, bits: int) -> int:
        """Return a number below 2^bits."""
        self._count += 1
        data = hashlib.shake_128(f"{self._label} {self._count}".encode()).digest(-(-bits // 8))
        return lut.low(int.from_bytes(data, "little"), bits)

    def transfer(self, field: lut.Field) -> lut.Pads:
        """Return a random transfer for a field."""
        size = field.entries + field.product
        return lut.Pads(self.draw(size), self.draw(size), self.draw(1))


def transfers(bits: int, outputs: int, stream: Stream) -> list[dict[str, object]]:
    """Build the messages of both products of each level, and of the daBits, for one table."""
    fields = [lut.level_field(level, bits, with_offset=True) for level in range(bits)]
    fields += [lut.dabit_field(number) for number in range(outputs)]
    found = []
    for field in fields:
        pads, share, bit = stream.transfer(field), stream.draw(field.entries), stream.draw(1)
        message = lut.message(field, share, bit, pads)
        own, added = lut.sent(field, bit, pads)
        other, other_added = lut.received(field, message, pads)
        found.append(
            {
                "entries": field.entries,
                "product": field.product,
                "shift": field.shift,
                "pads": [str(pads.zero), str(pads.one)],
                "choice": pads.choice,
                "share": str(share),
                "bit": bit,
                "message": str(message),
                "sent": [str(own), added % RING],
                "received": [str(other), other_added % RING],
            }
        )
    return found


def growth(bits: int, stream: Stream) -> list[dict[str, object]]:
    """Build the growth of one party's vector, from random bits and products."""
    share = lut.first_share(1, bit := stream.draw(1))
    found: list[dict[str, object]] = [{"bit": bit, "products": "0", "share": str(share)}]
    for level in range(1, bits):
        bit, products = stream.draw(1), stream.draw((1 << level) - 1)
        share = lut.grow(level, share, bit, products)
        found.append({"bit": bit, "products": str(products), "share": str(share)})
    return found


def table(bits: int, outputs: int, stream: Stream) -> list[dict[str, object]]:
    """Build both parties' shares of a table, the server's first."""
    place, one_hot, offset = (stream.draw(size) for size in (bits, 1 << bits, bits))
    masks = [stream.draw(outputs) for _ in range(2)]
    mask = masks[0] ^ masks[1]
    dabits = [stream.draw(lut.RING_BITS) for _ in range(outputs)]
    others = [((mask >> j & 1) << j) - share for j, share in enumerate(dabits)]
    shares = (
        (one_hot, offset, masks[0], dabits),
        (one_hot ^ 1 << place, place - offset, masks[1], others),
    )
    return [
        {
            "one_hot": str(vector),
            "offset": own % (1 << bits),
            "mask": own_mask,
            "dabits": [number % RING for number in numbers],
        }
        for vector, own, own_mask, numbers in shares
    ]


def lookup(
    entries: list[int], bits: int, outputs: int, shift: int, value: int, stream: Stream
) -> dict[str, object]:
    """Build both parties' lookup of a value: what each of them opens, and the result."""
    tables = table(bits, outputs, stream)
    x1, mask = stream.draw(lut.RING_BITS), stream.draw(lut.RING_BITS)
    shares = [(value - x1) % RING, x1]
    places = [
        lut.low((share >> shift) + own["offset"] + (party if shift else 0), bits)
        for party, (share, own) in enumerate(zip(shares, tables, strict=True))
    ]
    opened = lut.low(sum(places), bits)
    masked = [lut.look_up(int(own["one_hot"]), entries, opened) ^ own["mask"] for own in tables]
    numbers = [
        lut.to_number(party, masked[0] ^ masked[1], own["dabits"])
        for party, own in enumerate(tables)
    ]
    return {
        "value": value % RING,
        "dither": x1,
        "mask": mask,
        "tables": tables,
        "places": places,
        "masked": masked,
        "client_number": (numbers[1] + mask) % RING,
        "result": sum(numbers) % RING,
    }


def tree(bits: int, place: int, table_number: int, stream: Stream) -> dict[str, object]:
    """Build both parties' trees of a table whose one-hot vector is 1 at `place`."""
    base = to_bytes(stream.draw(BITS))
    deltas = [lut_tree.with_lowest_bit(stream.draw(BITS), 1 - party) for party in range(2)]
    secret = deltas[0] ^ deltas[1]
    products = []
    for bit in lut_tree.path(place, bits):
        share = stream.draw(BITS)
        products.append([share, share ^ bit * secret])
    low = stream.draw(BITS)
    lows = [low, low ^ 1 << place % (1 << lut_tree.LOW_BITS)]
    nodes = [lut_tree.first_level(party, deltas[party], products[0][party]) for party in range(2)]
    messages, found = [], []
    for level in range(1, len(products) + 1):
        key = lut_tree.level_key(base, table_number, level)
        if level == len(products):
            parts = [lut_tree.leaf_share(nodes[p], lows[p], key) for p in range(2)]
            found = [lut_tree.vector(own, parts[0] ^ parts[1], key) for own in nodes]
        else:
            own = products[level]
            parts = [lut_tree.node_share(p, nodes[p], deltas[p], own[p], key) for p in range(2)]
            nodes = [lut_tree.grow(one, parts[0] ^ parts[1], key) for one in nodes]
        messages.append([to_bytes(part).hex() for part in parts])
    return {
        "bits": bits,
        "place": place,
        "base": base.hex(),
        "table": table_number,
        "deltas": [to_bytes(one).hex() for one in deltas],
        "products": [[to_bytes(one).hex() for one in pair] for pair in products],
        "low": [to_bytes(one).hex() for one in lows],
        "messages": messages,
        "vectors": [one.to_bytes((1 << bits) // 8, "little").hex() for one in found],
    }


def case(bits: int, outputs: int, shift: int) -> dict[str, object]:
    """Build one case of lut.json."""
    stream = Stream(f"{bits} {outputs} {shift}")
    entries = [stream.draw(outputs) for _ in range(1 << bits)]
    lookups = [lookup(entries, bits, outputs, shift, value, stream) for value in VALUES]
    return {
        "bits": bits,
        "outputs": outputs,
        "shift": shift,
        "entries": entries,
        "transfers": transfers(bits, outputs, stream),
        "growth": growth(bits, stream),
        "lookups": lookups,
    }


def content() -> dict[str, list[dict[str, object]]]:
    """Return the content of lut.json."""
    trees = [tree(*sizes, Stream(f"tree {sizes}")) for sizes in TREES]
    return {"tables": [case(*sizes) for sizes in CASES], "trees": trees}
