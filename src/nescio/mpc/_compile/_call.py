"""A call of an operator in the graph: its arguments by name, and the shape of its result."""

from typing import Any

from torch import Tensor

from .._maps import Shape
from ._layers import Layers
from ._values import Expression, Pointwise
from ._windows import Pair


class Call:
    """An operator: its arguments by name, the shape of its result, and its builder of layers.

    `alone` says that nothing else uses its first argument.
    """

    def __init__(
        self, layers: Layers, arguments: dict[str, Any], shape: Shape, *, alone: bool
    ) -> None:
        self.layers, self.shape, self.alone = layers, shape, alone
        self._arguments = arguments

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - whatever the operator takes
        return self._arguments[name]

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401
        """Returns an argument that the operator may lack."""
        found = self._arguments.get(name, default)
        return default if found is None else found

    def having(self, **arguments: Any) -> "Call":  # noqa: ANN401
        """Returns the call with other arguments."""
        own = {**self._arguments, **arguments}
        return Call(self.layers, own, self.shape, alone=self.alone)

    @property
    def x(self) -> Any:  # noqa: ANN401
        """The first argument."""
        return next(iter(self._arguments.values()))

    def pair(self, name: str, default: int | None = None) -> Pair:
        """Returns an argument as a pair for height and width; one number is for the width."""
        found = self.get(name, [])
        numbers = [found] if isinstance(found, int) else [*found]
        if not numbers:
            numbers = [default]
        if len(self.shape) == 2:
            return (0 if name == "padding" else 1), numbers[-1]
        return numbers[0], numbers[-1]

    def axis(self, name: str = "dim") -> int:
        """Returns an axis after the batch. Raises ArgumentError for the batch."""
        return self.axis_of(self[name])

    def axis_of(self, number: int) -> int:
        """Returns an axis after the batch from the number of a dimension."""
        axis = number % (len(self.x.shape) + 1) - 1
        if axis < 0:
            raise self.batch()
        return axis

    def batch(self) -> Exception:
        """Returns the error for an operator that moves or mixes inputs."""
        return self.layers.refusal(
            "found an operator that moves or drops the dimension of the batch",
            "shapes (n, ...) throughout",
            "name dimensions from 1 on, such as flatten(1) and squeeze(2)",
        )

    def constant(self, name: str) -> Tensor | None:
        """Returns a constant tensor or None. Raises ArgumentError for a secret one."""
        found = self.get(name)
        if isinstance(found, Expression | Pointwise):
            raise self.layers.refusal(
                f"found a secret {name}", "constant weights", "do not compute weights from inputs"
            )
        return found
