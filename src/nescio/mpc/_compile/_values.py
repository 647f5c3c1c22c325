"""Values of a model's graph: sums of linear maps of results, and functions of these sums."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .._maps import Shape
from ._windows import Window, identity

Op = Callable[[Tensor], Tensor]

_ROWS = 64  # that are pulled back at a time


@dataclass(frozen=True, eq=False)
class Term:
    """A linear map of a result: `of` maps a batch (n, *inputs).

    `window` or `matrix` (outputs, inputs) computes the same, up to the shape of its outputs.
    """

    source: int
    inputs: Shape
    of: Op
    window: Window | None = None
    matrix: Tensor | None = None

    @property
    def size(self) -> int:
        """The number of inputs."""
        return int(torch.Size(self.inputs).numel())

    def then(self, op: Op, window: Window | None = None, matrix: Tensor | None = None) -> "Term":
        """Returns `op` of this map."""
        inner = self.of
        return replace(self, of=lambda x: op(inner(x)), window=window, matrix=matrix)

    def pulled(self, rows: Tensor) -> Tensor:
        """Returns the matrix of rows (n, outputs) times this map: (n, inputs)."""
        if self.matrix is not None:
            return rows @ self.matrix
        return torch.cat([self._pulled(part) for part in rows.split(_ROWS)])

    def _pulled(self, rows: Tensor) -> Tensor:
        """Applies the transposed map, which automatic differentiation knows."""
        with torch.enable_grad():
            x = torch.zeros(len(rows), *self.inputs, dtype=rows.dtype, requires_grad=True)
            y = self.of(x)
            (found,) = torch.autograd.grad(
                y, x, rows.reshape(y.shape), allow_unused=True, materialize_grads=True
            )
        return found.flatten(1)


@dataclass(eq=False)
class Expression:
    """A sum of linear maps and a constant (1, *shape).

    `root` is the same as a function of one number of another expression. `origin` is an expression
    and the map that only moves its numbers to get this one.
    """

    shape: Shape
    terms: tuple[Term, ...]
    constant: Tensor
    root: "Pointwise | None" = None
    origin: "tuple[Expression, Op] | None" = None
    is_plain: bool = False  # the result of a layer, or moved numbers of one

    @property
    def windows(self) -> list[Window] | None:
        """The windows of all terms, if each has one."""
        found = [term.window for term in self.terms if term.window is not None]
        return found if len(found) == len(self.terms) else None

    @property
    def size(self) -> int:
        """The count of numbers."""
        return int(torch.Size(self.shape).numel())


@dataclass(eq=False)
class Pointwise:
    """A function of each number of an expression, which a layer computes once it is needed.

    `direction` is 1 if the function nowhere falls, -1 if it nowhere rises, 0 if that is unknown.
    """

    base: Expression
    function: Op
    name: str
    direction: int = 0
    closed: Expression | None = None

    @property
    def shape(self) -> Shape:
        """The shape, without the batch."""
        return self.base.shape

    @property
    def scales(self) -> bool:
        """True if f(s x) = s f(x) for s above 0."""
        sizes = torch.logspace(-6, 6, 97, dtype=torch.float64)
        slopes = [self.function(sign * sizes).double() / sizes for sign in (-1, 1)]
        return all(torch.allclose(slope, slope[:1], rtol=1e-12) for slope in slopes)


Value = Expression | Pointwise


def plain(source: int, natural: Shape, shape: Shape) -> Expression:
    """Returns result `source`, whose shape is `natural`, as an expression of another shape."""
    window = identity(natural) if len(natural) == 3 else None
    term = Term(source, natural, lambda x: x.reshape(len(x), *shape), window)
    zeros = torch.zeros(1, *shape, dtype=torch.float64)
    return Expression(shape, (term,), zeros, is_plain=True)


def natural_shape(shape: Shape) -> Shape | None:
    """Returns (channels, height, width) for a shape of up to three lengths."""
    if len(shape) == 3:
        return shape
    return {1: (*shape, 1, 1), 2: (shape[0], 1, *shape[1:])}.get(len(shape))


def natural_axis(shape: Shape, axis: int) -> int:
    """Returns the axis of the natural shape for an axis of a shape."""
    return 2 if len(shape) == 2 and axis == 1 else axis


def summed(first: Expression, second: Expression) -> Expression:
    """Adds two expressions of one shape; windows of one result are joined."""
    terms = list(first.terms)
    for term in second.terms:
        number = next((i for i, own in enumerate(terms) if _joins(own, term)), None)
        if number is None:
            terms.append(term)
        else:
            terms[number] = _joined(terms[number], term)
    return Expression(first.shape, tuple(terms), first.constant + second.constant)


def _joins(own: Term, other: Term) -> bool:
    if own.source != other.source:
        return False
    if own.window is not None and other.window is not None:
        return own.window.stride == other.window.stride and own.window.shape == other.window.shape
    return own.window is None and other.window is None


def _joined(own: Term, other: Term) -> Term:
    first, second = own.of, other.of
    window = matrix = None
    if own.window is not None and other.window is not None:
        window = own.window.plus(other.window)
    elif own.matrix is not None and other.matrix is not None:
        matrix = own.matrix + other.matrix
    return Term(own.source, own.inputs, lambda x: first(x) + second(x), window, matrix)
