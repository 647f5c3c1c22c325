"""`nescio bench dpf`: key generation and full evaluation, compared with the generator alone."""

import argparse
from itertools import product

import numpy as np

from .. import _core
from .._arrays import ByteArray, as_count, as_threads
from .._report import Case, Report
from .._timing import median_seconds
from ..dpf import MAX_DOMAIN, Generator, Output
from .limits import expansion_seconds
from .results import Results
from .timing import WrongResultError

_SECONDS = 0.3
_BATCH = 64
_COLUMNS = [
    ("generator", "generator", ">20"),
    ("output", "output", ""),
    ("rows", "rows", "9,d"),
    ("tier", "tier", "8"),
    ("threads", "threads", "d"),
    ("key_bytes", "key B", "d"),
    ("generate_microseconds", "generate us", ".2f"),
    ("evaluate_microseconds", "evaluate us", ",.1f"),
    ("limit_microseconds", "limit us", ",.1f"),
    ("times_limit", "x limit", ".2f"),
]


def run(arguments: argparse.Namespace) -> int:
    """Measures every case, prints each, and writes JSON if requested."""
    for rows in arguments.rows:
        as_count(rows, "rows", 1, MAX_DOMAIN)
    pool = _core.ThreadPool(as_threads(arguments.threads))
    with Results(arguments.json) as results:
        report = Report(_COLUMNS)
        for generator, output, tier, rows in product(
            arguments.generator,
            arguments.output,
            arguments.tier or [_core.active_tier()],
            arguments.rows,
        ):
            case = _case(rows, output, generator, tier, pool)
            report.add(case)
            results.add(case)
    return 0


def _case(
    rows: int, output: Output, generator: Generator, tier: str, pool: _core.ThreadPool
) -> Case:
    alphas = np.arange(_BATCH, dtype=np.uint64) * np.uint64(rows // _BATCH)
    ones = np.tile(np.array([[1, 0]], np.uint64), (_BATCH, 1))

    def generate() -> tuple[ByteArray, ByteArray]:
        return _core.generate(alphas, ones, rows, output, generator, None, tier)

    first, second = (_core.Keys(keys[:1]) for keys in generate())
    _check(first, second, pool, tier)
    evaluation = median_seconds(lambda: _core.evaluate_range(first, 0, rows, pool, tier), _SECONDS)
    limit = expansion_seconds(rows, output, generator, tier) / pool.threads
    return {
        "generator": generator,
        "output": output,
        "rows": rows,
        "tier": tier,
        "threads": pool.threads,
        "key_bytes": _core.key_bytes(rows, output, generator),
        "generate_microseconds": median_seconds(generate, _SECONDS) / _BATCH * 1e6,
        "evaluate_microseconds": evaluation * 1e6,
        "limit_microseconds": limit * 1e6,
        "times_limit": evaluation / limit,
    }


def _check(first: _core.Keys, second: _core.Keys, pool: _core.ThreadPool, tier: str) -> None:
    """Raises WrongResultError unless the shares add up to 1 at row 0 and to 0 elsewhere."""
    shares = [_core.evaluate_range(key, 0, key.domain, pool, tier)[0] for key in (first, second)]
    total = _core.combine(first.output, *shares)
    if total[0] != 1 or total[1:].any():
        raise WrongResultError("the shares do not add up")
