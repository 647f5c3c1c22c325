"""Simulated runs with known participation, and the success of the attack on them."""

import time
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._arrays import as_count
from ...errors import ArgumentError
from .._arrays import IntArray
from .._attack.options import Options, combined
from .._certify.result import Result
from .._disaggregate import solve
from .._log.record import Log
from .defenses import Defense

__all__ = ["Outcome", "Run", "Setting", "attack_simulated", "simulate"]

FloatArray = npt.NDArray[np.float64]

_COMMON = 1.0
"""Size of the part of a first update that all users share, relative to their individual part."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The setting of a simulated run.

    `participation`: probability that a user takes part in a round. `granularity`: rounds per window
    of counts. `noise`: of each update between rounds, relative to its size; `directions`: the
    number of directions of that noise, as in training, 0 for all. `dimensions`: of an update; 0 for
    4096, or four times the users if that is more. `step`: how far the model moves towards the
    users' optimum in each round, 0 for a fixed model. Raises ArgumentError if a value is out of
    range.
    """

    users: int = 64
    rounds: int = 128
    participation: float = 0.1
    granularity: int = 10
    noise: float = 0.0
    directions: int = 0
    dimensions: int = 0
    step: float = 0.0
    defense: Defense = field(default_factory=Defense)

    def __post_init__(self) -> None:
        as_count(self.users, "users", 2, 1 << 14)
        as_count(self.rounds, "rounds", 2, 1 << 14)
        as_count(self.granularity, "granularity", 1, 1 << 14)
        as_count(self.dimensions, "dimensions", 0, 1 << 24)
        as_count(self.directions, "directions", 0, 1 << 16)
        if not 0 < self.participation < 1:
            raise ArgumentError(
                f"participation: found {self.participation}, expected between 0 and 1"
            )
        if not 0 <= self.noise <= 1e6:
            raise ArgumentError(f"noise: found {self.noise}, expected 0 or more")
        if not 0 <= self.step <= 1:
            raise ArgumentError(f"step: found {self.step}, expected 0 to 1")


@dataclass(frozen=True, eq=False, slots=True)
class Run:
    """A simulated log, and the truth: participation (rounds, users), updates (users, d)."""

    log: Log
    participation: npt.NDArray[np.uint8]
    updates: FloatArray


@dataclass(frozen=True, slots=True)
class Outcome:
    """The success of the attack on a run, as fractions of the users who took part.

    `recovered`: users with the right column, which no other user shares. `unique`: those among them
    with a unique certificate. `wrong`: users with a unique certificate for a wrong column. `error`:
    median relative error of the recovered users' updates, or None.
    """

    recovered: float
    unique: float
    wrong: float
    error: float | None
    seconds: float


def simulate(setting: Setting, seed: int = 0) -> Run:
    """Simulates a run of linear FedAvg: sums of updates, counts by window, participants.

    Without `step`, update k is a row of independent normal entries, as in thesis section 6.4.1.
    With it, each user has its own optimum w_k and sends w_k - w from the model w, which moves by
    `step` times the mean update each round. The part of the updates that all users share then
    changes from round to round and shrinks. Raises ArgumentError if such a run cannot be audited.
    """
    rng = np.random.default_rng(seed)
    users, rounds = setting.users, setting.rounds
    columns = _participation(setting, rng)
    participants = columns.sum(axis=1, dtype=np.int64)
    dimensions = setting.dimensions or max(4 * users, 4096)
    updates = rng.standard_normal((users, dimensions))
    sums = columns @ updates
    if setting.step:
        common = _common(updates, columns, setting.step, rng)
        sums += participants[:, None] * common
    own, added = setting.noise**2 * participants, setting.defense.noise(participants) ** 2
    if setting.directions and own.any():
        sums += np.sqrt(own)[:, None] * _in_directions(rounds, dimensions, setting.directions, rng)
        own = np.zeros(rounds)
    if (own + added).any():
        sums += np.sqrt(own + added)[:, None] * rng.standard_normal((rounds, dimensions))
    windows, counts = _counted(columns, setting.granularity)
    lengths = np.array([stop - start for start, stop in windows])
    kept, error = setting.defense.counts(counts, lengths, rng)
    if kept is None:
        windows = ()
    log = Log(sums, users, windows, kept, participants, error)
    return Run(log, columns, updates)


def _in_directions(
    rounds: int, dimensions: int, directions: int, rng: np.random.Generator
) -> FloatArray:
    """(rounds, d): noise of variance 1 on average in a random subspace."""
    across = np.linalg.qr(rng.standard_normal((dimensions, min(directions, dimensions))))[0]
    inside = rng.standard_normal((rounds, across.shape[1]))
    return np.asarray(inside @ across.T * np.sqrt(dimensions / across.shape[1]))


def _participation(setting: Setting, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """(rounds, users): random participation; absent users are redrawn up to 100 times."""
    group = setting.defense.take_part(setting.users)
    groups = int(group[-1]) + 1
    columns = rng.random((setting.rounds, groups)) < setting.participation
    for _ in range(100):
        never = ~columns.any(axis=0)
        if not never.any():
            break
        columns[:, never] = rng.random((setting.rounds, int(never.sum()))) < setting.participation
    return columns[:, group].astype(np.uint8)


def _common(
    updates: FloatArray, columns: npt.NDArray[np.uint8], step: float, rng: np.random.Generator
) -> FloatArray:
    """(rounds, d): the part of each update that depends on the model: from the model to the origin.

    User k's optimum is updates[k], around the origin; the model starts outside.
    """
    model = -_COMMON * rng.standard_normal(updates.shape[1])
    moved = np.zeros((len(columns), updates.shape[1]))
    for t, present in enumerate(columns.astype(np.bool_)):
        moved[t] = -model
        if present.any():
            model = model + step * (updates[present].mean(axis=0) - model)
    return moved


def _counted(
    columns: npt.NDArray[np.uint8], granularity: int
) -> tuple[tuple[tuple[int, int], ...], IntArray]:
    rounds = len(columns)
    windows = tuple((t, min(t + granularity, rounds)) for t in range(0, rounds, granularity))
    counts = [columns[start:stop].sum(axis=0, dtype=np.int64) for start, stop in windows]
    return windows, np.stack(counts, axis=1)


def attack_simulated(
    setting: Setting,
    seed: int = 0,
    *,
    options: Options | None = None,
    **named: Any,  # noqa: ANN401 - the fields of Options
) -> Outcome:
    """Simulates a run and attacks it, with `options` or fields of Options as keywords.

    `seed` is that of the run and of the attack. Raises ArgumentError if the run cannot be attacked,
    for example because it has fewer rounds than users.
    """
    run = simulate(setting, seed)
    start = time.monotonic()
    result = solve(run.log, combined(options, named), seed=seed)
    return _judge(run, result, time.monotonic() - start)


def _judge(run: Run, result: Result, seconds: float) -> Outcome:
    truth = run.participation
    active = truth.any(axis=0)
    match = _matches(truth, result)
    right = match >= 0
    twin = _twins(truth)
    recovered = active & right & ~twin & result.found[match]
    unique = result.unique
    claimed = unique & result.participation.any(axis=0)
    if result.labelled:
        wrong = claimed & ~right
    else:
        known = {column.tobytes() for column in truth.T.copy()}
        wrong = claimed & [c.tobytes() not in known for c in result.participation.T.copy()]
    total = max(int(active.sum()), 1)
    return Outcome(
        float(recovered.sum()) / total,
        float((recovered & unique[match]).sum()) / total,
        float(wrong.sum()) / total,
        _error(run, result, recovered, match),
        seconds,
    )


def _matches(truth: npt.NDArray[np.uint8], result: Result) -> IntArray:
    """(users,): the number of the result's column that is each user's own, or -1."""
    found = result.participation
    if result.labelled:
        return np.where((found == truth).all(axis=0), np.arange(truth.shape[1]), -1)
    place = {column.tobytes(): i for i, column in enumerate(found.T.copy())}
    return np.array([place.get(column.tobytes(), -1) for column in truth.T.copy()])


def _twins(truth: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """(users,): True for users who share a column; only the sum of their updates is known."""
    _, place, times = np.unique(truth, axis=1, return_inverse=True, return_counts=True)
    return np.asarray(times[place.reshape(-1)] > 1)


def _error(
    run: Run, result: Result, recovered: npt.NDArray[np.bool_], match: IntArray
) -> float | None:
    if result.updates is None or not recovered.any():
        return None
    true = run.updates[recovered]
    off = result.updates[match[recovered]] - true
    return float(np.median(np.linalg.norm(off, axis=1) / np.linalg.norm(true, axis=1)))


def describe(setting: Setting) -> dict[str, object]:
    """Returns the setting for JSON."""
    fields = asdict(setting)
    del fields["defense"]
    return {**fields, "defence": str(setting.defense)}
