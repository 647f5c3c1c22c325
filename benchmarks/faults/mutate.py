"""Requests that are almost valid: what a client sends, with random changes."""

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

_LONGEST = 4096
_VALUES = b"0", b"-1", b"255", b"4294967296", b"18446744073709551616", b"%00", b"..", b"\xff\xfe"


class Request(NamedTuple):
    """A valid request: its method, its target, its fields, and its body."""

    method: bytes
    target: bytes
    fields: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""

    def encode(self) -> bytes:
        """Returns the bytes of the request, framed by its length."""
        lines = [b"%s %s HTTP/1.1" % (self.method, self.target), b"Host: x"]
        lines += [b"%s: %s" % field for field in self.fields]
        if self.body or self.method == b"POST":
            lines.append(b"Content-Length: %d" % len(self.body))
        return b"\r\n".join(lines) + b"\r\n\r\n" + self.body


class Mutator:
    """Changes valid requests at random: most stay framed, so that their connections stay open."""

    def __init__(self, requests: Sequence[Request], seed: int) -> None:
        self._requests = list(requests)
        self._random = random.Random(seed)  # noqa: S311 - repeatable, not a secret

    def chance(self, share: float) -> bool:
        """Returns True for a share of the calls."""
        return self._random.random() < share

    def framed(self) -> bytes:
        """Makes a request of which the body, the target or a field is changed, and not its end."""
        request = self._random.choice(self._requests)
        change: Callable[[Request], Request] = self._random.choice(
            [self._body, self._body, self._body, self._target, self._field]
        )
        return change(request).encode()

    def unframed(self) -> bytes:
        """Makes bytes of a request that are changed anywhere, also where they frame it."""
        return self._bytes(self._random.choice(self._requests).encode())

    def _body(self, request: Request) -> Request:
        return request._replace(body=self._bytes(request.body)) if request.body else request

    def _target(self, request: Request) -> Request:
        path = self._bytes(request.target[1:])
        return request._replace(target=b"/" + bytes(c for c in path if 0x21 <= c < 0x7F))

    def _field(self, request: Request) -> Request:
        """Adds a field, or changes a value; line ends are left out."""
        name = self._random.choice([b"Range", b"Expect", b"Cookie", b"Content-Type", b"X-A", b"TE"])
        plain = bytes(c for c in self._bytes(b"bytes=0-1, none") if 0x20 <= c < 0x7F)
        return request._replace(fields=(*request.fields, (name, plain)))

    def _bytes(self, data: bytes) -> bytes:
        """Changes, removes, repeats or inserts up to three pieces."""
        mutated = bytearray(data)
        for _ in range(self._random.randint(1, 3)):
            at = self._random.randrange(len(mutated) + 1)
            end = min(len(mutated), at + self._random.choice([1, 1, 4, 8, 64]))
            kind = self._random.randrange(5)
            if kind == 0:
                mutated[at:end] = self._random.randbytes(end - at)
            elif kind == 1:
                del mutated[at:end]
            elif kind == 2:
                mutated[at:at] = mutated[at:end] * self._random.choice([1, 2, 16])
            elif kind == 3:
                mutated[at:at] = self._random.choice(_VALUES)
            elif end > at:
                mutated[at] ^= 1 << self._random.randrange(8)
        return bytes(mutated[:_LONGEST])
