"""The feed-forward half of an encoder block with random weights, run by two parties."""

import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.infer.party import Parties, Run
from benchmarks.infer.party import run as run_parties
from nescio._report import Case
from nescio.errors import NescioError
from nescio.mpc import Step
from nescio.mpc._maps import Convolution, Floats
from nescio.mpc._plans.costs import costs
from nescio.mpc._plans.floats import FloatLayer, FloatTerm, Function
from nescio.mpc._plans.floats import run as run_floats
from nescio.mpc._plans.quantize import Quantized, quantize

__all__ = ["PHASES", "feed_forward", "measure"]

_CALIBRATION = 16
PHASES = (
    ("tokens", "tokens", "6"),
    ("phase", "phase", ">9"),
    ("bytes", "bytes", "12,"),
    ("computed", "computed", "12,"),
    ("rounds", "rounds", "6"),
    ("client_cpu_ms", "client CPU ms", "13.1f"),
    ("server_cpu_ms", "server CPU ms", "13.1f"),
    ("seconds", "s", "8.3f"),
)
_MOST_ERROR = 0.1  # mean difference to the float model, in standard deviations


class Half(NamedTuple):
    """A network of integers, its layers of floats, and the inputs of its calibration."""

    quantized: Quantized
    layers: list[FloatLayer]
    inputs: Floats


def feed_forward(width: int, hidden: int, tokens: int, bits: int = 8) -> Half:
    """Returns x + W2 gelu(W1 x) of tokens (width, 1, tokens)."""
    random = np.random.default_rng(1)
    inputs = random.normal(size=(_CALIBRATION, width, 1, tokens))
    layers = _layers(random, (width, 1, tokens), hidden)
    return Half(quantize(layers, inputs, bits=bits), layers, inputs)


def _layers(random: np.random.Generator, shape: tuple[int, ...], hidden: int) -> list[FloatLayer]:
    width, _, tokens = shape
    up = _term(random.normal(size=(hidden, width)) / np.sqrt(width), 0, tokens)
    down = _term(random.normal(size=(width, hidden)) / np.sqrt(hidden), 1, tokens)
    same = _term(np.eye(width), 0, tokens)
    gelu = Function("gelu", _gelu)
    return [FloatLayer((up,), np.zeros(hidden), gelu), FloatLayer((down, same), np.zeros(width))]


def _term(weights: Floats, source: int, tokens: int) -> FloatTerm:
    """Returns a matrix (outputs, inputs) that multiplies each token, as a convolution of 1 x 1."""
    kernel = weights[:, :, None, None]
    shape = (weights.shape[1], 1, tokens)
    return FloatTerm(source, Convolution(np.zeros(kernel.shape, np.int64), shape), kernel)


def _gelu(values: Floats) -> Floats:
    inner = np.sqrt(2 / np.pi) * (values + 0.044715 * values**3)
    found: Floats = values / 2 * (1 + np.tanh(inner))
    return found


def measure(width: int, hidden: int, tokens: int, count: int) -> Iterator[Case]:
    """Prepares and runs inferences in two processes of one thread; yields the means of each phase.

    Raises NescioError if the outputs are not near those of floats.
    """
    quantized, layers, inputs = feed_forward(width, hidden, tokens)
    chosen = inputs[np.arange(count) % len(inputs)]
    with tempfile.TemporaryDirectory() as folder:
        parties = Parties(quantized.network, Path(folder, "client"), Path(folder, "server"))
        prepared = run_parties(parties, count)
        found = run_parties(parties, list(quantized.encode(chosen)))
    *_, expected = run_floats(layers, chosen)
    error = np.abs(quantized.decode(np.array(found.outputs)) - expected).mean() / expected.std()
    if error > _MOST_ERROR:
        raise NescioError(f"{tokens} tokens: outputs differ from floats by {error:.2f} deviations")
    rows = costs(quantized.network.public)
    linear, tables, online = (
        sum(getattr(row, name) for row in rows)
        for name in ("linear_bytes", "table_bytes", "online_bytes")
    )
    own = {"keys": 0, "products": linear, "tables": tables, "places": 0, "store": 0}
    for mine, theirs in zip(prepared.client[0], prepared.server[0], strict=True):
        if mine.phase in own:
            once = 1 if mine.phase == "keys" else count
            yield _case(mine.phase, [mine], [theirs], once, own[mine.phase])
    last = found.client[-1], found.server[-1]
    yield {**_case("online", *last, 1, online), **_medians(found), "error": float(error)}


def _case(
    phase: str, mine: Sequence[Step], theirs: Sequence[Step], count: int, computed: int
) -> Case:
    """Returns the means of a phase: bytes with the headers of frames, and the computed ones."""
    both = (step.counts.sent_bytes + step.counts.received_bytes for step in mine)
    return {
        "phase": phase,
        "bytes": sum(both) // count,
        "computed": computed,
        "rounds": sum(step.counts.rounds for step in mine),
        **_times(mine, theirs, count),
    }


def _times(mine: Sequence[Step], theirs: Sequence[Step], count: int = 1) -> dict[str, float]:
    return {
        "client_cpu_ms": 1e3 * sum(step.cpu_seconds for step in mine) / count,
        "server_cpu_ms": 1e3 * sum(step.cpu_seconds for step in theirs) / count,
        "seconds": sum(step.seconds for step in mine) / count,
    }


def _medians(found: Run) -> Case:
    """Returns the median times of inferences; the first one has cold caches."""
    pairs = list(zip(found.client, found.server, strict=True))
    times = [_times(*pair) for pair in pairs[min(1, len(pairs) - 1) :]]
    return {name: statistics.median(own[name] for own in times) for name in times[0]}
