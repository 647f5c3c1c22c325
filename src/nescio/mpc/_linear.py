"""The offline phase of a linear layer: both parties get a share of W r for the client's mask r.

    client: message = keys.encrypt(layout, r)
    server: answer, s = weights.evaluate(public_key, [ciphertexts(layout, message, pool)])
    client: c = keys.decrypt(encoding, answer)           s + c = W r modulo 2^bits, or off by 1

A product may use several messages, and a message serve several products. Messages are bytes of a
length that both parties know. The engine checks them (core/rlwe/messages.cc).
docs/rlwe-parameters.md has the noise, the security and what is not protected: both parties must
follow the protocol.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .. import _core
from ._encoding import Encoding
from ._layout import CIPHERTEXT_BYTES, SEED_BYTES, Layout
from ._maps import Ring

__all__ = ["PUBLIC_KEY_BYTES", "ClientKeys", "PublicKey", "ServerWeights", "ciphertexts"]

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
    """A client's public key at the server.

    Raises MalformedMessageError if the message is not a public key.
    """

    def __init__(self, message: bytes, pool: _core.ThreadPool) -> None:
        self.engine = _core.RlwePublicKey(np.frombuffer(message, np.uint8), pool)


def ciphertexts(layout: Layout, message: bytes, pool: _core.ThreadPool) -> _core.RlweCiphertexts:
    """Parses a client's message, for all products that use it.

    Raises MalformedMessageError if it is not `layout.bytes` bytes of ciphertexts.
    """
    return _core.RlweCiphertexts(np.frombuffer(message, np.uint8), layout.count, pool)


class ServerWeights:
    """The weights of a product, (out_channels, in_channels, rows, columns) for each layout.

    Raises ArgumentError for another dtype or shape, and for weights so large that noise could
    change a result by more than 1.
    """

    def __init__(
        self,
        encoding: Encoding,
        weights: Sequence[npt.NDArray[np.signedinteger]],
        pool: _core.ThreadPool,
    ) -> None:
        self.encoding = encoding
        self._weights = _core.RlweWeights(encoding.encode_weights(weights), pool)
        self._pool = pool

    def evaluate(
        self, key: PublicKey, inputs: Sequence[_core.RlweCiphertexts]
    ) -> tuple[bytes, Ring]:
        """Returns the answer and the server's shares (out_channels, rows, columns), below 2^bits.

        `inputs` are the ciphertexts of each layout. Raises ArgumentError for others.
        """
        encoding = self.encoding
        answer, shares = self._weights.evaluate(
            key.engine, encoding.results, inputs, encoding.tile_count, self._pool
        )
        return answer.tobytes(), encoding.decode(shares)
