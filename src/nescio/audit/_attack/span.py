"""The span of the participation columns: distances from it, and what noise and chance predict.

In the spiked model (Benaych-Georges and Nadakuditi, 2012) the noise turns every estimated direction
by a known angle, which gives the expected distance of a true column (`expected`). The model assumes
white noise. Noise of training is not white: it lies in few directions, for LeNet about ten of
62,006. To first order the distance vector of a true column is still the same in all rounds, because
the noise of different rounds is independent. Only its length differs from the model, by about the
same factor for all users, so the factor is measured on the columns found (`calibrated`).
"""

from dataclasses import dataclass, replace

import numpy as np

from .._arrays import FloatArray
from .._log.windows import log_binomial

__all__ = ["Subspace"]

_COLORED = 1.2
"""Noise is treated as colored from this stretch on."""

_MIDDLE = 1.1
"""Median stretch of true columns over its lowest quartile."""


@dataclass(frozen=True, eq=False)
class Subspace:
    """An estimate of the span of P's columns.

    `basis`: float64, (rounds, rank), orthonormal, of D^-1/2 times the span, where `weights` is the
    diagonal of D^-1/2 (ones without noise). `plain`: an orthonormal basis of the span itself.
    `spread`: (rank, rank); a true column x = D^1/2 basis a has an expected squared distance of a^T
    spread a. `exact`: no noise except rounding. `spectrum`: the eigenvalues of the weighted Gram
    matrix over the dimensions, largest first (with noise: all; without: as many as the sketch has).
    `complete`: as many directions exceed the noise as there are active users. `filled`: the number
    of rounds with participants. `few`: the noise lies in few of the dimensions. `stretch`: measured
    distances of true columns over those that the noise model predicts. `standardized`, `drift`:
    options of the estimate.
    """

    basis: FloatArray
    plain: FloatArray
    weights: FloatArray
    spread: FloatArray
    spectrum: FloatArray
    noise: float
    exact: bool
    complete: bool
    filled: int
    few: bool = False
    stretch: float = 1.0
    standardized: bool = False
    drift: int = 0

    @property
    def rank(self) -> int:
        """The dimension of the span."""
        return int(self.basis.shape[1])

    @property
    def free(self) -> int:
        """The number of dimensions outside the span."""
        return max(self.filled - self.rank, 0)

    @property
    def colored(self) -> bool:
        """True if the noise is not white."""
        return self.few or self.stretch > _COLORED

    def residuals(self, columns: FloatArray) -> FloatArray:
        """(k, rounds): the components of the weighted columns (k, rounds) outside the span."""
        weighted = columns * self.weights
        return np.asarray(weighted - (weighted @ self.basis) @ self.basis.T)

    def distances(self, columns: FloatArray) -> FloatArray:
        """(k,): distances of columns (k, rounds) from the span, in the weighted rounds."""
        return np.asarray(np.linalg.norm(self.residuals(columns), axis=1))

    def expected(self, columns: FloatArray) -> FloatArray:
        """(k,): expected distances of columns (k, rounds) if they are true."""
        inside = (columns * self.weights) @ self.basis
        squares = ((inside @ self.spread) * inside).sum(axis=1)
        return np.asarray(self.stretch * np.sqrt(np.maximum(squares, 0)))

    def calibrated(self, columns: FloatArray) -> "Subspace":
        """Returns the span with the stretch of `columns` (k, rounds), a quarter of them true."""
        plain = replace(self, stretch=1.0)
        some = columns[columns.any(axis=1)]
        if self.exact or not len(some):
            return plain
        expected = np.maximum(plain.expected(some), 1e-300)
        found = _MIDDLE * float(np.quantile(plain.distances(some) / expected, 0.25))
        return replace(self, stretch=found if self.few else max(1.0, found))

    def limits(self, columns: FloatArray, choices: FloatArray | None = None) -> FloatArray:
        """(k,): distances beyond which columns are rejected.

        `choices`: (k,), the logarithm of the number of columns with the counts of each; None for
        all columns with as many ones. White noise: six standard deviations of the squared distance
        above its mean, as for a chi-square variable, and at most half the distance of an average
        column with one round exchanged. Colored noise: the distance that chance does not reach
        (`chance`).
        """
        if self.colored:
            return self.chance(columns, choices)
        mean = self.expected(columns) ** 2
        free = max(self.free, 1)
        above = mean * (1 + 6 * np.sqrt(2 / free)) + 1e-14 * (columns.sum(axis=1) + 1)
        nearest = 2 * free / self.filled * float(np.mean(self.weights**2))
        return np.asarray(np.sqrt(np.minimum(above, mean + nearest / 2)))

    def chance(
        self, columns: FloatArray, choices: FloatArray | None = None, failure: float = 1e-3
    ) -> FloatArray:
        """(k,): distances that chance reaches with a probability of at most `failure`.

        A column y that is unrelated to the span has a squared distance of |W y|^2 x / filled, x a
        chi-square variable of `free` degrees. It is below r free with a probability of at most
        exp(-free (r - 1 - ln r) / 2), and there are exp(choices) columns.
        """
        if choices is None:
            ones = columns.sum(axis=1).astype(np.int64).tolist()
            choices = np.array([log_binomial(self.filled, min(k, self.filled)) for k in ones])
        if not self.free:
            return np.zeros(len(columns))
        wanted = 2 * (choices - np.log(failure)) / self.free
        ratio = np.exp(-1 - wanted)  # r - 1 - ln r = wanted, by r = exp(r - 1 - wanted)
        for _ in range(100):
            before, ratio = ratio, np.exp(ratio - 1 - wanted)
            if (before == ratio).all():
                break
        energy = ((columns * self.weights) ** 2).sum(axis=1) * self.free / self.filled
        return np.asarray(np.sqrt(ratio * energy))
