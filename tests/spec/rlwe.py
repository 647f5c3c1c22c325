"""Ring-LWE products for linear layers, in plain Python on big integers.

The ring is R_q = Z_q[X]/(X^N + 1) with N = 4096 and q = p0 p1. A message is a polynomial with
coefficients in Z_2^32, scaled by q / 2^32. A client encrypts, a server multiplies by polynomials
with small coefficients, and both end with a share of the result: their sum modulo 2^bits is the
product, or differs from it by 1. docs/rlwe-parameters.md derives the noise.

The server's answer has two parts. c1 hides the weights, because the server adds an encryption of
zero. Of c0 the server sends only the coefficients that are results, rounded to Z_2^32 and reduced
modulo 2^bits, minus a uniform mask modulo 2^bits, which is its share. Of c1 it leaves out the upper
bits that do not change results modulo 2^bits. An encryption of zero has an error in c0 too; here
the mask hides c0, and no error is needed.

Sources: Lyubashevsky, Peikert and Regev, "On Ideal Lattices and Learning with Errors over Rings"
(EUROCRYPT 2010); Huang, Lu, Hong and Ding, "Cheetah" (USENIX Security 2022), sections 3 and 4.
"""

from dataclasses import dataclass

from . import streams

N = 4096
PRIMES = (1073692673, 1073668097)  # the largest below 2^30 that are 1 modulo 2 N
Q = PRIMES[0] * PRIMES[1]
ROOTS = tuple(pow(3, (p - 1) // (2 * N), p) for p in PRIMES)  # primitive 2 N-th roots of unity

MESSAGE_BITS = 32
MODULUS = 1 << MESSAGE_BITS
RESIDUE_BITS = 30
C1_BITS = 40  # of a coefficient of c1, rounded for results of 32 bits
EXTRA_BITS = C1_BITS - MESSAGE_BITS  # of a coefficient of c1 in an answer, over those of a result
SEED_BYTES = 32
ERROR_BITS = 42  # coins of an error: its variance is 42 / 4

UNIFORM, ERROR, TERNARY, MASK = range(4)  # the kinds of streams of a seed

Polynomial = list[int]
Residues = list[list[int]]


# ---- Streams -------------------------------------------------------------------------------------


def words(seed: bytes, kind: int, index: int, prime: int) -> "streams.Words":
    """Return the stream of a kind of values: ChaCha20, RFC 8439, with its three words as nonce."""
    return streams.Words(seed, (kind, index, prime))


def uniform(seed: bytes, index: int, i: int) -> list[int]:
    """Draw N residues modulo p_i: the lowest 30 bits of words of 32 bits, where below p_i."""
    stream, values = words(seed, UNIFORM, index, i), []
    while len(values) < N:
        value = stream.read(4) % (1 << RESIDUE_BITS)
        if value < PRIMES[i]:
            values.append(value)
    return values


def ternary(seed: bytes, index: int) -> Polynomial:
    """Draw a polynomial of -1, 0 and 1: floor(3 x / 2^64) - 1 of words x of 64 bits."""
    stream = words(seed, TERNARY, index, 0)
    return [(3 * stream.read(8) >> 64) - 1 for _ in range(N)]


def mask(seed: bytes, index: int, count: int) -> list[int]:
    """Draw numbers of 32 bits."""
    stream = words(seed, MASK, index, 0)
    return [stream.read(4) for _ in range(count)]


def error(seed: bytes, index: int) -> Polynomial:
    """Draw centered binomials: the ones in the lowest 42 bits of words of 64 bits, minus 21."""
    stream, coins = words(seed, ERROR, index, 0), 1 << ERROR_BITS
    return [(stream.read(8) % coins).bit_count() - ERROR_BITS // 2 for _ in range(N)]


# ---- The ring ------------------------------------------------------------------------------------


def multiply(a: Polynomial, b: Polynomial, modulus: int) -> Polynomial:
    """Multiply modulo X^N + 1 and the modulus, as two large integers (Kronecker substitution)."""
    bits = 2 * modulus.bit_length() + N.bit_length()
    product = _join([x % modulus for x in a], bits) * _join([x % modulus for x in b], bits)
    values = split(product.to_bytes(2 * N * bits // 8, "little"), bits, 2 * N)
    return [(values[k] - values[k + N]) % modulus for k in range(N)]


def transform(a: Polynomial, i: int) -> list[int]:
    """Return a(psi^(2 r(k) + 1)) modulo p_i for each k, where r reverses the 12 bits of k."""
    p, values, length = PRIMES[i], [x % PRIMES[i] for x in a], N // 2
    while length:
        groups = N // (2 * length)
        for g in range(groups):
            root = pow(ROOTS[i], reverse_bits(groups + g), p)
            for k in range(2 * g * length, (2 * g + 1) * length):
                x, y = values[k], values[k + length] * root
                values[k], values[k + length] = (x + y) % p, (x - y) % p
        length //= 2
    return values


def evaluate_at(a: Polynomial, i: int, k: int) -> int:
    """Return value k of the transform by its definition."""
    point, value = pow(ROOTS[i], 2 * reverse_bits(k) + 1, PRIMES[i]), 0
    for coefficient in reversed(a):
        value = (value * point + coefficient) % PRIMES[i]
    return value


def interpolate(values: list[int], i: int) -> Polynomial:
    """Invert `transform`."""
    p, a, length = PRIMES[i], list(values), 1
    while length < N:
        groups = N // (2 * length)
        for g in range(groups):
            root = pow(ROOTS[i], -reverse_bits(groups + g), p)
            for k in range(2 * g * length, (2 * g + 1) * length):
                x, y = a[k], a[k + length]
                a[k], a[k + length] = (x + y) % p, (x - y) * root % p
        length *= 2
    return [x * pow(N, -1, p) % p for x in a]


def reverse_bits(k: int) -> int:
    """Reverse the 12 bits of an index."""
    return int(f"{k:012b}"[::-1], 2)


def join_residues(residues: Residues) -> list[int]:
    """Return the numbers modulo q with these residues (Chinese remainder theorem)."""
    p0, p1 = PRIMES
    return [
        (a * p1 * pow(p1, -1, p0) + b * p0 * pow(p0, -1, p1)) % Q
        for a, b in zip(*residues, strict=True)
    ]


def scale(x: int, modulus: int, new_modulus: int) -> int:
    """Round x new_modulus / modulus to the nearest integer, modulo new_modulus."""
    return (2 * x * new_modulus + modulus) // (2 * modulus) % new_modulus


# ---- Messages: numbers of one width, the lowest bit first ----------------------------------------


def pack(values: list[int], bits: int) -> bytes:
    """Pack numbers; unused bits of the last byte are zero."""
    return _join(values, bits).to_bytes(-(-len(values) * bits // 8), "little")


def split(data: bytes, bits: int, count: int) -> list[int]:
    """Unpack numbers."""
    mask = (1 << bits) - 1
    values = []
    for first in range(0, count, 8):  # eight numbers are whole bytes
        group = int.from_bytes(data[first * bits // 8 : (first + 8) * bits // 8], "little")
        values += [group >> j * bits & mask for j in range(min(8, count - first))]
    return values


def _join(values: list[int], bits: int) -> int:
    padded = [*values, *[0] * (-len(values) % 8)]
    groups = (
        sum(value << j * bits for j, value in enumerate(padded[first : first + 8]))
        for first in range(0, len(padded), 8)
    )
    return int.from_bytes(b"".join(group.to_bytes(bits, "little") for group in groups), "little")


# ---- The protocol --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ciphertext:
    """c0 and c1 with c0 + c1 s = M + e in R_q."""

    c0: Polynomial
    c1: Polynomial


def _expand(seed: bytes, index: int) -> Polynomial:
    """Expand polynomial `index` of a public seed; the stream has its transforms."""
    return join_residues([interpolate(uniform(seed, index, i), i) for i in range(2)])


def _encrypt(
    secret: Polynomial, plain: Polynomial, seeds: tuple[bytes, bytes], index: int
) -> Ciphertext:
    """Return c1 = a and c0 = M + e - a s. `seeds` are the public and the secret one."""
    a, e = _expand(seeds[0], index), error(seeds[1], index)
    masked = multiply(a, secret, Q)
    return Ciphertext([(m + e - x) % Q for m, e, x in zip(plain, e, masked, strict=True)], a)


def _write(public_seed: bytes, ciphertexts: list[Ciphertext]) -> bytes:
    """Serialize: the seed, then of each ciphertext the transforms of c0, modulo p0 and p1."""
    return public_seed + b"".join(
        pack(transform(c.c0, i), RESIDUE_BITS) for c in ciphertexts for i in range(2)
    )


def read_ciphertexts(data: bytes, count: int) -> list[Ciphertext]:
    """Parse ciphertexts or a public key (one ciphertext of zero)."""
    size = N * RESIDUE_BITS // 8
    if len(data) != SEED_BYTES + 2 * size * count:
        raise ValueError("length")
    seed, ciphertexts = data[:SEED_BYTES], []
    for index in range(count):
        start = SEED_BYTES + 2 * size * index
        rows = [split(data[start + i * size :][:size], RESIDUE_BITS, N) for i in range(2)]
        if any(max(row) >= p for row, p in zip(rows, PRIMES, strict=True)):
            raise ValueError("residue")
        c0 = join_residues([interpolate(rows[i], i) for i in range(2)])
        ciphertexts.append(Ciphertext(c0, _expand(seed, index)))
    return ciphertexts


def public_key(secret_seed: bytes, public_seed: bytes) -> bytes:
    """Return the public key of `ternary(secret_seed, 0)`: an encryption of zero."""
    secret = ternary(secret_seed, 0)
    return _write(public_seed, [_encrypt(secret, [0] * N, (public_seed, secret_seed), 0)])


def encrypt(
    secret: Polynomial, messages: list[Polynomial], public_seed: bytes, error_seed: bytes
) -> bytes:
    """Encrypt polynomials over Z_2^32."""
    plain = [[scale(x, MODULUS, Q) for x in m] for m in messages]
    seeds = (public_seed, error_seed)
    return _write(public_seed, [_encrypt(secret, m, seeds, k) for k, m in enumerate(plain)])


def evaluate(
    key: bytes,
    weights: list[list[Polynomial]],
    messages: list[bytes],
    tiles: int,
    positions: list[list[int]],
    bits: int,
    seed: bytes,
) -> tuple[bytes, list[int]]:
    """Multiply each tile of ciphertexts by the weights (outputs, inputs).

    The inputs of a tile are its part of each message, in their order. Output t * outputs + o is
    the sum of weights[o][g] times input g of tile t. Of each output, the coefficients at
    positions[o] are results; they are the same in every tile. Returns the answer, and the server's
    shares in the order of outputs and positions.
    """
    zero = read_ciphertexts(key, 1)[0]
    given = [inputs_of(messages, tiles, tile) for tile in range(tiles)]
    upper, lower, shares = [], [], []
    for number in range(tiles * len(weights)):
        tile, o = divmod(number, len(weights))
        u, e1 = ternary(seed, number), error(seed, number)
        terms = [(u, zero), *zip(weights[o], given[tile], strict=True)]
        c0 = _sum([multiply(w, c.c0, Q) for w, c in terms])
        c1 = _sum([e1, *(multiply(w, c.c1, Q) for w, c in terms)])
        own_shares = [x % (1 << bits) for x in mask(seed, number, len(positions[o]))]
        rounded = [scale(x, Q, 1 << C1_BITS) for x in c1]
        upper.append(pack([x % (1 << bits + EXTRA_BITS) for x in rounded], bits + EXTRA_BITS))
        masked = [
            (scale(c0[at], Q, MODULUS) - share) % (1 << bits)
            for at, share in zip(positions[o], own_shares, strict=True)
        ]
        lower.append(pack(masked, bits))
        shares += own_shares
    return b"".join(upper + lower), shares


def inputs_of(messages: list[bytes], tiles: int, tile: int) -> list[Ciphertext]:
    """Return the ciphertexts of a tile: its part of each message."""
    inputs = []
    for data in messages:
        count = (len(data) - SEED_BYTES) * 8 // (2 * N * RESIDUE_BITS)
        each = count // tiles
        inputs += read_ciphertexts(data, count)[tile * each : (tile + 1) * each]
    return inputs


def decrypt(secret: Polynomial, answer: bytes, positions: list[list[int]], bits: int) -> list[int]:
    """Return the client's shares; `positions` are those of every output, tile by tile."""
    size = N * (bits + EXTRA_BITS) // 8
    start = len(positions) * size
    shares: list[int] = []
    for number, where in enumerate(positions):
        c1 = split(answer[number * size : (number + 1) * size], bits + EXTRA_BITS, N)
        product = multiply(c1, secret, 1 << bits + EXTRA_BITS)
        length = -(-len(where) * bits // 8)
        masked = split(answer[start : start + length], bits, len(where))
        start += length
        for at, other in zip(where, masked, strict=True):
            rounded = scale(product[at], 1 << bits + EXTRA_BITS, 1 << bits)
            shares.append((rounded + other) % (1 << bits))
    return shares


def _sum(polynomials: list[Polynomial]) -> Polynomial:
    return [sum(column) % Q for column in zip(*polynomials, strict=True)]
