"""The test that ends a search: a sketch of the residuals of all columns, then the test of a few."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._arrays import BoolArray, Columns, Floats, IntArray

__all__ = ["Accept", "Screen"]

Accept = Callable[[Columns, IntArray], BoolArray]
"""Returns True for columns (k, rounds) that end the search for these users."""


@dataclass(frozen=True, eq=False, slots=True)
class Screen:
    """Tests columns, the near ones only.

    `sketch`: float32 (rounds, s); the squares of `columns @ sketch` estimate squared distances from
    the span. `exact`: no noise.
    """

    sketch: Floats
    accept: Accept
    exact: bool

    def test(
        self, corners: Floats, active: IntArray, nearest_yet: Floats
    ) -> tuple[Floats, BoolArray]:
        """Returns the estimated squared distances, and which rows end the search for `active`."""
        sketched = corners @ self.sketch
        rough = np.einsum("ki,ki->k", sketched, sketched)
        # With noise a true column is about the nearest of all that appear.
        likely = np.flatnonzero(rough <= (np.float32(2e-4) if self.exact else 1.5 * nearest_yet))
        accepted = np.zeros(len(corners), np.bool_)
        if likely.size:
            accepted[likely] = self.accept(corners[likely].astype(np.uint8), active[likely])
        return rough, accepted
