"""The engine of Nescio. Private: use the package's own modules."""

from collections.abc import Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray


def supported_tiers() -> list[str]:
    """The CPU tiers that this machine can run, narrowest first."""

def active_tier() -> str:
    """The tier in use: the widest, or the one that NESCIO_CPU names."""

def check_tier(name: str) -> None:
    """Raises ArgumentError unless this machine has the tier."""

def available_processors() -> int:
    """Processors that this process may run on."""

class ThreadPool:
    """Worker threads; 0 takes every processor."""

    def __init__(self, threads: int = 0) -> None: ...

    @property
    def threads(self) -> int: ...

def aes128_encrypt(key: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], plaintext: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], tier: str | None = None) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
    """AES-128 of whole blocks, for known answers."""

def chacha20_block(state: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
    """The ChaCha20 block function on its 64-byte state, for known answers."""

def generate_blocks(generator: str, nodes: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], corrections: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], leaves: bool, group_bits: int = 63, tier: str | None = None) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
    """The children (or leaves) of nodes, corrected, for known answers."""

def seconds_per_node(generator: str, leaves: bool, tier: str | None = None) -> float:
    """Time of one expansion (or leaf) in the cache, measured."""

class Keys:
    """Checked keys of one shape, from the rows of an array of bytes."""

    def __init__(self, rows: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

    @staticmethod
    def join(parts: Sequence[Keys]) -> Keys:
        """All keys of several, in order."""

    def __len__(self) -> int: ...

    def parties(self) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
        """The party that each key is for."""

    @property
    def domain(self) -> int: ...

    @property
    def output(self) -> str: ...

    @property
    def generator(self) -> str: ...

def generate(alphas: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], payloads: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)], domain: int, output: str, generator: str, insecure_roots: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)] | None = None, tier: str | None = None) -> tuple[Annotated[NDArray[numpy.uint8], dict(order='C')], Annotated[NDArray[numpy.uint8], dict(order='C')]]:
    """Keys of both parties, one in each row of two arrays."""

def evaluate_range(keys: Keys, start: int, stop: int, pool: ThreadPool, tier: str | None = None) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
    """Shares at start..stop-1 as bytes, a row a key; bits are packed."""

def evaluate_points(keys: Keys, points: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], pool: ThreadPool, tier: str | None = None) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
    """Shares at each key's points as bytes, a byte for a bit."""

def combine(output: str, a: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
    """The sums of shares in the output group."""

def key_bytes(domain: int, output: str, generator: str) -> int:
    """The length of each key."""

class Table:
    """
    Rows in the layout that an output asks for; the memory is its own and not initialised, or `data`.
    """

    def __init__(self, rows: int, row_bytes: int, output: str, data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')] | None = None) -> None: ...

    def store(self, first: int, rows: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], pool: ThreadPool) -> None:
        """Writes rows from row `first`, a multiple of TILE_ROWS, on."""

    def replace(self, indices: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None:
        """Overwrites the rows at some indices."""

    def load_range(self, first: int, count: int, pool: ThreadPool) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
        """Rows from row `first`, a multiple of TILE_ROWS, on."""

    def load(self, indices: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
        """The rows at some indices."""

    def answer(self, keys: Keys, pool: ThreadPool, tier: str | None = None) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
        """Answers to keys, a row each."""

    def read_all(self, pool: ThreadPool) -> int:
        """
        Reads every byte once: the speed limit of answers. The result is of no use.
        """

    @property
    def bytes(self) -> int:
        """Bytes of the table in its layout."""

    def memory(self) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]:
        """The memory itself, without a copy."""

TILE_ROWS: int = 512

def table_bytes(rows: int, row_bytes: int, output: str) -> int:
    """Bytes of a table in the layout that its output asks for."""

def answer_bytes(output: str, row_bytes: int) -> int:
    """The length of each answer."""

def grow_trees(seeds: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)], depth: int, delta: Annotated[NDArray[numpy.uint64], dict(shape=(2), order='C', device='cpu', writable=False)], key: bytes, pool: ThreadPool, tier: str | None = None, out: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu')] | None = None, first_tree: int = 0) -> tuple[Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C')], Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C')]]:
    """
    Leaves of correlated trees, and the sums of each level's left nodes, tree by tree.
    """

def puncture_trees(sides: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)], choices: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], depth: int, key: bytes, pool: ThreadPool, tier: str | None = None, out: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu')] | None = None, first_tree: int = 0) -> Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C')]:
    """
    Leaves of punctured trees; the lowest bit is set in the punctured leaf alone.
    """

def encode_primal(noise: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu')], seeds: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)], code_seed: bytes, first_row: int, pool: ThreadPool, tier: str | None = None) -> None:
    """
    Adds to each block of noise the ten seeds of its row of a public matrix.
    """

def hash_blocks(blocks: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)], first_index: int, tag: int, key: bytes, pool: ThreadPool, delta: Annotated[NDArray[numpy.uint64], dict(shape=(2), order='C', device='cpu', writable=False)] | None = None, tier: str | None = None, out: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu')] | None = None) -> Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C')]:
    """Hashes of blocks, or of blocks ^ delta, each with its index."""

def chi_sum(leaves: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)], chi_seed: bytes, pool: ThreadPool, tier: str | None = None) -> Annotated[NDArray[numpy.uint64], dict(shape=(2), order='C')]:
    """The sum of chi[i] * leaves[i] in GF(2^128)."""

def chi_at(positions: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], chi_seed: bytes, tier: str | None = None) -> Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C')]:
    """The coefficients at some positions."""

def pack_bits(blocks: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.uint64], dict(shape=(2), order='C')]:
    """The sum of blocks[i] * X^i in GF(2^128)."""

def multiply_blocks(a: Annotated[NDArray[numpy.uint64], dict(shape=(2), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.uint64], dict(shape=(2), order='C', device='cpu', writable=False)], tier: str | None = None) -> Annotated[NDArray[numpy.uint64], dict(shape=(2), order='C')]:
    """A product in GF(2^128), for known answers."""

def transpose_bits(rows: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C')]:
    """Bit i of row j as bit j of block i, for 128 rows."""

def low_bits(blocks: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """The lowest bit of each block, a byte each."""

def encode_ec(noise: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu')], code_seed: bytes, pool: ThreadPool, tier: str | None = None, out: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu')] | None = None) -> None:
    """
    Compresses 2n blocks into the first n by an expand-convolute code, as many as have room in `out` into that.
    """

class QuasiCyclicRoom:
    """Memory for encode_qc, kept from one call to the next."""

    def __init__(self) -> None: ...

def encode_qc(noise: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)], code_seed: bytes, count: int, pool: ThreadPool, tier: str | None = None, room: QuasiCyclicRoom | None = None) -> Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C')]:
    """The first outputs that a quasi-cyclic code makes of 2p blocks."""

class BitMatrix:
    """
    Weights of 1 to 8 bits from their planes (bit, row, column / 64), laid out for one CPU tier.
    """

    def __init__(self, planes: Annotated[NDArray[numpy.uint64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], columns: int, *, tier: str | None = None, kernel: str | None = None) -> None: ...

    @property
    def rows(self) -> int: ...

    @property
    def columns(self) -> int: ...

    @property
    def bits(self) -> int: ...

    @property
    def tier(self) -> str: ...

    @property
    def packed_bytes(self) -> int:
        """Bytes that a product reads."""

    def kernel(self, activation_bits: int, batch: int) -> str:
        """The names of the kernels that such a product uses, joined by +."""

    def multiply(self, x: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], activation_bits: int, pool: ThreadPool, out: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu')] | None = None) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C')]:
        """Exact products with vectors of integers, a row each."""

    def apply(self, x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], activation_bits: int, scale: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, pool: ThreadPool, out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')] | None = None) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C')]:
        """
        Products with vectors of floats, which are quantised first, scaled; a row each.
        """

def quantize_activations(x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], activation_bits: int, tier: str | None = None) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C')], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]]:
    """The integers of each vector of floats, and its step."""

def bitserial_kernels(tier: str) -> list[str]:
    """The names of the kernels that a tier has."""

def seconds_per_byte(output: str, tier: str | None = None) -> float:
    """
    Time of the product with a byte of table, for each key, in the cache, measured.
    """

def seconds_per_weight(weight_bits: int, activation_bits: int, rows: int, batch: int = 1, tier: str | None = None) -> float:
    """
    Time of a product's inner loops with a weight, in the cache, for all vectors, measured.
    """

def seconds_per_read(blocks: int) -> float:
    """Time of one read at random among so many blocks, measured."""
