"""The engine of Nescio. Private: use the package's public modules."""

from collections.abc import Sequence
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


def supported_tiers() -> list[str]:
    """Return the CPU tiers that this machine supports, narrowest first."""

def active_tier() -> str:
    """
    Return the active tier: the widest supported, or the one in NESCIO_CPU.
    """

def check_tier(name: str) -> None:
    """Raise ArgumentError unless this machine supports the tier."""

def available_processors() -> int:
    """Return the number of processors that this process may run on."""

def fill_random(out: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Fill memory, which the caller can wipe, from the operating system's generator.
    """

class ThreadPool:
    """Worker threads; 0 means one per processor."""

    def __init__(self, threads: int = 0) -> None: ...

    @property
    def threads(self) -> int: ...

def assign(offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], candidates: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], capacity: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], together: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], pool: ThreadPool) -> Annotated[NDArray[numpy.int8], dict(order='C')]:
    """
    Assign the accesses of sets to bins: the number of the candidate that each uses, -1 if it is dropped, -2 if another access brings it.
    """

def find_together(offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], lists: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], neighbors: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], pool: ThreadPool) -> Annotated[NDArray[numpy.int32], dict(order='C')]:
    """
    Return, for each access, the accesses of its set whose rows are in its list of neighbors; -1 for a row that is not in the set.
    """

def count_pairs(offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], users: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], limit: int, count: int, min_users: int, pool: ThreadPool) -> Annotated[NDArray[numpy.int64], dict(order='C')]:
    """
    Return, for each row below the limit, the rows that most sets have together with it, in sets of at least min_users users; -1 where there are fewer.
    """

def aes128_encrypt(key: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], plaintext: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], tier: str | None = None) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
    """Encrypt whole blocks with AES-128, for known-answer tests."""

def chacha20_block(state: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
    """
    Return the ChaCha20 block function of its 64-byte state, for known-answer tests.
    """

def chacha20_stream(key: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], nonce: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], first: int, count: int, tier: str | None = None) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
    """Return blocks of the ChaCha20 keystream, for known-answer tests."""

def generate_blocks(generator: str, nodes: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], corrections: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], leaves: bool, group_bits: int = 63, tier: str | None = None) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
    """
    Return the corrected children (or leaves) of nodes, for known-answer tests.
    """

def seconds_per_node(generator: str, leaves: bool, tier: str | None = None) -> float:
    """Measure the seconds of one expansion (or leaf) in the cache."""

def hash_records(records: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], level: int, first: int, pool: ThreadPool, tier: str | None = None) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
    """Return the hashes of records with the numbers first, first + 1, ..."""

def hash_records_at(records: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], level: int, numbers: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], pool: ThreadPool, tier: str | None = None) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
    """Return the hashes of records with the given numbers."""

class Keys:
    """Validated keys of one shape, from the rows of a byte array."""

    def __init__(self, rows: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

    @staticmethod
    def join(parts: Sequence[Keys]) -> Keys:
        """Concatenate keys."""

    def __len__(self) -> int: ...

    def parties(self) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
        """Return the party of each key."""

    @property
    def domain(self) -> int: ...

    @property
    def output(self) -> str: ...

    @property
    def generator(self) -> str: ...

def generate(alphas: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], payloads: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)], domain: int, output: str, generator: str, insecure_roots: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)] | None = None, tier: str | None = None) -> tuple[Annotated[NDArray[numpy.uint8], dict(order='C')], Annotated[NDArray[numpy.uint8], dict(order='C')]]:
    """Return the keys of both parties, one per row of two arrays."""

def evaluate_range(keys: Keys, start: int, stop: int, pool: ThreadPool, tier: str | None = None) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
    """
    Return the shares at start..stop-1 as bytes, one row per key; bits are packed.
    """

def evaluate_points(keys: Keys, points: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], pool: ThreadPool, tier: str | None = None) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
    """Return the shares at each key's points as bytes, one byte per bit."""

def combine(output: str, a: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
    """Return the sums of shares in the output group."""

def key_bytes(domain: int, output: str, generator: str) -> int:
    """Return the length of each key."""

class RowChanges:
    """
    Rows to overwrite, and a copy of their new bytes. Of several new rows for one row, the last wins.
    """

    def __init__(self, indices: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], new_rows: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], bins: Sequence[tuple[int, int, int]], pool: ThreadPool) -> None: ...

    def __len__(self) -> int: ...

class Patch:
    """
    The differences of the rows that an update changed, whose indices increase: old rows minus new rows in the output group. Rows are cut into lanes, of which those that differ are kept.
    """

    def __init__(self, indices: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], old_rows: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], new_rows: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], bins: Sequence[tuple[int, int, int]], output: str, lane_bytes: int, tier: str | None = None) -> None: ...

    @property
    def bytes(self) -> int:
        """Bytes of the differences and the rows' numbers."""

    def __len__(self) -> int: ...

def add_patches(patches: Sequence[Patch], ages: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], keys: Sequence[Keys], answers: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], pool: ThreadPool, tier: str | None = None) -> None:
    """
    Make answers of the version before some patches of those after them, in place; `keys` and `answers` are those of `Table.answer`. Lookup i gets the first ages[i] patches.
    """

class Table:
    """
    Rows in the layout of an output; in uninitialized memory of its own, or in `data`. `window` is the first row, a multiple of TILE_ROWS, and the number of those in memory, if not all are. `bins` are groups of bins of one size: their number, the rows of each, and the keys that a lookup sends to each. Rows are numbered group by group and bin by bin.
    """

    def __init__(self, bins: Sequence[tuple[int, int, int]], row_bytes: int, output: str, data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')] | None = None, window: tuple[int, int] | None = None) -> None: ...

    def store(self, first: int, rows: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], pool: ThreadPool, tier: str | None = None) -> None:
        """
        Store rows, beginning with row `first`, a multiple of TILE_ROWS in its bin.
        """

    def replace(self, changes: RowChanges, pool: ThreadPool, tier: str | None = None) -> None:
        """Apply changes."""

    def load_range(self, first: int, count: int, pool: ThreadPool, tier: str | None = None) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
        """
        Return rows, beginning with row `first`, a multiple of TILE_ROWS in its bin.
        """

    def load(self, indices: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], tier: str | None = None) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
        """Return the rows at some indices."""

    def answer(self, keys: Sequence[Keys], pool: ThreadPool, tier: str | None = None) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
        """
        Return the answers to the keys of some lookups, one per row: lookup by lookup, and in each by group, bin and key. `keys` has, for each group of bins, the keys of all lookups in this order.
        """

    def read_all(self, pool: ThreadPool) -> int:
        """
        Read every byte once, to measure an upper bound for answers; ignore the result.
        """

    @property
    def bytes(self) -> int:
        """Bytes of the table in its layout."""

    def memory(self) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]:
        """Return the table's memory, without a copy."""

def answer_all(asked: Sequence[tuple[Table, Sequence[Keys], Sequence[Patch], Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)]]], pool: ThreadPool, tier: str | None = None) -> list[Annotated[NDArray[numpy.uint8], dict(order='C')]]:
    """
    Return the answers from several tables, each with its keys, patches and ages: `Table.answer` and `add_patches` for each. One call gives up the interpreter once.
    """

def replace_all(tables: Sequence[tuple[Table, RowChanges]], pool: ThreadPool, tier: str | None = None) -> None:
    """Apply changes to several tables: `Table.replace` for each."""

TILE_ROWS: int = 512

def table_bytes(bins: Sequence[tuple[int, int, int]], row_bytes: int, output: str, window: tuple[int, int] | None = None) -> int:
    """
    Return the bytes of a table, or of a window of it, in the layout of its output.
    """

def answer_bytes(output: str, row_bytes: int) -> int:
    """Return the length of each answer."""

def check_rows(indices: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], hash_rows: Sequence[Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)]], tops: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], tier: str | None = None, ranges: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> bool:
    """
    Return true if every row has its hash in the rows of the hash tables, up to the top hashes; constant time. `ranges` has the first and the end of each index's top hashes, one after the other.
    """

def hash_keys(seed: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], ends: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], pool: ThreadPool) -> Annotated[NDArray[numpy.uint64], dict(order='C')]:
    """
    Return the words of keys: the first three give its places, the last is its fingerprint.
    """

class Cuckoo:
    """The places of a keyed table's keys, by their words: cuckoo hashing."""

    def __init__(self, rows: int) -> None: ...

    @property
    def rows(self) -> int:
        """Rows of a subtable."""

    @property
    def bytes(self) -> int:
        """Bytes of memory."""

    def __len__(self) -> int: ...

    def find(self, words: Annotated[NDArray[numpy.uint64], dict(shape=(None, 4), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(order='C')]:
        """Return the slot of each key, or -1."""

    def insert(self, words: Annotated[NDArray[numpy.uint64], dict(shape=(None, 4), order='C', device='cpu', writable=False)]) -> bool:
        """
        Insert keys and return true; or insert none, if one is there already or has no place.
        """

    def erase(self, words: Annotated[NDArray[numpy.uint64], dict(shape=(None, 4), order='C', device='cpu', writable=False)]) -> None:
        """Delete keys, or none if one is not in the table."""

    def moves(self) -> tuple[Annotated[NDArray[numpy.int64], dict(order='C')], Annotated[NDArray[numpy.int64], dict(order='C')], Annotated[NDArray[numpy.int64], dict(order='C')]]:
        """
        Return slots that keys have left in the last operation, the slots where these keys are now, and slots that are empty now.
        """

    def undo(self) -> None:
        """Undo the last operation."""

    def entries(self) -> tuple[Annotated[NDArray[numpy.int64], dict(order='C')], Annotated[NDArray[numpy.uint64], dict(order='C')]]:
        """Return the slots and the words of all keys, by slot."""

    def restore(self, slots: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], words: Annotated[NDArray[numpy.uint64], dict(shape=(None, 4), order='C', device='cpu', writable=False)]) -> None:
        """Replace all keys by those that `entries` returned."""

def lut_message_bytes(field: tuple[int, int, int], count: int) -> int:
    """Return the bytes of a message of `count` transfers."""

def lut_write_message(field: tuple[int, int, int], shares: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, bits: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], zero: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], one: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')] | None, pool: ThreadPool) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
    """Write the message of the sender of transfers, and add to its numbers."""

def lut_read_message(field: tuple[int, int, int], choices: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], pads: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], message: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')] | None, pool: ThreadPool) -> Annotated[NDArray[numpy.uint64], dict(order='C')]:
    """Return the receiver's shares of entries, and add to its numbers."""

def lut_grow(level: int, bits: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], zero: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], received: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], shares: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu')], pool: ThreadPool) -> None:
    """Double shares of one-hot vectors, in place."""

def lut_expand_trees(level: int, are_leaves: bool, base: bytes, nodes: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu')], pool: ThreadPool, tier: str | None = None) -> tuple[Annotated[NDArray[numpy.uint64], dict(order='C')], Annotated[NDArray[numpy.uint32], dict(order='C')]]:
    """
    Expand nodes in place; return the XOR of each table's hashes, and the control bits.
    """

def lut_correct_trees(level: int, are_leaves: bool, corrections: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)], controls: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], nodes: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu')], pool: ThreadPool) -> None:
    """Add corrections to what replaced nodes with control bit 1, in place."""

def lut_pack(bits: int, numbers: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
    """Pack the lowest bits of numbers."""

def lut_unpack(bits: int, count: int, packed: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.uint16], dict(order='C')]:
    """Return numbers that were packed."""

def lut_table_padding() -> int:
    """Return the bytes behind a table that kernels read and do not use."""

@overload
def lut_look_up(bits: int, twice: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], shares: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], opened: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)], pool: ThreadPool, tier: str | None = None) -> Annotated[NDArray[numpy.uint8], dict(order='C')]: ...

@overload
def lut_look_up(bits: int, twice: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)], shares: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], opened: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)], pool: ThreadPool, tier: str | None = None) -> Annotated[NDArray[numpy.uint16], dict(order='C')]:
    """Return shares of entries of a table at opened places."""

def lut_add_dabits(number: int, opened: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)], dabits: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], totals: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Add shares of daBits to numbers, plus or minus by an opened bit."""

def grow_trees(seeds: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)], depth: int, delta: Annotated[NDArray[numpy.uint64], dict(shape=(2), order='C', device='cpu', writable=False)], key: bytes, pool: ThreadPool, tier: str | None = None, out: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu')] | None = None, first_tree: int = 0) -> tuple[Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C')], Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C')]]:
    """
    Return the leaves of correlated trees, and the sums of each level's left nodes, by tree.
    """

def puncture_trees(sides: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)], choices: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], depth: int, key: bytes, pool: ThreadPool, tier: str | None = None, out: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu')] | None = None, first_tree: int = 0) -> Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C')]:
    """
    Return the leaves of punctured trees; only the punctured leaf has its lowest bit set.
    """

def encode_primal(noise: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu')], seeds: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)], code_seed: bytes, first_row: int, pool: ThreadPool, tier: str | None = None) -> None:
    """
    XOR into each block of noise the ten seeds of its row of a public matrix.
    """

def hash_blocks(blocks: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)], first_index: int, tag: int, key: bytes, pool: ThreadPool, delta: Annotated[NDArray[numpy.uint64], dict(shape=(2), order='C', device='cpu', writable=False)] | None = None, tier: str | None = None, out: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu')] | None = None) -> Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C')]:
    """
    Return the hashes of blocks, or of blocks ^ delta, each with its index.
    """

def chi_sum(leaves: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)], chi_seed: bytes, pool: ThreadPool, tier: str | None = None) -> Annotated[NDArray[numpy.uint64], dict(shape=(2), order='C')]:
    """Return the sum of chi[i] * leaves[i] in GF(2^128)."""

def chi_at(positions: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], chi_seed: bytes, tier: str | None = None) -> Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C')]:
    """Return the coefficients chi at some positions."""

def pack_bits(blocks: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.uint64], dict(shape=(2), order='C')]:
    """Return the sum of blocks[i] * X^i in GF(2^128)."""

def multiply_blocks(a: Annotated[NDArray[numpy.uint64], dict(shape=(2), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.uint64], dict(shape=(2), order='C', device='cpu', writable=False)], tier: str | None = None) -> Annotated[NDArray[numpy.uint64], dict(shape=(2), order='C')]:
    """Return a product in GF(2^128), for known-answer tests."""

def transpose_bits(rows: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C')]:
    """Transpose 128 rows of bits: bit i of row j becomes bit j of block i."""

def low_bits(blocks: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the lowest bit of each block as a byte."""

def encode_ec(noise: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu')], code_seed: bytes, pool: ThreadPool, tier: str | None = None, out: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu')] | None = None) -> None:
    """
    Compress 2n blocks to the first n by an expand-convolute code, or to the first ones in `out`.
    """

class QuasiCyclicScratch:
    """Scratch memory for encode_qc, reused between calls."""

    def __init__(self) -> None: ...

def encode_qc(noise: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)], code_seed: bytes, count: int, pool: ThreadPool, tier: str | None = None, scratch: QuasiCyclicScratch | None = None) -> Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C')]:
    """Return the first outputs of a quasi-cyclic code on 2p blocks."""

class GroupMatrix:
    """
    Weights of 1 to 8 bits from their planes (bit, row, column / 64), with a float16 scale, as its 16 bits, for each group of columns of a row.
    """

    def __init__(self, planes: Annotated[NDArray[numpy.uint64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], columns: int, scale: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu', writable=False)], group: int, *, tier: str | None = None) -> None: ...

    @property
    def rows(self) -> int: ...

    @property
    def columns(self) -> int: ...

    @property
    def group(self) -> int: ...

    @property
    def bits(self) -> int: ...

    @property
    def tier(self) -> str: ...

    @property
    def packed_bytes(self) -> int:
        """Bytes of weights and scales."""

    def apply(self, x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], activation_bits: int, bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, pool: ThreadPool, out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')] | None = None) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C')]:
        """Quantize float vectors, one per row, and return their scaled products."""

class BitMatrix:
    """
    Weights of 1 to 8 bits from their planes (bit, row, column / 64), in the layout of one CPU tier.
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
        """Return the names of the kernels of such a product, joined by +."""

    def multiply(self, x: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], activation_bits: int, pool: ThreadPool, out: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu')] | None = None) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C')]:
        """Return the exact products with integer vectors, one per row."""

    def apply(self, x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], activation_bits: int, scale: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, pool: ThreadPool, out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')] | None = None) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C')]:
        """Quantize float vectors, one per row, and return their scaled products."""

def quantize_activations(x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], activation_bits: int, tier: str | None = None) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C')], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]]:
    """Return the integers of each float vector, and its step."""

def bitserial_kernels(tier: str) -> list[str]:
    """Return the names of a tier's kernels."""

RLWE_DEGREE: int = 4096

class RlweResults:
    """
    The results of each output, the positions of all of them, and their bits.
    """

    def __init__(self, counts: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], positions: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], *, bits: int = 32) -> None: ...

class RlweClientKey:
    """A client's secret key and its public key."""

    def __init__(self, *, insecure_secret_seed: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, insecure_public_seed: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, tier: str | None = None) -> None: ...

    def public_key(self) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
        """Return the message for the server."""

    def encrypt(self, messages: Annotated[NDArray[numpy.uint32], dict(shape=(None, None), order='C', device='cpu', writable=False)], pool: ThreadPool, *, insecure_secret_seed: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, insecure_public_seed: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, tier: str | None = None) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
        """Encrypt polynomials over Z_2^32, one per row."""

    def decrypt(self, results: RlweResults, answer: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], tiles: int, pool: ThreadPool, *, tier: str | None = None) -> Annotated[NDArray[numpy.uint32], dict(order='C')]:
        """Return the client's shares, by tile, output and position."""

class RlwePublicKey:
    """A client's public key, at the server."""

    def __init__(self, message: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], pool: ThreadPool, *, tier: str | None = None) -> None: ...

class RlweCiphertexts:
    """Ciphertexts of a client, at the server."""

    def __init__(self, message: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], count: int, pool: ThreadPool, *, tier: str | None = None) -> None: ...

class RlweWeights:
    """
    The weights of a product, in parts: positions of the coefficients that are not zero, the polynomials (outputs, inputs) that are not zero, and their coefficients. Threads may share them. They are kept transformed, or transformed for each evaluation.
    """

    def __init__(self, parts: Sequence[tuple[Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]]], pool: ThreadPool, *, keep_transformed: bool = True, tier: str | None = None) -> None: ...

    @property
    def bytes(self) -> int:
        """The bytes that are kept."""

    def evaluate(self, key: RlwePublicKey, results: RlweResults, ciphertexts: Sequence[RlweCiphertexts], tiles: int, pool: ThreadPool, *, insecure_seed: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, tier: str | None = None) -> tuple[Annotated[NDArray[numpy.uint8], dict(order='C')], Annotated[NDArray[numpy.uint32], dict(order='C')]]:
        """
        Return the answer, and the server's shares by tile, output and position.
        """

def seconds_per_byte(output: str, tier: str | None = None) -> float:
    """
    Measure the seconds of the product per key and byte of table, in the cache.
    """

def issue(instruction: str, tier: str | None = None) -> tuple[int, float]:
    """
    Measure an instruction of a tier in a loop of nothing else: the bytes of its registers (0 if the tier does not have it) and the seconds of one.
    """

def seconds_per_weight(weight_bits: int, activation_bits: int, rows: int, batch: int = 1, tier: str | None = None) -> float:
    """
    Measure the seconds of a product's inner loops per weight, for all vectors, in the cache.
    """

def seconds_per_read(blocks: int) -> float:
    """Measure the seconds of one random read among `blocks` blocks."""

def seconds_per_row(tier: str | None = None) -> tuple[float, float, float, float]:
    """
    Measure the inner loops of a ring-LWE row in the cache: the seconds of a transform, an inverse transform, a term of a sum of products, and 64 bytes of randomness.
    """
