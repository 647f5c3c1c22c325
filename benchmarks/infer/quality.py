"""Compilation of a network, and the quality of its plans against the width of their tables."""

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

import nescio.mpc
from benchmarks.infer.outcomes import lookups_of
from benchmarks.infer.subjects import Subject
from nescio._arrays import Array
from nescio._report import Case
from nescio.mpc import Plan
from nescio.mpc._compile import read_model
from nescio.mpc._maps import Floats
from nescio.mpc._plans.floats import FloatLayer, windows_of
from nescio.mpc._plans.floats import run as run_floats
from nescio.mpc._plans.quantize import Quantized, quantize

__all__ = ["compiled", "quality"]

_AT_ONCE = 16
_FEWEST, _MOST = 32, 1024  # images


def compiled(subject: Subject, bits: int) -> tuple[Plan, Case]:
    """Compiles a model; returns the plan, its times and its report's numbers."""
    images = subject.calibration
    begin, processor = time.perf_counter(), time.process_time()
    plan = nescio.mpc.compile(subject.model, images[:1], calibration=[images], table_bits=bits)
    seconds, processor = time.perf_counter() - begin, time.process_time() - processor
    return plan, {
        "network": subject.architecture.name,
        "source": subject.source,
        "calibration": len(images),
        "compile_seconds": seconds,
        "compile_cpu_seconds": processor,
        "lookups": lookups_of(plan.network),
        "layers": len(plan.network.layers),
        "report_online_bytes": plan.report.online_bytes,
        "report_offline_bytes": plan.report.offline_bytes,
    }


class _Reference(NamedTuple):
    """Images, the float model's outputs for them, and labels if there are any."""

    images: Floats
    outputs: Floats
    labels: Array | None

    def first(self, count: int) -> "_Reference":
        """Returns the first images alone."""
        outputs = self.outputs[:count]
        labels = None if self.labels is None else self.labels[: len(outputs)]
        return _Reference(self.images[:count], outputs, labels)


def quality(subject: Subject, widths: Sequence[int], main: int, seconds: float) -> Iterator[Case]:
    """Yields a case for each width of tables: agreement, accuracy and wrong lookups.

    As many images of the test are taken as fit into the time, 32 at least. The `main` width gets
    half of the time, all others share the rest.
    """
    layers = read_model(subject.model, subject.calibration[:1]).layers
    fit = subject.calibration.double().numpy()
    windows = windows_of(layers, fit)
    narrow = quantize(layers, fit, bits=widths[0], windows=windows)
    begin = time.perf_counter()
    _simulated(narrow, subject.test[:_AT_ONCE])
    each = (time.perf_counter() - begin) / _AT_ONCE
    shares = {bits: 1 if bits == main else len(widths) for bits in widths}
    counts = {
        bits: int(np.clip(seconds / 2 / each / share, _FEWEST, _MOST))
        for bits, share in shares.items()
    }
    images = subject.test[: max(counts.values())]
    reference = _Reference(images, _floats(layers, images), subject.labels)
    for bits in widths:
        quantized = quantize(layers, fit, bits=bits, windows=windows)
        own = _case(quantized, bits, reference.first(counts[bits]))
        yield {"network": subject.architecture.name, **own}


def _case(quantized: Quantized, bits: int, reference: _Reference) -> Case:
    outputs, wraps = _simulated(quantized, reference.images)
    expected = reference.outputs.argmax(1)
    found, labels = outputs.argmax(1), reference.labels
    return {
        "table_bits": bits,
        "images": len(expected),
        "agree": float((found == expected).mean()),
        "right": None if labels is None else float((found == labels).mean()),
        "float_right": None if labels is None else float((expected == labels).mean()),
        "error": float(np.abs(outputs - reference.outputs).mean() / reference.outputs.std()),
        "wraps": wraps,
        "lookups": lookups_of(quantized.network) * len(expected),
    }


def _simulated(quantized: Quantized, images: Floats) -> tuple[Floats, int]:
    found, wraps = [], 0
    for first in range(0, len(images), _AT_ONCE):
        part = quantized.network.simulate(quantized.encode(images[first : first + _AT_ONCE]))
        found.append(quantized.decode(part.outputs).reshape(len(part.outputs), -1))
        wraps += sum(part.wraps)
    return np.concatenate(found), wraps


def _floats(layers: Sequence[FloatLayer], images: Floats) -> Floats:
    found = []
    for first in range(0, len(images), _AT_ONCE):
        *_, outputs = run_floats(layers, images[first : first + _AT_ONCE])
        found.append(outputs.reshape(len(outputs), -1))
    return np.concatenate(found)
