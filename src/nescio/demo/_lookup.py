"""The private lookup of a sentence's words, with the time of each part."""

import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..errors import ArgumentError
from ..pir import Client
from ..service import RemoteTable
from ..service._client._attempt import Reply
from ._data import Vocabulary
from ._model import TopicModel
from ._servers import TABLE

# The number of lookups is padded to a multiple of this with random rows, so that the servers learn
# less about the length of the sentence.
SLOTS = 8
_MAX_WORDS = 1000


@dataclass(frozen=True)
class Result:
    """The words, their topics, the keys that each server saw, and the costs."""

    sentence: str
    words: list[str]
    unknown_words: list[str]
    topics: list[tuple[str, float]]
    verified: bool
    digest: str
    rows: int
    row_bytes: int
    lookups: int
    keys: tuple[list[str], list[str]]
    milliseconds: dict[str, float]
    bytes_up: int
    bytes_down: int
    bytes_table: int


def look_up(vocabulary: Vocabulary, sentence: str, urls: Sequence[str]) -> Result:
    """Looks up a sentence's words on both servers and checks them against the plaintext table."""
    tokens = re.findall(r"[^\W_]+(?:['-][^\W_]+)*", sentence.lower())
    words = [word for word in tokens if word in vocabulary.rows]
    if not words:
        raise ArgumentError(f"sentence: no word of {sentence!r} is in the table")
    if len(words) > _MAX_WORDS:
        raise ArgumentError(f"sentence: found {len(words)} words, expected at most {_MAX_WORDS}")
    wanted = np.array([vocabulary.rows[word] for word in words])
    padding = [secrets.randbelow(len(vocabulary.vectors)) for _ in range(-len(words) % SLOTS)]
    indices = np.concatenate([wanted, np.array(padding, wanted.dtype)])
    # The demonstration chooses the generator itself.
    with RemoteTable(urls, TABLE, insecure_generator=True) as remote:
        client = remote.client
        clock = [time.perf_counter()]
        query = client.query(indices)
        clock.append(time.perf_counter())
        replies = remote.exchange(query)
        clock.append(time.perf_counter())
        vectors = client.decode(query, *(reply.body for reply in replies))
        clock.append(time.perf_counter())
    found = vectors[: len(words)]
    return Result(
        sentence=sentence,
        words=words,
        unknown_words=[word for word in tokens if word not in vocabulary.rows],
        topics=TopicModel(vocabulary).nearest(found, wanted),
        verified=vectors.tobytes() == vocabulary.vectors[indices].tobytes(),  # NaNs too
        digest=client.params.digest,
        rows=client.params.rows,
        row_bytes=client.params.row_bytes,
        lookups=len(indices),
        keys=(_hex_keys(query.keys[0], client), _hex_keys(query.keys[1], client)),
        milliseconds=_milliseconds(clock, replies),
        bytes_up=sum(map(len, query.keys)),
        bytes_down=sum(len(reply.body) for reply in replies),
        bytes_table=vocabulary.vectors.nbytes,
    )


def _hex_keys(message: bytes, client: Client) -> list[str]:
    """Formats the keys of a query, all that a server sees, in hexadecimal."""
    size = client.query_bytes
    first = len(message) % size
    return [message[i : i + size].hex() for i in range(first, len(message), size)]


def _milliseconds(clock: list[float], replies: Sequence[Reply]) -> dict[str, float]:
    """Computes the time of each part. The network's is the rest after the slower server."""
    generated, exchanged, decoded = (1000 * (b - a) for a, b in pairwise(clock))
    servers = [_server_time(reply) for reply in replies]
    times = {
        "key_generation": generated,
        "server_0": servers[0],
        "server_1": servers[1],
        "network": exchanged - max(servers),
        "decoding": decoded,
        "total": generated + exchanged + decoded,
    }
    return {name: round(value, 3) for name, value in times.items()}


def _server_time(reply: Reply) -> float:
    match = re.search(r"dur=([0-9.]+)", reply.headers.get("Server-Timing", ""))
    return float(match[1]) if match else 0.0
