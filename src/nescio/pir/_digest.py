"""The digest of a table's content: a hash of hashes, so that a change rehashes few rows."""

import hashlib
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .._arrays import ByteArray

CHUNK_ROWS = 4096
"""Rows per chunk. Each chunk is hashed by itself; the last one may be shorter."""

HASH_BYTES = 32


def hash_chunks(rows: ByteArray, threads: int) -> ByteArray:
    """Computes the SHA-256 of each chunk: (chunks, 32). `rows` begins at the start of a chunk."""
    starts = range(0, len(rows), CHUNK_ROWS)
    chunks = (rows[first : first + CHUNK_ROWS].data for first in starts)
    hashes = b"".join(_hash_all(chunks, threads))
    return np.frombuffer(hashes, np.uint8).reshape(len(starts), HASH_BYTES)


def digest_of(hashes: ByteArray) -> str:
    """Computes the table's digest: the SHA-256 of its chunks' hashes, in hexadecimal."""
    return hashlib.sha256(np.ascontiguousarray(hashes).data).hexdigest()


def _hash_all(chunks: Iterable[memoryview], threads: int) -> list[bytes]:
    def hash_one(chunk: memoryview) -> bytes:
        return hashlib.sha256(chunk).digest()

    workers = threads or os.cpu_count() or 1
    if workers == 1:
        return [hash_one(chunk) for chunk in chunks]
    with ThreadPoolExecutor(workers) as pool:  # hashlib releases the interpreter lock
        return list(pool.map(hash_one, chunks))
