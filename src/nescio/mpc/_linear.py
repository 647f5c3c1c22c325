"""The offline phase of a linear layer: both parties get a share of W r for the client's mask r.

    client: message = keys.encrypt(layout, r)
    server: answer, s = weights.evaluate(public_key, [ciphertexts(layout, message, pool)])
    client: c = keys.decrypt(encoding, answer)           s + c = W r modulo 2^bits, or off by 1

A product may use several messages, and a message serve several products. Messages are bytes of a
length that both parties know. The engine checks them (core/rlwe/messages.cc).
docs/rlwe-parameters.md has the noise, the security and what is not protected: both parties must
follow the protocol.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from .. import _core
from ._encoding import Encoding
from ._layout import CIPHERTEXT_BYTES, SEED_BYTES, Layout, N
from ._maps import Ring

__all__ = [
    "POLYNOMIAL_BYTES",
    "PUBLIC_KEY_BYTES",
    "ClientKeys",
    "PublicKey",
    "ServerWeights",
    "ciphertexts",
]

Weights = npt.NDArray[np.signedinteger]

POLYNOMIAL_BYTES = 2 * N * 4
"""Those of a polynomial of weights that is kept transformed: residues modulo two primes."""

_BLOCK = 1 << 20  # weights that are arranged at once

PUBLIC_KEY_BYTES = SEED_BYTES + CIPHERTEXT_BYTES
"""A seed for one of its polynomials, and the other one."""


class ClientKeys:
    """A client's secret key, from the operating system's generator. One key serves all layers."""

    def __init__(self, pool: _core.ThreadPool) -> None:
        self._key = _core.RlweClientKey()
        self._pool = pool

    @property
    def public_key(self) -> bytes:
        """The message for the server, of PUBLIC_KEY_BYTES."""
        return self._key.public_key().tobytes()

    def encrypt(self, layout: Layout, x: Ring) -> bytes:
        """Encrypts words (in_channels, rows, columns) of dtype uint32: `layout.bytes` bytes.

        Raises ArgumentError for another dtype or shape.
        """
        return self._key.encrypt(layout.encode(x), self._pool).tobytes()

    def decrypt(self, encoding: Encoding, answer: bytes) -> Ring:
        """Returns the client's shares (out_channels, rows, columns), uint32 below 2^bits.

        Raises MalformedMessageError if the answer does not have `encoding.bytes_out` bytes.
        """
        data = np.frombuffer(answer, np.uint8)
        shares = self._key.decrypt(encoding.results, data, encoding.tile_count, self._pool)
        return encoding.decode(shares)


class PublicKey:
    """A client's public key at the server, and the threads that work with it.

    Raises MalformedMessageError if the message is not a public key.
    """

    def __init__(self, message: bytes, pool: _core.ThreadPool) -> None:
        self.engine = _core.RlwePublicKey(np.frombuffer(message, np.uint8), pool)
        self.pool = pool


def ciphertexts(layout: Layout, message: bytes, pool: _core.ThreadPool) -> _core.RlweCiphertexts:
    """Parses a client's message, for all products that use it.

    Raises MalformedMessageError if it is not `layout.bytes` bytes of ciphertexts.
    """
    return _core.RlweCiphertexts(np.frombuffer(message, np.uint8), layout.count, pool)


class ServerWeights:
    """The weights of a product, (out_channels, in_channels, rows, columns) for each layout.

    `weights` may be a function that returns those of a slice of the output channels: then no copy
    of all is made. `present` are the polynomials (outputs, inputs) of each layout that are not zero
    (default: all). They are kept transformed, which takes POLYNOMIAL_BYTES each, or transformed for
    each evaluation. Threads may share them. Raises ArgumentError for another dtype or shape, and
    for weights so large that noise could change a result by more than 1.
    """

    def __init__(
        self,
        encoding: Encoding,
        weights: Sequence[Weights] | Callable[[slice], Sequence[Weights]],
        pool: _core.ThreadPool,
        *,
        present: Sequence[npt.NDArray[np.bool_]] | None = None,
        keep_transformed: bool = True,
    ) -> None:
        self.encoding = encoding
        if present is None:
            layouts = encoding.layouts
            present = [np.ones((encoding.outputs, own.inputs), np.bool_) for own in layouts]
        sliced = weights if callable(weights) else partial(_slice_of, weights)
        parts = [
            (encoding.positions(layout), mask.view(np.uint8), values)
            for layout, mask, values in zip(
                encoding.layouts, present, _coefficients(encoding, sliced, present), strict=True
            )
        ]
        self._weights = _core.RlweWeights(parts, pool, keep_transformed=keep_transformed)

    @property
    def kept_bytes(self) -> int:
        """The bytes of the weights that are kept, transformed or not."""
        return self._weights.bytes

    def evaluate(
        self, key: PublicKey, inputs: Sequence[_core.RlweCiphertexts]
    ) -> tuple[bytes, Ring]:
        """Returns the answer and the server's shares (out_channels, rows, columns), below 2^bits.

        `inputs` are the ciphertexts of each layout. Raises ArgumentError for others.
        """
        encoding = self.encoding
        answer, shares = self._weights.evaluate(
            key.engine, encoding.results, inputs, encoding.tile_count, key.pool
        )
        return answer.tobytes(), encoding.decode(shares)


def _slice_of(weights: Sequence[Weights], channels: slice) -> list[Weights]:
    return [own[channels] for own in weights]


def _coefficients(
    encoding: Encoding,
    weights: Callable[[slice], Sequence[Weights]],
    present: Sequence[npt.NDArray[np.bool_]],
) -> list[npt.NDArray[np.int32]]:
    """Returns the coefficients of the polynomials of each layout, made by blocks of outputs."""
    counts = [len(encoding.positions(own)) for own in encoding.layouts]
    found = [
        np.empty((int(mask.sum()), count), np.int32)
        for mask, count in zip(present, counts, strict=True)
    ]
    ends = [0] * len(found)
    each = sum(own.inputs * count for own, count in zip(encoding.layouts, counts, strict=True))
    step = max(1, _BLOCK // each)
    for first in range(0, encoding.outputs, step):
        channels = slice(first * encoding.packed, (first + step) * encoding.packed)
        for k, (layout, own) in enumerate(zip(encoding.layouts, weights(channels), strict=True)):
            block = encoding.coefficients(layout, own)[present[k][first : first + step]]
            found[k][ends[k] : ends[k] + len(block)] = block
            ends[k] += len(block)
    return [own.reshape(-1) for own in found]
