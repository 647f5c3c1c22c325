"""The vectors of ring-LWE products, from the executable specification."""

import hashlib
import itertools
import struct
from collections.abc import Sequence

from spec import rlwe

# Outputs, inputs of a tile in each message, tiles, bits of a result.
SHAPES = ((1, (1,), 1, 32), (3, (2,), 1, 32), (2, (5, 12), 1, 21), (2, (1, 2), 3, 8))


def stream(label: str, count: int) -> bytes:
    """Return reproducible bytes."""
    return hashlib.shake_128(f"nescio test vector {label}".encode()).digest(count)


def seed(name: str) -> bytes:
    """Return a seed."""
    return stream(f"rlwe {name}", rlwe.SEED_BYTES)


def message(number: int) -> rlwe.Polynomial:
    """Return a polynomial over Z_2^32."""
    return list(struct.unpack(f"<{rlwe.N}I", stream(f"rlwe message {number}", 4 * rlwe.N)))


def weight(output: int, given: int) -> rlwe.Polynomial:
    """Return 64 coefficients from -128 to 127, zeros, and -7."""
    values = struct.unpack("<64b", stream(f"rlwe weight {output} {given}", 64))
    return [*values, *[0] * (rlwe.N - 65), -7]


def positions(output: int) -> list[int]:
    """Return the positions of an output's results."""
    return list(range(output, rlwe.N, 5 + 90 * output))


def digest(numbers: list[int]) -> str:
    """Return the SHA-256 of words of 32 bits."""
    return hashlib.sha256(struct.pack(f"<{len(numbers)}I", *numbers)).hexdigest()


def polynomials(inputs: Sequence[int], tiles: int) -> list[list[rlwe.Polynomial]]:
    """Return the polynomials of each message, numbered one after the other."""
    ends = list(itertools.accumulate(tiles * own for own in inputs))
    return [
        [message(k) for k in range(end - tiles * own, end)]
        for own, end in zip(inputs, ends, strict=True)
    ]


def case(outputs: int, inputs: Sequence[int], tiles: int, bits: int) -> dict[str, object]:
    """Build one case of rlwe.json."""
    secret = rlwe.ternary(seed("secret"), 0)
    key = rlwe.public_key(seed("secret"), seed("public"))
    ciphertexts = [
        rlwe.encrypt(secret, own, seed(f"c1 {k}"), seed(f"errors {k}"))
        for k, own in enumerate(polynomials(inputs, tiles))
    ]
    weights = [[weight(o, g) for g in range(sum(inputs))] for o in range(outputs)]
    where = [positions(o) for o in range(outputs)]
    answer, server = rlwe.evaluate(key, weights, ciphertexts, tiles, where, bits, seed("server"))
    client = rlwe.decrypt(secret, answer, where * tiles, bits)
    return {
        "outputs": outputs,
        "inputs": list(inputs),
        "tiles": tiles,
        "bits": bits,
        "public_key": hashlib.sha256(key).hexdigest(),
        "ciphertexts": [hashlib.sha256(own).hexdigest() for own in ciphertexts],
        "answer": hashlib.sha256(answer).hexdigest(),
        "server_shares": digest(server),
        "client_shares": digest(client),
        "first_shares": [[str(a), str(b)] for a, b in zip(server[:4], client, strict=False)],
    }


def content() -> list[dict[str, object]]:
    """Return the content of rlwe.json."""
    return [case(*shape) for shape in SHAPES]
