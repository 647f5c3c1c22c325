"""`nescio bench dpf`: key generation and full evaluation, beside the generator's own speed."""

import argparse
import math
from pathlib import Path

import numpy as np

from .. import _core
from .._arrays import ByteArray, as_count, as_threads
from ..dpf import MOST_DOMAIN
from ..errors import ArgumentError
from .timing import Case, format_table, median_seconds, write_json

_SECONDS = 0.3
_BATCH = 64
_RADIX_BITS = {"aes128": 1, "chacha20": 2}
_BITS = {"bit": 1, "u8": 8, "u32": 32, "u64": 64, "u128": 128}


def run(arguments: argparse.Namespace) -> int:
    """Runs every case, prints them as a table, and writes JSON if asked to."""
    cases = [
        _case(rows, output, generator, tier, arguments.threads)
        for generator in arguments.generator
        for output in arguments.output
        for tier in arguments.tier or [_core.active_tier()]
        for rows in arguments.rows
    ]
    header = ["generator", "output", "rows", "tier", "threads", "key bytes", "generate us"]
    header += ["evaluate us", "limit us", "x limit"]
    print(format_table(header, [_cells(case) for case in cases]))
    if arguments.json:
        write_json(Path(arguments.json), cases)
    return 0


def _case(rows: int, output: str, generator: str, tier: str, threads: int) -> Case:
    as_count(rows, "rows", 1, MOST_DOMAIN)
    pool = _core.ThreadPool(as_threads(threads))
    alphas = np.arange(_BATCH, dtype=np.uint64) * np.uint64(rows // _BATCH)
    ones = np.tile(np.array([[1, 0]], np.uint64), (_BATCH, 1))

    def generate() -> tuple[ByteArray, ByteArray]:
        return _core.generate(alphas, ones, rows, output, generator, None, tier)

    first, second = (_core.Keys(keys[:1]) for keys in generate())
    _check(first, second, pool, tier)
    evaluation = median_seconds(lambda: _core.evaluate_range(first, 0, rows, pool, tier), _SECONDS)
    return {
        "generator": generator,
        "output": output,
        "rows": rows,
        "tier": tier,
        "threads": pool.threads,
        "key_bytes": _core.key_bytes(rows, output, generator),
        "generate_microseconds": median_seconds(generate, _SECONDS) / _BATCH * 1e6,
        "evaluate_microseconds": evaluation * 1e6,
        "limit_microseconds": _limit(rows, output, generator, tier) / pool.threads * 1e6,
    }


def _check(first: _core.Keys, second: _core.Keys, pool: _core.ThreadPool, tier: str) -> None:
    """The two keys' shares add up to 1 at row 0 and to 0 elsewhere, or the figures mean nothing."""
    shares = [_core.evaluate_range(key, 0, key.domain, pool, tier)[0] for key in (first, second)]
    total = _core.combine(first.output, *shares)
    if total[0] != 1 or total[1:].any():
        raise ArgumentError("the shares do not add up: this is a fault of Nescio, please report it")


def _limit(rows: int, output: str, generator: str, tier: str) -> float:
    """Seconds that the generator alone needs for the tree, its data never leaving the cache."""
    leaves = math.ceil(rows * _BITS[output] / 512)
    expansions, level = 0, leaves
    while level > 1:
        level = math.ceil(level / (1 << _RADIX_BITS[generator]))
        expansions += level
    return leaves * _core.seconds_per_node(
        generator, True, tier
    ) + expansions * _core.seconds_per_node(generator, False, tier)


def _cells(case: Case) -> list[str]:
    evaluation, limit = case["evaluate_microseconds"], case["limit_microseconds"]
    assert isinstance(evaluation, float)
    assert isinstance(limit, float)
    return [
        str(case["generator"]),
        str(case["output"]),
        f"{case['rows']:,}",
        str(case["tier"]),
        str(case["threads"]),
        str(case["key_bytes"]),
        f"{case['generate_microseconds']:.2f}",
        f"{evaluation:,.1f}",
        f"{limit:,.1f}",
        f"{evaluation / limit:.2f}",
    ]
