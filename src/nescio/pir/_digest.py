"""The digest of a table's content: a hash of hashes, so that a change rehashes few rows."""

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .._arrays import ByteArray

CHUNK_ROWS = 4096
"""Rows per chunk. Each chunk is hashed by itself; the last one may be shorter."""

HASH_BYTES = 32

_THREAD_BYTES = 32 << 10
"""Bytes per chunk from which threads help: shorter hashes wait for the interpreter lock."""

_TASK_BYTES = 1 << 20
"""Bytes that a thread hashes at a time."""


def hash_chunks(rows: ByteArray, threads: int) -> ByteArray:
    """Computes the SHA-256 of each chunk: (chunks, 32). `rows` begins at the start of a chunk."""
    starts = range(0, len(rows), CHUNK_ROWS)
    chunk_bytes = CHUNK_ROWS * rows.shape[1]
    workers = threads or os.cpu_count() or 1
    if workers == 1 or not hashes_in_threads(rows.shape[1]) or rows.nbytes <= _TASK_BYTES:
        hashes = _hash_part(rows)
    else:
        step = max(1, _TASK_BYTES // chunk_bytes) * CHUNK_ROWS
        parts = [rows[first : first + step] for first in range(0, len(rows), step)]
        with ThreadPoolExecutor(workers) as pool:  # hashlib releases the interpreter lock
            hashes = b"".join(pool.map(_hash_part, parts))
    return np.frombuffer(hashes, np.uint8).reshape(len(starts), HASH_BYTES)


def hashes_in_threads(row_bytes: int) -> bool:
    """Tests if chunks of rows of `row_bytes` bytes are long enough to be hashed by threads."""
    return CHUNK_ROWS * row_bytes >= _THREAD_BYTES


def digest_of(hashes: ByteArray) -> str:
    """Computes the table's digest: the SHA-256 of its chunks' hashes, in hexadecimal."""
    return hashlib.sha256(np.ascontiguousarray(hashes).data).hexdigest()


def _hash_part(rows: ByteArray) -> bytes:
    starts = range(0, len(rows), CHUNK_ROWS)
    return b"".join(hashlib.sha256(rows[i : i + CHUNK_ROWS].data).digest() for i in starts)
