"""One encoder block of a transformer: bytes and CPU time by step, and alternatives for softmax.

The steps without attention run today (`encoder`). The others are computed from the costs of tables,
of products of encrypted numbers, and of OTs; docs/private-transformer.md explains them.
"""

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks._main import chosen
from benchmarks.infer.encoder import PHASES, measure
from nescio._report import Case, Report, check_writable
from nescio.errors import ArgumentError
from nescio.mpc import Activation
from nescio.mpc._encoding import Encoding
from nescio.mpc._layout import linear
from nescio.mpc._plans.costs import online_bits, table_bytes

__all__ = [
    "MODELS",
    "Model",
    "alternatives",
    "block",
    "log_error",
    "run",
    "scaling_bytes",
    "triple",
]

BITS = 8  # of tokens, queries, keys, values and hidden numbers
SOFTMAX_BITS = 10  # of the tables of softmax, and of probabilities
SCALE_BITS = 10  # of an inverse root
SHIFT = 14  # bits that a lookup drops, as in compiled plans
_RING_BITS = 32
_TRANSFER_BYTES = 0.13

_TABLE_US = {8: 0.84, 10: 1.34, 12: 2.01}  # CPU of a party: docs/performance.md
_TRANSFER_US = _TABLE_US[8] / 23  # a table of 8 bits has 23 transfers
_PRODUCT_US = 10.0  # CPU of both parties, a product of polynomials in large layers: `--measure`
_FRESH_US = 84.0  # the same of a small layer, with new weights: `linear --layer fc512-1000`


class Model(NamedTuple):
    """The sizes of an encoder."""

    name: str
    blocks: int
    width: int
    heads: int
    hidden: int


MODELS = (Model("MiniLM-L6", 6, 384, 12, 1536), Model("BERT-base", 12, 768, 12, 3072))


class Step(NamedTuple):
    """The costs of a step for one input: bytes of both directions, CPU of both parties."""

    step: str
    lookups: float = 0
    rounds: float = 0
    online_bytes: float = 0
    table_bytes: float = 0
    product_bytes: float = 0
    cpu_ms: float = 0

    def plus(self, other: "Step") -> "Step":
        """Adds the costs of a step that comes with this one."""
        sums = (own + more for own, more in zip(self[1:], other[1:], strict=True))
        return Step(self.step, *sums)


_COLUMNS = (
    ("model", "model", ">9"),
    ("step", "step", ">13"),
    ("lookups", "lookups", "9,"),
    ("rounds", "rounds", "6"),
    ("online_mb", "online MB", "9.2f"),
    ("table_mb", "tables MB", "9.1f"),
    ("product_mb", "products MB", "11.1f"),
    ("cpu_ms", "CPU ms", "8,.0f"),
)
_ALTERNATIVES = (
    ("part", "part", ">11"),
    ("way", "way", ">43"),
    ("lookups", "lookups", "7"),
    ("online_bytes", "online B", "8.1f"),
    ("offline_bytes", "offline B", "9.1f"),
)


# ---- parts ---------------------------------------------------------------------------------------


def tables(lookups: int, bits: int, outputs: int, rounds: int = 1, *, late: bool = False) -> Step:
    """Returns the costs of lookups; after a product of secrets, places are sent `late`: online."""
    activation = Activation(np.zeros_like, bits=bits, outputs=outputs)
    each = online_bits(activation) + late * bits
    offline = lookups * (table_bytes(bits, outputs) - late * bits / 8)
    cpu = 2e-3 * lookups * _TABLE_US[bits]
    return Step("", lookups, rounds, lookups * each / 8, offline, 0, cpu)


def product(
    inputs: int, outputs: int, tokens: int, bits: int, each_us: float = _PRODUCT_US
) -> Step:
    """Returns the offline costs of the server's matrix times the client's mask, modulo 2^bits."""
    encoding = Encoding.of(linear(inputs, outputs, tokens), bits)
    return Step("", product_bytes=encoding.bytes, cpu_ms=1e-3 * encoding.products * each_us)


def triple(rows: int, inner: int, columns: int, bits: int) -> Step:
    """Returns the offline costs of shares of A, B and A B modulo 2^bits, A (rows, inner) uniform.

    A B is (A0 + A1) (B0 + B1). The client encrypts A1 and B1, and the server multiplies them by B0
    and A0. Its factors are new each time, so that their transforms count too.
    """
    first = product(inner, columns, rows, bits, _FRESH_US)
    return first.plus(product(inner, rows, columns, bits, _FRESH_US))


def opening(numbers: int, bits: int, *, after_lookup: bool = True, rounds: int = 0) -> Step:
    """Returns the costs of numbers that both parties learn: the server's shares, modulo 2^bits.

    The client's shares are in the answers of the lookups before it, if there are any.
    """
    return Step("", 0, rounds, numbers * bits / 8 * (1 if after_lookup else 2))


def scaling_transfers(scale_bits: int) -> int:
    """Counts the OTs of a number that scales others: two for each of its shared bits."""
    return 2 * scale_bits


def scaling_bytes(scale_bits: int, bits: int, shared: int = 1) -> float:
    """Returns the offline bytes of a scaled number modulo 2^bits; `shared` have one scale.

    Bit j of the scale has the weight 2^j, so that its two messages have bits - j bits.
    """
    messages = 2 * sum(bits - place for place in range(scale_bits))
    return messages / 8 + _TRANSFER_BYTES * scaling_transfers(scale_bits) / shared


def scaling(numbers: int, shared: int) -> Step:
    """Returns the costs of numbers that are opened, and multiplied by the bits of a lookup."""
    offline = numbers * scaling_bytes(SCALE_BITS, _RING_BITS, shared)
    cpu = 2e-3 * numbers * scaling_transfers(SCALE_BITS) * _TRANSFER_US
    return opening(numbers, _RING_BITS, after_lookup=False).plus(
        Step("", product_bytes=offline, cpu_ms=cpu)
    )


# ---- a block -------------------------------------------------------------------------------------


def block(model: Model, tokens: int) -> list[Step]:
    """Returns the steps of a block of an encoder, normalized after each half."""
    width, hidden = model.width, model.hidden
    size, bits = tokens * width, SHIFT + BITS
    first = product(width, 3 * width, tokens, bits).plus(tables(3 * size, BITS, BITS))
    after = product(width, width, tokens, bits)
    gelu = tables(tokens * hidden, BITS, BITS)
    return [
        _named("Q, K, V", first),
        *_attention(model, tokens),
        _named("projection", after),
        _norm("norm 1", tokens, width),
        _named("up, GELU", product(width, hidden, tokens, bits).plus(gelu)),
        _named("down", product(hidden, width, tokens, bits)),
        _norm("norm 2", tokens, width),
    ]


def _named(name: str, step: Step) -> Step:
    return step._replace(step=name)


def _attention(model: Model, tokens: int) -> Iterator[Step]:
    """Yields the steps between Q, K, V and the projection."""
    each, scores = model.width // model.heads, model.heads * tokens * tokens
    size = tokens * model.width
    wide = score_bits(each)
    products = triple(tokens, each, tokens, wide)
    yield _named("Q K^T", _times(products, model.heads).plus(opening(2 * size, wide, rounds=1)))
    places = SOFTMAX_BITS, SOFTMAX_BITS
    pairs = model.heads * tokens * (tokens - 1)
    levels = math.ceil(math.log2(tokens))
    yield _named("logs of sums", tables(pairs, *places, levels, late=True))
    yield _named("probabilities", tables(scores, *places, late=True))
    wide = mean_bits()
    opened = opening(scores + size, wide, rounds=1)
    products = triple(tokens, tokens, each, wide)
    yield _named("P V", _times(products, model.heads).plus(opened))
    yield _named("attended", tables(size, BITS, BITS, late=True))


def _times(step: Step, count: int) -> Step:
    return Step(step.step, *(count * own for own in step[1:]))


def score_bits(each: int) -> int:
    """Returns the bits of a sum of `each` products, with its sign."""
    return 2 * BITS + math.ceil(math.log2(each))


def mean_bits() -> int:
    """Returns the bits of a mean of values by probabilities, which add up to less than 2."""
    return SOFTMAX_BITS + BITS + 1


def _norm(name: str, tokens: int, width: int) -> Step:
    """Returns a layer norm: squares, inverse roots, scaled numbers, and tables that narrow them."""
    found = tables(tokens * width, BITS, 12).plus(tables(tokens, 12, SCALE_BITS))
    found = found.plus(scaling(tokens * width, width))
    return _named(name, found.plus(tables(tokens * width, BITS, BITS, late=True)))


# ---- alternatives --------------------------------------------------------------------------------


def alternatives(tokens: int) -> Iterator[Case]:
    """Yields ways to compute a probability, and a product of two secrets, for one number each."""
    largest = tables(1, BITS, BITS, late=True)
    wide = tables(1, SOFTMAX_BITS, SOFTMAX_BITS, late=True)
    both = wide.plus(wide)
    row = tables(1, 12, 12)
    row = Step("", 0, 0, *(own / tokens for own in row[3:]))
    scaled = scaling(1, tokens)
    squared = tables(1, SOFTMAX_BITS, 16, late=True)
    squares = squared.plus(squared)
    inverse = largest.plus(wide).plus(row).plus(largest)
    ways = (
        ("probability", "log of the sum by a tournament, exp", both),
        ("probability", "maximum, exp, sum, log, exp", largest.plus(both).plus(row)),
        ("probability", "maximum, exp, sum, inverse, OTs, table", inverse.plus(scaled)),
        ("probability", "maximum, exp, sum, inverse, squares, table", inverse.plus(squares)),
        ("product", "OTs of the bits of one factor", scaled),
        ("product", "squares of the sum and the difference", squares),
        ("product", "logs and exp", both),
    )
    for part, way, step in ways:
        yield {
            "part": part,
            "way": way,
            "lookups": step.lookups,
            "online_bytes": step.online_bytes,
            "offline_bytes": step.table_bytes + step.product_bytes,
        }


def log_error(tokens: int, bits: int = SOFTMAX_BITS) -> float:
    """Simulates the log of a sum of exponentials by a tournament; returns its deviation.

    Scores are random with a deviation of 2, and places from -32 to 32 are rounded by chance.
    """
    random = np.random.default_rng(1)
    scores = random.normal(scale=2, size=(1000, tokens))
    step, found = 64 / 2**bits, scores
    while found.shape[1] > 1:
        even = found.shape[1] // 2 * 2
        first, second = found[:, 0:even:2], found[:, 1:even:2]
        places = np.floor((first - second) / step + random.random(first.shape))
        entries = np.rint(np.logaddexp(0, places * step) / step) * step
        found = np.concatenate([second + entries, found[:, even:]], axis=1)
    exact = np.log(np.exp(scores).sum(1))
    return float((found[:, 0] - exact).std())


# ---- the command ---------------------------------------------------------------------------------


def run(arguments: argparse.Namespace) -> int:
    """Prints the steps of a block, the whole encoders, the alternatives, and measured runs."""
    models = chosen(MODELS, arguments.model, "--model")
    if not 2 <= arguments.tokens <= 1024:
        raise ArgumentError(f"--tokens: found {arguments.tokens}, expected 2 to 1024")
    check_writable(arguments.json)
    cases: list[Case] = []
    print(
        f"computed: one block and {arguments.tokens} tokens; megabytes of 10^6 of both directions"
    )
    report = Report(_COLUMNS)
    for model in models:
        for case in _block_cases(model, arguments.tokens):
            cases.append(case)
            report.add(case)
    print("\ncomputed: ways to compute one number, without the products before them")
    report = Report(_ALTERNATIVES)
    for case in alternatives(arguments.tokens):
        cases.append(case)
        report.add(case)
    error = log_error(arguments.tokens)
    cases.append({"part": "log of a sum", "error": error})
    print(f"simulated: logs of sums by a tournament have errors with a deviation of {error:.3f}")
    for tokens in arguments.measure or ():
        cases += measured(models[0], tokens, arguments.inferences)
    if arguments.json is not None:
        Path(arguments.json).write_text(json.dumps(cases, indent=1) + "\n")
    return 0


def _block_cases(model: Model, tokens: int) -> Iterator[Case]:
    steps = block(model, tokens)
    total = steps[0]
    for step in steps[1:]:
        total = total.plus(step)
    every = _times(total, model.blocks)
    for step in (*steps, _named("a block", total), _named(f"{model.blocks} blocks", every)):
        yield {
            "model": model.name,
            "step": step.step,
            "lookups": step.lookups,
            "rounds": step.rounds,
            "online_mb": step.online_bytes / 1e6,
            "table_mb": step.table_bytes / 1e6,
            "product_mb": step.product_bytes / 1e6,
            "cpu_ms": step.cpu_ms,
        }


def measured(model: Model, tokens: int, count: int) -> list[Case]:
    """Runs the feed-forward half between two processes, and prints its phases."""
    print(f"\nmeasured: x + W2 gelu(W1 x) of {model.name}, {tokens} tokens, {count} inferences")
    report, cases = Report(PHASES), []
    for case in measure(model.width, model.hidden, tokens, count):
        cases.append({"model": model.name, "tokens": tokens, **case})
        report.add(cases[-1])
    return cases
