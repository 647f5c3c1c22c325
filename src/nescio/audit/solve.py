"""From sums and counts to columns, updates and certificates: the whole attack, a step at a time."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from .._arrays import as_count
from ..errors import ArgumentError
from .judge import judge
from .problem import FloatArray, Log
from .projections import AffineSet, BinarySet
from .reflect import Columns, Search, reflect
from .result import Result
from .subspace import Subspace, column_space
from .updates import least_squares
from .windows import Batch, IntArray, agree, batches

__all__ = ["METHODS", "disaggregate", "solve"]

METHODS = ("auto", "reflect", "program", "lattice", "skewness")


def disaggregate(
    aggregates: object,
    windows: object = None,
    counts: object = None,
    users: int = 0,
    *,
    participants: object = None,
    count_error: int = 0,
    method: str = "auto",
    noise: float | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    threads: int = 0,
    updates: bool = True,
) -> Result:
    """Tells users apart from the sums of their updates.

    `aggregates`: float32 or float64 (rounds, dimensions), a sum for each round. `windows`: a list of
    (start, stop) rounds; `counts`: integers (users, windows), how often each user took part there,
    -1 where unknown, each at most `count_error` off; both None for an attack without counts.
    `users`: how many there are. `participants`: integers (rounds,), how many took part, or None.

    `method`: "auto", or one of METHODS by name. `noise`: the standard deviation of an entry of one
    user's update between rounds; 0 for none, None to find out. `time_limit`: seconds after which no
    further search begins; without it, the same seed gives the same result. `threads`: for integer
    programs, 0 for every processor (products of matrices take what the BLAS was told). `updates`:
    whether to compute them; without them memory does not grow with the dimensions.

    Raises ArgumentError, before any work, for what cannot be true or cannot be enough.
    Thesis chapter 6, Algorithm 4, with other solvers.
    """
    log = Log(aggregates, users, windows or (), counts, participants, count_error)  # type: ignore[arg-type]
    return solve(
        log,
        method=method,
        noise=noise,
        time_limit=time_limit,
        seed=seed,
        threads=threads,
        updates=updates,
    )


def solve(
    log: Log,
    *,
    method: str = "auto",
    noise: float | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    threads: int = 0,
    updates: bool = True,
) -> Result:
    """The same for a record that has been checked."""
    _check_options(log, method, noise, time_limit)
    seed = as_count(seed, "seed", 0, (1 << 63) - 1)
    clock = _Clock(time_limit)
    active = np.flatnonzero(~log.idle)
    with clock.step("space"):
        subspace = column_space(log, len(active), noise, seed)
    columns = np.zeros((log.users, log.rounds), np.uint8)
    with clock.step("reflect"):
        _by_reflection(log, subspace, active, columns, seed, clock.deadline)
    with clock.step("certificates"):
        certificates = judge(log, subspace, active, columns)
    with clock.step("updates"):
        found = np.array([c.found for c in certificates])
        solution, conditioning = least_squares(log, subspace, columns, found, wanted=updates)
    return Result(
        np.ascontiguousarray(columns.T),
        solution,
        tuple(certificates),
        conditioning,
        "reflect",
        clock.seconds,
    )


class _Clock:
    """Seconds by step, and when to stop looking."""

    def __init__(self, limit: float | None) -> None:
        self.deadline = float("inf") if limit is None else time.monotonic() + limit
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        begun = time.monotonic()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - begun


def _check_options(log: Log, method: str, noise: float | None, time_limit: float | None) -> None:
    if method not in METHODS:
        raise ArgumentError(f"method: found {method!r}, expected one of {', '.join(METHODS)}")
    if noise is not None and not 0 <= noise < float("inf"):
        raise ArgumentError(f"noise: found {noise}, expected a standard deviation, 0 or more")
    if time_limit is not None and not time_limit > 0:
        raise ArgumentError(f"time_limit: found {time_limit}, expected seconds, more than 0")
    if log.counts is None and method in ("reflect", "program"):
        raise ArgumentError(
            f"method {method} needs counts; without them, use auto, lattice or skewness"
        )


def _by_reflection(
    log: Log,
    subspace: Subspace,
    users: IntArray,
    columns: Columns,
    seed: int,
    deadline: float,
) -> None:
    """Writes into `columns` what relaxed-reflect-reflect finds for the users."""
    assert log.counts is not None
    basis = subspace.plain_basis()
    empty = ~log.aggregates.any(axis=1)
    rng = np.random.default_rng(seed)
    for batch in batches(log.windows, log.counts, log.count_error, users):
        affine, binary = AffineSet.of(basis, batch), BinarySet(batch, empty)
        found = reflect(
            subspace, affine, binary, _acceptor(log, batch), rng, Search(deadline=deadline)
        )
        columns[batch.users] = found.columns
        _separate_twins(log, subspace, batch, columns, rng, deadline, empty, basis)


def _acceptor(log: Log, batch: Batch, taken: Columns | None = None):  # type: ignore[no-untyped-def]  # noqa: ANN202
    """Columns that have their users' counts, and are not among those of the user that are taken."""
    assert log.counts is not None
    counts = log.counts[batch.users]

    def accept(columns: Columns, users: IntArray) -> FloatArray:
        good = agree(columns, log.windows, counts[users], log.count_error)
        if taken is not None:
            for i, column in enumerate(columns):
                good[i] &= not (taken == column).all(axis=1).any()
        return good

    return accept


def _separate_twins(
    log: Log,
    subspace: Subspace,
    batch: Batch,
    columns: Columns,
    rng: np.random.Generator,
    deadline: float,
    empty: FloatArray,
    basis: FloatArray,
) -> None:
    """Users with equal counts may have got one column between them: looks for the others."""
    assert log.counts is not None
    for _ in range(8):
        _, first = np.unique(columns[batch.users], axis=0, return_index=True)
        again = np.setdiff1d(np.arange(len(batch.users)), first)
        if not len(again) or time.monotonic() > deadline:
            return
        part = Batch(
            batch.users[again],
            batch.shared,
            batch.shared_counts[again],
            batch.apart,
            batch.least[again],
            batch.most[again],
        )
        found = reflect(
            subspace,
            AffineSet.of(basis, part),
            BinarySet(part, empty),
            _acceptor(log, part, columns[batch.users[first]]),
            rng,
            Search(iterations=300, starts=1, deadline=deadline),
        )
        columns[part.users[found.fits]] = found.columns[found.fits]
