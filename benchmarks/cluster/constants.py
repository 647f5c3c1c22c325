"""The measured costs that the simulation is made of, each with its unit and its source."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from nescio._arrays import shown
from nescio.errors import FileError

__all__ = ["Constants", "Fact", "load"]

_CPU = "docs/performance.md, Answers"
_GPU = "docs/gpu-figures.md, Lookups"
_HTTP = "docs/performance.md, The service"
_RAY = "`calls` and `nescio bench cluster`, CPU by process, 2026-11-27"
_ASSUMED = "assumed"


class Fact(NamedTuple):
    """A constant for a reader: its name, value, unit and source."""

    name: str
    value: float
    unit: str
    source: str


def _fact(value: float, unit: str, source: str) -> Any:  # noqa: ANN401 - a field, as dataclasses'
    return field(default=value, metadata={"unit": unit, "source": source})


@dataclass(frozen=True)
class Constants:
    """Costs of one machine's work and of its network.

    A source that starts with "assumed" has no measurement behind it. `load` replaces any of them by
    those of a file.
    """

    core_bytes_per_second: float = _fact(38e9, "bytes/s a core reads from memory", _CPU)
    expansion: float = _fact(
        2.3e-11, "s of a core, per key and record", f"{_CPU}: intercept over row bytes, chacha20"
    )
    product: float = _fact(
        3.1e-13, "s of a core, per key and byte of a record", f"{_CPU}: slope over row bytes"
    )
    kernel_keys: float = _fact(8, "keys that a product takes at once", _CPU)
    overlap: float = _fact(
        3.0, "exponent that joins pass and arithmetic", f"{_CPU}: 1.21 to 1.39 if both are equal"
    )
    batch_seconds: float = _fact(3e-5, "s of a call of the engine", "docs/performance.md")
    thread_share: float = _fact(0.95, "of the arithmetic that one more thread adds", _CPU)

    gpu_bytes_per_second: float = _fact(4.27e12, "bytes/s of an H200's memory", _GPU)
    gpu_expansion: float = _fact(1.8e-13, "s, per key and record", f"{_GPU}: ncu, 512 keys")
    gpu_product: float = _fact(2.5e-15, "s, per key and byte of a record", f"{_GPU}: ncu, 512 keys")
    gpu_table_seconds: float = _fact(1e-4, "s, per batch and table", f"{_GPU}: one key; checked")
    gpu_key_seconds: float = _fact(2e-7, "s, per key and table", f"{_GPU}: 512 keys; checked")

    http_seconds: float = _fact(2.3e-4, "s of an event loop, per request", _HTTP)
    call_seconds: float = _fact(
        5e-4, "s between front and shard, per call, both processes' work aside", _RAY
    )
    call_cpu_seconds: float = _fact(4e-4, "s of a front's thread, per call", _RAY)
    call_byte_seconds: float = _fact(
        7e-10, "s of a front's thread, per byte of keys and answers", _RAY
    )
    shard_cpu_seconds: float = _fact(7.5e-4, "s of a shard's process, per call", _RAY)
    shard_byte_seconds: float = _fact(
        2.5e-9, "s of a shard's process, per byte of keys and answers", _RAY
    )
    add_seconds: float = _fact(1e-10, "s, per byte of a partial answer", f"{_RAY}: 8 shards")
    client_seconds: float = _fact(3.6e-5, "s of the benchmark's client, per request", _RAY)

    link_bytes_per_second: float = _fact(3.1e9, "bytes/s of a machine's link", f"{_ASSUMED} 25 Gb")
    link_seconds: float = _fact(1e-4, "s of latency, one way", f"{_ASSUMED} (one building)")

    def facts(self) -> Iterator[Fact]:
        """Yields every constant with its unit and source."""
        for item in fields(self):
            source = item.metadata["source"] if getattr(self, item.name) == item.default else "file"
            yield Fact(item.name, getattr(self, item.name), item.metadata["unit"], source)

    def replaced(self, values: Mapping[str, object]) -> "Constants":
        """Replaces some constants. Raises FileError for unknown names and invalid numbers."""
        known = {item.name for item in fields(self)}
        for name, value in values.items():
            if name not in known:
                raise FileError(f"constants: found {shown(name)}, expected one of {sorted(known)}")
            number = isinstance(value, int | float) and not isinstance(value, bool)
            # Bandwidths, the exponent and the keys of a kernel divide; costs may be nothing.
            zero = name.endswith("seconds") and not name.endswith("per_second")
            if not number or not (0 if zero else 1e-30) <= float(str(value)) < 1e30:
                raise FileError(f"constants: {name}: found {shown(value)}, expected a number")
        return replace(self, **{name: float(str(value)) for name, value in values.items()})


def load(path: str | None) -> Constants:
    """Loads constants from a JSON object, whose names replace defaults. Raises FileError."""
    if path is None:
        return Constants()
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: the constants cannot be read: {error}") from error
    if not isinstance(values, dict):
        raise FileError(f"{path}: found {shown(values)}, expected a JSON object")
    return Constants().replaced(values)
