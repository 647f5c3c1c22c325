"""The measurement of one case of answers on the CPU, with its lower bounds."""

from typing import NamedTuple

from .. import _core
from .._report import Case
from ..pir import Server
from .answers import answer_fields
from .limits import (
    expansion_seconds,
    issue_seconds,
    pass_seconds,
    product_issue_seconds,
    product_seconds,
)


class AnswerLimits(NamedTuple):
    """Seconds: a plain read of the tables, the kernels' inner loops, their bare instructions."""

    one_pass: float
    loops: float
    issue: float | None

    @property
    def machine(self) -> float:
        """The limit that the machine sets, whatever the kernels."""
        return max(self.one_pass, self.issue or 0)


def answer_limits(
    server: Server, tier: str, lookups: int, duration: float, *, verified: bool
) -> AnswerLimits:
    """Measures the limits of an answer from the records, and the hash tables if verified."""
    tables = len(server.params.layouts) if verified else 1
    parts = [_table_limits(server, number, tier, lookups, duration) for number in range(tables)]
    issues = [part.issue for part in parts if part.issue is not None]
    return AnswerLimits(
        sum(part.one_pass for part in parts),
        sum(part.loops for part in parts),
        sum(issues) if len(issues) == tables else None,
    )


def _table_limits(
    server: Server, number: int, tier: str, lookups: int, duration: float
) -> AnswerLimits:
    """Measures the limits of an answer from the records (0) or from a hash table."""
    params, pool = server.params, _core.ThreadPool(server.threads)
    bins, width, output = params.layouts[number]
    with server.table.reading() as state:
        one_pass = pass_seconds(state.table(number), pool, duration / 2)
    loops, issue = 0.0, 0.0
    for group in bins:
        kind = (group.rows, output, params.generator, tier)
        keys, size = lookups * group.keys, _core.table_bytes([group], width, output)
        loops += group.bins * keys * expansion_seconds(*kind)
        loops += product_seconds(size, keys, output, tier)
        tree, product = issue_seconds(*kind), product_issue_seconds(size, keys, output, tier)
        if tree is None or product is None:
            issue = float("nan")
        else:
            issue += group.bins * keys * tree + product
    known = issue == issue  # noqa: PLR0124 - not NaN
    return AnswerLimits(one_pass, loops / server.threads, issue / server.threads if known else None)


def cpu_fields(
    server: Server,
    lookups: int,
    seconds: float,
    limits: AnswerLimits,
    peak: int,
    *,
    verified: bool,
) -> Case:
    """Returns the fields of lookups answered in `seconds`, with a peak of memory in bytes."""
    least = max(limits.one_pass, limits.loops)
    return {
        **answer_fields(server, lookups, seconds, least, peak, verified=verified),
        "device": "cpu",
        "pass_milliseconds": limits.one_pass * 1e3,
        "compute_milliseconds": limits.loops * 1e3,
        "issue_milliseconds": None if limits.issue is None else limits.issue * 1e3,
        "times_machine": None if limits.issue is None else seconds / limits.machine,
    }
