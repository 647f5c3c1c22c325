"""Failure probability of exact mode: bins by the bound, and trials beside it."""

import argparse
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nescio import _core
from nescio._arrays import as_count, as_threads
from nescio._report import Case, Report
from nescio.bench.results import Results
from nescio.pir.batch import bins_for, failure_probability
from nescio.pir.batch._permutation import Permutation

_FAILURE = 2.0**-40
_FEW = (1.2, 1.3, 1.5)
_TRIED = (2.0**-5, 2.0**-8, 2.0**-11)
_ACCESSES = 1 << 20  # of the trials that are in memory at a time
_MAX_TRIALS = 1 << 40
_SEED = 2023
_ROWS = 1 << 20

_BINS = [
    ("lookups", "lookups", "d"),
    ("three", "3 independent", "d"),
    ("four", "4 independent", "d"),
    ("permutations", "4 permutations", "d"),
    ("five", "5 permutations", "d"),
]
_TRIALS = [
    ("lookups", "lookups", "d"),
    ("hashes", "hashes", "d"),
    ("kind", "kind", ">12"),
    ("bins", "bins", "d"),
    ("bins_per_lookup", "a lookup", ".2f"),
    ("trials", "trials", "9,d"),
    ("failures", "failures", "d"),
    ("log2_tried", "log2 tried", ".1f"),
    ("log2_bound", "log2 bound", ".1f"),
]
_NOTES = """\
Tried: share of the inferences of random rows that a maximum matching could not place. Permutations
are those of layouts, for a table of 2^20 rows, with a new seed every 10^4 to 10^5 trials. Bound:
union bound over violators of Hall's condition, loose where few bins make large ones likely."""


class Hashes(NamedTuple):
    """The candidates of a row: `hashes` bins of all, or one of each of as many equal parts."""

    hashes: int
    bins: int
    independent: bool

    def draw(self, count: int, random: np.random.Generator) -> npt.NDArray[np.int32]:
        """Draws the candidates of rows, int32 (count, hashes)."""
        if not self.independent:
            return self._permuted(count, random)
        found = random.integers(0, self.bins, (count, self.hashes), np.int32)
        while len(again := np.flatnonzero((np.diff(np.sort(found)) == 0).any(axis=1))):
            found[again] = random.integers(0, self.bins, (len(again), self.hashes), np.int32)
        return found

    def _permuted(self, count: int, random: np.random.Generator) -> npt.NDArray[np.int32]:
        """Draws rows of a table, and a seed of the permutations that layouts have."""
        part, seed = self.bins // self.hashes, int(random.integers(1 << 32))
        rows = random.integers(0, _ROWS, count, np.uint64)
        columns = [
            Permutation(_ROWS, seed, number + 1)(rows) % np.uint64(part) + np.uint64(number * part)
            for number in range(self.hashes)
        ]
        return np.stack(columns, axis=1).astype(np.int32)


def run(arguments: argparse.Namespace) -> int:
    """Prints the bins of the bound and the trials, and writes JSON if requested."""
    trials = as_count(arguments.trials, "trials", 1, _MAX_TRIALS)
    pool = _core.ThreadPool(as_threads(arguments.threads))
    with Results(arguments.json) as results:
        print("bins for at most one failure in 2^40 inferences, by the bound")
        report = Report(_BINS)
        for lookups in arguments.lookups:
            report.add(_fewest(lookups))
        print()
        report = Report(_TRIALS)
        for lookups in arguments.lookups:
            for hashes in _tried(lookups):
                case = _try(lookups, hashes, trials, pool)
                report.add(case)
                results.add(case)
    print(_NOTES)
    return 0


def _fewest(lookups: int) -> Case:
    return {
        "lookups": lookups,
        "three": bins_for(lookups, 3, _FAILURE, independent=True),
        "four": bins_for(lookups, 4, _FAILURE, independent=True),
        "permutations": bins_for(lookups, 4, _FAILURE),
        "five": bins_for(lookups, 5, _FAILURE),
    }


def _tried(lookups: int) -> list[Hashes]:
    """Lists hashes that fail often enough for trials."""
    few = [Hashes(3, math.ceil(factor * lookups), independent=True) for factor in _FEW]
    fewer = [
        Hashes(4, bins_for(lookups, 4, failure, independent=independent), independent)
        for independent in (True, False)
        for failure in _TRIED
    ]
    return list(dict.fromkeys(few + fewer))


def _try(lookups: int, hashes: Hashes, trials: int, pool: _core.ThreadPool) -> Case:
    failures = _failures(lookups, hashes, trials, pool)
    bound = failure_probability(lookups, hashes.bins, hashes.hashes, independent=hashes.independent)
    return {
        "lookups": lookups,
        "hashes": hashes.hashes,
        "kind": "independent" if hashes.independent else "permutations",
        "bins": hashes.bins,
        "bins_per_lookup": hashes.bins / lookups,
        "trials": trials,
        "failures": failures,
        "tried": failures / trials,
        "log2_tried": math.log2(failures / trials) if failures else None,
        "bound": bound,
        "log2_bound": math.log2(bound) if bound else None,
    }


def _failures(lookups: int, hashes: Hashes, trials: int, pool: _core.ThreadPool) -> int:
    """Counts the inferences of random rows that leave a row without a bin."""
    random = np.random.default_rng(_SEED)
    capacity = np.ones(hashes.bins, np.int32)
    failures, left = 0, trials
    while left:
        sets = min(left, max(1, _ACCESSES // lookups))
        offsets = np.arange(sets + 1, dtype=np.int64) * lookups
        candidates = hashes.draw(sets * lookups, random)
        alone = np.zeros((sets * lookups, 0), np.int32)
        choices = _core.assign(offsets, candidates, capacity, alone, pool)
        failures += int((choices.reshape(sets, lookups) < 0).any(axis=1).sum())
        left -= sets
    return failures
