"""The format of journals, from docs/wire-format.md: reads a file whose disk never failed."""

import struct

from xxhash import xxh3_128_digest

HEAD_BYTES = 88


def head(data):
    """Returns the number, the origin, the base and the random name of a journal."""
    magic, version, zero, number, origin, base, name, own = struct.unpack(
        "<8sIIQ16s16s16s16s", data[:HEAD_BYTES]
    )
    assert (magic, version, zero) == (b"NESCIOJR", 2, 0)
    assert own == xxh3_128_digest(data[:72])
    return number, origin, base, name


def records(data):
    """Yields the message, the moved rows and the id of each record; a mark has only an id."""
    _, _, _, name = head(data)
    at, expected = HEAD_BYTES, 0
    while at < len(data):
        fixed = data[at : at + 56]
        magic, moved, number, message, after, body = struct.unpack("<4sIQQ16s16s", fixed)
        assert (magic, number) == (b"NCRD", expected)
        assert data[at + 56 : at + 72] == xxh3_128_digest(name + fixed)
        content = data[at + 72 : at + 72 + message + moved]
        assert body == xxh3_128_digest(content)
        yield content[:message], content[message:], after
        at, expected = at + 72 + message + moved, expected + 1
