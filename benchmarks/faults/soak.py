"""`python -m benchmarks.faults soak`: updates and lookups for a long time, and memory."""

import argparse
import math
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nescio.bench.results import Results
from nescio.bench.timing import check_duration

from .scene import Scene
from .settings import Settings

_SAMPLES = 400
_BLOCKS = 20
_WARM_SHARE = 0.1
_LIMIT = 1.0  # MB an hour


class Slope(NamedTuple):
    """A slope and its standard error."""

    value: float
    error: float


def slope_of(seconds: Sequence[float], values: Sequence[float]) -> Slope:
    """Fits a line to the means of 20 blocks, because samples that follow each other are alike."""
    times = np.array([block.mean() for block in np.array_split(np.asarray(seconds), _BLOCKS)])
    means = np.array([block.mean() for block in np.array_split(np.asarray(values), _BLOCKS)])
    centered = times - times.mean()
    spread = float(centered @ centered)
    value = float(centered @ means) / spread
    rest = means - means.mean() - value * centered
    return Slope(value, math.sqrt(float(rest @ rest) / (_BLOCKS - 2) / spread))


def run(arguments: argparse.Namespace) -> int:
    """Runs the soak; 1 if memory grows, a row is wrong, or an update is lost."""
    check_duration(arguments.seconds)
    with (
        Results(arguments.json) as results,
        tempfile.TemporaryDirectory(prefix="nescio-soak-", ignore_cleanup_errors=True) as folder,
    ):
        settings = Settings(seconds=arguments.seconds)
        options = settings.options
        with Scene("soak", Path(folder), options=options, pause=1 / arguments.updates) as scene:
            times, memory = _sample(scene, arguments.seconds)
        slopes = _slopes(times, memory)
        outcome = scene.outcome
        for number, slope in enumerate(slopes):
            print(
                f"party {number}: {memory[0][number]:.1f} MB after the start, "
                f"{memory[-1][number]:.1f} MB at the end, slope {slope.value:+.2f} MB an hour, "
                f"standard error {slope.error:.2f}"
            )
            if slope.value - 2 * slope.error > _LIMIT:
                outcome.failed.append(f"party {number}: memory grows")
        print(
            f"{outcome.lookups:,} lookups, {outcome.updates:,} updates, {outcome.refused:,} "
            f"refused {outcome.saw}, {outcome.lost} lost, {outcome.wrong} wrong, longest outage "
            f"{outcome.outage:.2f} s"
        )
        print("\n".join([*outcome.failed, *outcome.tracebacks]))
        slopes_json = [slope._asdict() for slope in slopes]
        results.add({**outcome.to_dict(), "slopes": slopes_json, "times": times, "memory": memory})
    return 0 if outcome.good else 1


def _sample(scene: Scene, seconds: float) -> tuple[list[float], list[list[float]]]:
    """Samples the memory of both servers in MB."""
    begun = time.monotonic()
    times: list[float] = []
    memory: list[list[float]] = []
    while (now := time.monotonic() - begun) < seconds:
        times.append(now)
        memory.append([party.memory() / 1e6 for party in scene.parties])
        time.sleep(seconds / _SAMPLES)
    return times, memory


def _slopes(times: Sequence[float], memory: Sequence[Sequence[float]]) -> list[Slope]:
    """Returns each party's slope in MB an hour, after the warm-up."""
    first = int(len(times) * _WARM_SHARE)
    hours = [seconds / 3600 for seconds in times[first:]]
    return [slope_of(hours, [row[party] for row in memory[first:]]) for party in range(2)]
