"""Reports of plans: quality and costs, before anything runs."""

import json
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any

from ..._arrays import shown
from ...errors import ArgumentError

_HEAD = "layer  function    shape            lookups  bits  online B  tables B  linear B  wraps"
_ROW = "{0:>5}  {1:<10}  {2:<14}  {3:>8,}  {4:>4}  {5:>8,}  {6:>8,}  {7:>8,}  {8:>5}"
_NONE = type(None)
_JSON_TYPES: dict[Any, tuple[type, ...]] = {  # of the fields' types
    int: (int,),
    str: (str,),
    float: (float,),
    int | None: (int, _NONE),
    float | None: (float, _NONE),
}


@dataclass(frozen=True)
class LayerReport:
    """A layer of a plan: bytes of one inference, and wrong lookups of all inputs held out.

    Offline bytes are those of tables and of linear products. `weight_bytes` is the server's memory
    for transformed weights.
    """

    layer: int
    function: str
    shape: tuple[int, ...]
    lookups: int
    table_bits: int | None
    online_bytes: int
    table_bytes: int
    linear_bytes: int
    wraps: int
    weight_bytes: int = 0


@dataclass(frozen=True)
class Report:
    """Quality on inputs that were held out of the calibration, and costs of one inference.

    `agreement` is the share of inputs whose largest output is that of the float model (None for
    one output), `accuracy` and `float_accuracy` compare with labels if there were any. `error` is
    the mean difference of outputs in units of their standard deviation (None if the outputs are
    classes). Print it, or take `to_json()` or `plot(path)`.
    """

    inputs: int
    agreement: float | None
    accuracy: float | None
    float_accuracy: float | None
    error: float | None
    rounds: int
    layers: tuple[LayerReport, ...]
    notes: tuple[str, ...] = ()

    @property
    def online_bytes(self) -> int:
        """Bytes of both directions of an inference, without the headers of frames."""
        return sum(layer.online_bytes for layer in self.layers)

    @property
    def offline_bytes(self) -> int:
        """Bytes of both directions of the preparation of an inference."""
        return sum(layer.table_bytes + layer.linear_bytes for layer in self.layers)

    @property
    def weight_bytes(self) -> int:
        """Bytes of a server's memory for the transformed weights of all layers."""
        return sum(layer.weight_bytes for layer in self.layers)

    @property
    def wraps(self) -> int:
        """Wrong lookups of all inputs that were held out."""
        return sum(layer.wraps for layer in self.layers)

    @property
    def lookups(self) -> int:
        """The lookups of an inference."""
        return sum(layer.lookups for layer in self.layers)

    def __str__(self) -> str:
        """Returns the report as a table, and the sums."""
        rows = [_row(layer) for layer in self.layers]
        lines = [
            _HEAD,
            *rows,
            "",
            *self._quality(),
            f"costs     {self.lookups:,} lookups, {self.online_bytes:,} bytes online in "
            f"{self.rounds} round trips, {self.offline_bytes:,} bytes offline",
            f"memory    {self.weight_bytes:,} bytes of transformed weights at the server",
            *(f"note      {note}" for note in self.notes),
        ]
        return "\n".join(lines)

    def _quality(self) -> list[str]:
        """Returns the lines on quality."""
        found = []
        if self.agreement is not None:
            found = [f"{self.agreement:.1%} of {self.inputs} inputs agree with the float model"]
        if self.accuracy is not None and self.float_accuracy is not None:
            found[0] += f", right {self.accuracy:.1%} (float model {self.float_accuracy:.1%})"
        if self.error is not None:
            found.append(
                f"outputs of {self.inputs} inputs differ by {self.error:.2f} of their standard "
                "deviation"
            )
        found.append(
            f"{self.wraps:,} of {self.lookups * self.inputs:,} lookups were outside the window of "
            "their table"
        )
        return [f"{'' if k else 'quality':<10}{line}" for k, line in enumerate(found)]

    def to_json(self) -> str:
        """Returns the report as JSON, with the sums."""
        sums = {name: getattr(self, name) for name in ("online_bytes", "offline_bytes", "lookups")}
        return json.dumps({**asdict(self), **sums})

    @classmethod
    def from_json(cls, text: str) -> "Report":
        """Reads the text of `to_json`. Raises ArgumentError for any other."""
        try:
            found: Any = json.loads(text)
            layers = tuple(
                LayerReport(**{**_fields(LayerReport, layer), "shape": tuple(layer["shape"])})
                for layer in found["layers"]
            )
            own = _fields(cls, found)
            return cls(**{**own, "layers": layers, "notes": tuple(found["notes"])})
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ArgumentError(f"a report: found {shown(str(error))}, expected JSON") from error

    def plot(self, path: str) -> None:
        """Draws the bytes of every layer, online and offline, as PNG, PDF or SVG."""
        import matplotlib  # noqa: PLC0415 - an extra

        matplotlib.use("Agg")
        from matplotlib import pyplot  # noqa: PLC0415

        figure, axes = pyplot.subplots(2, 1, figsize=(9, 6), sharex=True, layout="constrained")
        numbers = [layer.layer for layer in self.layers]
        online = [layer.online_bytes / 1e3 for layer in self.layers]
        tables, linear = (
            [getattr(layer, name) / 1e6 for layer in self.layers]
            for name in ("table_bytes", "linear_bytes")
        )
        axes[0].bar(numbers, online, color="tab:blue")
        axes[0].set_ylabel("online kB")
        axes[1].bar(numbers, tables, color="tab:orange", label="tables")
        axes[1].bar(numbers, linear, bottom=tables, color="tab:green", label="linear products")
        axes[1].set_ylabel("offline MB")
        axes[1].set_xlabel("layer")
        axes[1].legend()
        figure.savefig(path)
        pyplot.close(figure)


def _fields(cls: type, found: dict[str, Any]) -> dict[str, Any]:
    """Returns the values of a class's fields. Raises TypeError for one of another type."""
    own = {}
    for one in fields(cls):
        value = found[one.name] if one.default is MISSING else found.get(one.name, one.default)
        own[one.name] = value
        item = getattr(one.type, "__args__", (None,))[0] if isinstance(value, list) else None
        items = value if item in _JSON_TYPES else []
        if not isinstance(value, _JSON_TYPES.get(one.type, (list,))) or isinstance(value, bool):
            raise TypeError(f"{one.name} {shown(value)}")
        if not all(type(entry) is item for entry in items):
            raise TypeError(f"{one.name} {shown(value)}")
    return own


def _row(layer: LayerReport) -> str:
    shape = "x".join(map(str, layer.shape))
    bits = "-" if layer.table_bits is None else layer.table_bits
    cells = (layer.layer, layer.function, shape, layer.lookups, bits, layer.online_bytes)
    return _ROW.format(*cells, layer.table_bytes, layer.linear_bytes, layer.wraps)
