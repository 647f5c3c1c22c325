"""The engine of Nescio. Private: use the package's own modules."""

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

def generate_blocks(generator: str, nodes: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], corrections: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], leaves: bool, tier: str | None = None) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
    """The children (or leaves) of nodes, corrected, for known answers."""

def seconds_per_node(generator: str, leaves: bool, tier: str | None = None) -> float:
    """Time of one expansion (or leaf) in the cache, measured."""

def generate(alphas: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], payloads: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)], domain: int, output: str, generator: str, insecure_roots: Annotated[NDArray[numpy.uint64], dict(shape=(None, 2), order='C', device='cpu', writable=False)] | None = None, tier: str | None = None) -> tuple[Annotated[NDArray[numpy.uint8], dict(order='C')], Annotated[NDArray[numpy.uint8], dict(order='C')]]:
    """Keys of both parties, one in each row of two arrays."""

def evaluate_range(keys: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], start: int, stop: int, pool: ThreadPool, tier: str | None = None) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
    """Shares at start..stop-1 as bytes, a row a key; bits are packed."""

def evaluate_points(keys: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], points: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], pool: ThreadPool, tier: str | None = None) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
    """Shares at each key's points as bytes, a byte for a bit."""

def combine(output: str, a: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
    """The sums of shares in the output group."""

def key_bytes(domain: int, output: str, generator: str) -> int:
    """The length of each key."""

def parse_key(key: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[int, str, str, int]:
    """Checks a whole key; its domain, output, generator and party."""

def answer(table: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], keys: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], output: str, pool: ThreadPool, tier: str | None = None) -> Annotated[NDArray[numpy.uint8], dict(order='C')]:
    """Answers to keys, a row each."""

def answer_bytes(output: str, row_bytes: int) -> int:
    """The length of each answer."""
