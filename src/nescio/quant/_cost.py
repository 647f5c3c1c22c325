"""Measured cost of layers: the time of their products."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from .._arrays import as_threads, shown
from .._timing import median_seconds
from ..errors import ArgumentError
from ._groups import check_group
from ._layers import listed
from ._matrix import BitSerialMatrix, FloatMatrix
from ._plan import Choice
from ._steps import levels
from ._variants import Shape
from ._weights import from_integers

Cost = Callable[[str, Choice], float]


class MeasuredCost:
    """Measures the seconds of a layer's products with one vector, as the cost for `search`.

    `shapes` maps each layer to the (rows, columns) of its matrices. Each combination of shape and
    bits is measured once: the median of runs over about `seconds`. Bits of None measure NumPy's
    float32 product. `group` is the columns of a group, 0 for a step per row.
    """

    def __init__(
        self,
        shapes: Mapping[str, Iterable[Shape]],
        *,
        seconds: float = 0.02,
        threads: int = 1,
        group: int = 0,
    ) -> None:
        self._shapes = {name: list(own) for name, own in shapes.items()}
        self._seconds, self._threads = seconds, as_threads(threads)
        self._group = check_group(group)
        self._known: dict[tuple[Shape, Choice], float] = {}

    def __call__(self, name: str, bits: Choice, /) -> float:
        """Returns the seconds. Raises ArgumentError for a layer that is not in `shapes`."""
        if name not in self._shapes:
            known = listed(self._shapes)
            raise ArgumentError(f"layer: found {shown(name)}, expected one of {known}")
        return sum(self._of(shape, bits) for shape in self._shapes[name])

    def _of(self, shape: Shape, bits: Choice) -> float:
        if (shape, bits) not in self._known:
            self._known[shape, bits] = self._measured(shape, bits)
        return self._known[shape, bits]

    def _measured(self, shape: Shape, bits: Choice) -> float:
        draw = np.random.default_rng(0)
        x = draw.standard_normal(shape[1], np.float32)
        matrix: BitSerialMatrix | FloatMatrix
        if bits is None:
            matrix = FloatMatrix(draw.standard_normal(shape, np.float32))
        else:
            # The time does not depend on the values of the weights.
            integers = draw.choice(np.array(levels(bits[0]), np.int8), shape)
            weights = from_integers(integers, bits[0], group=self._group)
            matrix = BitSerialMatrix(weights, bits[1], threads=self._threads)
        return median_seconds(lambda: matrix(x), self._seconds)
