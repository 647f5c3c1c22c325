"""The offline phase of linear layers: CPU time of both parties, bytes, and the machine's limit."""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, ParamSpec, TypeVar

import numpy as np

from benchmarks._main import chosen
from benchmarks.infer.products import measure
from nescio import _core
from nescio._report import Case, Report, check_writable
from nescio.bench.infer.cases import convolution, convolve
from nescio.bench.infer.floors import product_seconds
from nescio.errors import ArgumentError
from nescio.mpc._encoding import Encoding
from nescio.mpc._layout import ConvolutionShape, linear
from nescio.mpc._linear import ClientKeys, PublicKey, ServerWeights, ciphertexts

__all__ = ["LAYERS", "Layer", "run"]

_T = TypeVar("_T")
_Arguments = ParamSpec("_Arguments")


_BITS = 20  # of a result, for a shift of 12 and tables of 2^8 entries


class Layer(NamedTuple):
    """A layer by name."""

    name: str
    shape: ConvolutionShape


LAYERS = (
    Layer("3-16x32", convolution(3, 16, 32)),
    Layer("16-16x32", convolution(16, 16, 32)),
    Layer("16-32x32s2", convolution(16, 32, 32, 2)),
    Layer("32-32x16", convolution(32, 32, 16)),
    Layer("32-64x16s2", convolution(32, 64, 16, 2)),
    Layer("64-64x8", convolution(64, 64, 8)),
    Layer("fc64-10", linear(64, 10)),
    Layer("64-64x32", convolution(64, 64, 32)),
    Layer("fc512-1000", linear(512, 1000)),
)

_COLUMNS = (
    ("layer", "layer", ">11"),
    ("bytes_in", "bytes in", "10,"),
    ("bytes_out", "bytes out", "10,"),
    ("prepare_ms", "prepare ms", "10.2f"),
    ("encrypt_ms", "encrypt ms", "10.2f"),
    ("evaluate_ms", "evaluate ms", "11.2f"),
    ("decrypt_ms", "decrypt ms", "10.2f"),
    ("cpu_ms", "all three", "9.2f"),
    ("limit_ms", "limit ms", "8.2f"),
    ("off_by_one", "off by 1", "8.3f"),
)


def run(arguments: argparse.Namespace) -> int:
    """Prints a line for each layer. Raises ArgumentError for an unknown name."""
    layers = chosen(LAYERS, arguments.layer, "--layer")
    if arguments.repeat < 1:
        raise ArgumentError(f"--repeat: found {arguments.repeat}, expected at least 1")
    check_writable(arguments.json)
    print(
        f"CPU time of one thread per party, medians; weights of 8 bits, results of {_BITS}; "
        "prepare once per model"
    )
    report, cases = Report(_COLUMNS), []
    for layer in layers:
        cases.append(_measure(layer, arguments.repeat))
        report.add(cases[-1])
    if arguments.layer is None:
        measure(arguments.repeat)
    if arguments.json is not None:
        Path(arguments.json).write_text(json.dumps(cases, indent=1) + "\n")
    return 0


def _measure(layer: Layer, repeat: int) -> Case:
    pool, random = _core.ThreadPool(1), np.random.default_rng(1)
    encoding, shape = Encoding.of(layer.shape, _BITS), layer.shape
    (layout,) = encoding.layouts
    x = random.integers(0, 2**32, (shape.in_channels, *shape.image), np.uint32)
    size = (shape.out_channels, shape.in_channels, *shape.kernel)
    weights = random.integers(-128, 128, size, np.int8)
    keys = ClientKeys(pool)
    public_key = PublicKey(keys.public_key, pool)
    prepare, server = _timed(ServerWeights, encoding, [weights], pool)
    steps: list[tuple[float, float, float]] = []
    wrong = np.zeros(0, np.int32)
    for _ in range(repeat):
        encrypt, message = _timed(keys.encrypt, layout, x)
        parse, inputs = _timed(ciphertexts, layout, message, pool)
        evaluate, (answer, share) = _timed(server.evaluate, public_key, [inputs])
        decrypt, other = _timed(keys.decrypt, encoding, answer)
        steps.append((encrypt, parse + evaluate, decrypt))
        difference = share + other - convolve(shape, x, weights)
        wrong = (difference << np.uint32(32 - _BITS)).astype(np.int32) >> (32 - _BITS)
    if np.abs(wrong).max() > 1:
        raise AssertionError(f"{layer.name}: shares differ from the product by more than 1")
    times = [statistics.median(own) for own in zip(*steps, strict=True)]
    return {
        "layer": layer.name,
        "bytes_in": len(message),
        "bytes_out": len(answer),
        "prepare_ms": prepare,
        **dict(zip(("encrypt_ms", "evaluate_ms", "decrypt_ms"), times, strict=True)),
        "cpu_ms": sum(times),
        "limit_ms": 1e3 * product_seconds(encoding),
        "off_by_one": float(np.mean(wrong != 0)),
    }


def _timed(
    work: Callable[_Arguments, _T], *arguments: _Arguments.args, **options: _Arguments.kwargs
) -> tuple[float, _T]:
    """Returns the milliseconds of CPU time, which other processes change less than the time."""
    begin = time.process_time()
    result = work(*arguments, **options)
    return 1e3 * (time.process_time() - begin), result
