"""The space that the columns of P span, from the aggregates: what every method looks into.

A = P G, so the column space of A is that of P, if the active users' updates are linearly
independent. It comes from the Gram matrix A A^T (rounds x rounds), summed over blocks of
dimensions, so that memory does not grow with the length of an update.

Without noise: a sketch of A's rows, whose rank says whether there is noise, and two steps of
subspace iteration, which bring the span to the precision of the aggregates.

With noise: rows divided by the square root of the participants (a sum of m updates has m times the
noise of one), then the u largest eigenvectors, the hard threshold of thesis section 6.3.4. In the
spiked model (Benaych-Georges and Nadakuditi, 2012) a direction whose eigenvalue is (1 + l) times
the noise is off by an angle with

    sin^2 = (c / l^2 + c / l) / (1 + c / l),        c = rounds / dimensions,

which says how far from the space a true column is expected: the measure that recovered columns are
held against.

That is for noise that is alike and independent in all dimensions. That of training is not: it lies
in few directions, LeNet's in about ten of 62,006. So `dimensions` is what the spread of the noise's
own eigenvalues says. To first order a true column is then still off the space by a vector that is
alike in all rounds (the rounds' noise is independent); only its length is not what the model says,
and by about the same factor for all users: it is measured on the columns found (`calibrated`).

`standardized_space` divides each parameter by its standard deviation over the rounds. P's columns
stay in the span whatever parameters are multiplied with, and the noise is in more directions.
`drift` takes smooth columns into the space, participants times Legendre polynomials in t: what all
updates of a round have in common, as it changes with the model.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from .._arrays import FloatArray
from .._log.gram import gram_matrix
from .._log.record import Log
from .._log.windows import log_binomial

__all__ = ["MAX_DRIFT", "Subspace", "column_space", "standardized_space"]

MAX_DRIFT = 32
"""The most smooth columns that are taken into the space."""

_MORE_COLUMNS = 64
_NO_NOISE = 1e-5
"""The largest noise, relative to the weakest direction, that passes for rounding."""

_HIDDEN = 0.5
"""The most of sin^2 over cos^2 that a direction counts with."""

_COLOURED = 1.2
"""From this stretch on the noise is not as it is modelled."""

_MIDDLE = 1.1
"""The middle of how far true columns are beyond the model, over the lowest quartile."""


@dataclass(frozen=True, eq=False)
class Subspace:
    """An estimate of the span of P's columns.

    `basis`: float64, (rounds, rank), orthonormal, of D^-1/2 times the span, where `weights` is the
    diagonal of D^-1/2 (ones without noise). `spread`: (rank, rank); a true column x = D^1/2 basis a
    is expected at a squared distance of a^T spread a. `exact`: no noise but rounding. `spectrum`:
    the eigenvalues of the weighted Gram matrix over the dimensions, largest first (with noise: all;
    without: as many as the sketch has). `complete`: as many directions stand out as users are
    active. `filled`: how many rounds anybody took part in. `few`: the noise lies in few of the
    dimensions. `stretch`: how much farther off true columns are than the model of noise says.
    `standardized`, `drift`: how it was made.
    """

    basis: FloatArray
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
        """The dimension of the space."""
        return int(self.basis.shape[1])

    @property
    def free(self) -> int:
        """How many dimensions are outside: what a wrong column has to hide from."""
        return max(self.filled - self.rank, 0)

    @property
    def coloured(self) -> bool:
        """Whether the noise is not alike and independent in all dimensions."""
        return self.few or self.stretch > _COLOURED

    def plain_basis(self) -> FloatArray:
        """(rounds, rank): an orthonormal basis of the span itself, without weights."""
        if (self.weights == 1).all():
            return self.basis
        return np.asarray(np.linalg.qr(self.basis / self.weights[:, None])[0])

    def residuals(self, columns: FloatArray) -> FloatArray:
        """(k, rounds): what of the weighted columns (k, rounds) is outside the space."""
        weighted = columns * self.weights
        return np.asarray(weighted - (weighted @ self.basis) @ self.basis.T)

    def distances(self, columns: FloatArray) -> FloatArray:
        """(k,): distances of columns (k, rounds) from the space, in the weighted rounds."""
        return np.asarray(np.linalg.norm(self.residuals(columns), axis=1))

    def expected(self, columns: FloatArray) -> FloatArray:
        """(k,): the distances that columns (k, rounds) are expected at, if they are true."""
        inside = (columns * self.weights) @ self.basis
        squares = ((inside @ self.spread) * inside).sum(axis=1)
        return np.asarray(self.stretch * np.sqrt(np.maximum(squares, 0)))

    def calibrated(self, columns: FloatArray) -> "Subspace":
        """With the stretch that `columns` (k, rounds) have, at least a quarter of them true."""
        plain = replace(self, stretch=1.0)
        some = columns[columns.any(axis=1)]
        if self.exact or not len(some):
            return plain
        expected = np.maximum(plain.expected(some), 1e-300)
        found = _MIDDLE * float(np.quantile(plain.distances(some) / expected, 0.25))
        return replace(self, stretch=found if self.few else max(1.0, found))

    def limits(self, columns: FloatArray, choices: FloatArray | None = None) -> FloatArray:
        """(k,): the distances beyond which columns are refused.

        `choices`: (k,), the logarithm of how many columns have the counts of each; None: all with
        as many ones do. Six standard
        deviations of the squared distance above its mean, as of a chi-square variable, and never
        more than half the distance of an average column that has one round exchanged. Where the
        noise is not as modelled: what is nearer than chance (`chance`).
        """
        if self.coloured:
            return self.chance(columns, choices)
        mean = self.expected(columns) ** 2
        free = max(self.free, 1)
        above = mean * (1 + 6 * np.sqrt(2 / free)) + 1e-14 * (columns.sum(axis=1) + 1)
        nearest = 2 * free / self.filled * float(np.mean(self.weights**2))
        return np.asarray(np.sqrt(np.minimum(above, mean + nearest / 2)))

    def chance(
        self, columns: FloatArray, choices: FloatArray | None = None, failure: float = 1e-3
    ) -> FloatArray:
        """(k,): distances that no column is within by chance, but with a probability of `failure`.

        To a space in no relation to it, a column y has a squared distance of |W y|^2 x / filled, x
        a chi-square variable of `free` degrees. It is below r free with a probability of at most
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
            ratio = np.exp(ratio - 1 - wanted)
        energy = ((columns * self.weights) ** 2).sum(axis=1) * self.free / self.filled
        return np.asarray(np.sqrt(ratio * energy))


def column_space(
    log: Log,
    active: int,
    noise: float | None,
    seed: int,
    *,
    drift: int = 0,
) -> Subspace:
    """The span of the columns of `active` users; `noise` 0 says that there is none, None: find out.

    `noise` is the standard deviation of an entry of one user's update from round to round. `drift`
    adds that many smooth columns, and supposes noise.
    """
    if not noise and not drift:
        sketched = _sketched(log, active, seed, certain=noise == 0)
        if sketched is not None:
            return sketched
    return _thresholded(log, gram_matrix(log.aggregates), active, noise, drift)


def standardized_space(log: Log, active: int, plain: Subspace, drift: int = 0) -> Subspace:
    """The same with each parameter divided by its standard deviation over the rounds."""
    gram = gram_matrix(log.aggregates, standardize=True)
    made = _thresholded(log, gram, active, None, drift)
    return replace(made, noise=plain.noise, standardized=True)


def _sketch(aggregates: FloatArray, columns: int, seed: int) -> FloatArray:
    """(rounds, columns): sums of dimensions with random signs, in random groups."""
    rounds, dimensions = aggregates.shape
    if dimensions <= columns:
        return np.asarray(aggregates, np.float64)
    rng = np.random.default_rng(seed)
    if dimensions <= 4 * columns:
        mixer = rng.standard_normal((dimensions, columns))
        return np.asarray(np.asarray(aggregates, np.float64) @ mixer)
    # Many dimensions: signs and groups first, which reads each entry once, then a dense mixture.
    folded = np.zeros((rounds, 4 * columns))
    width = 4 * columns
    for start in range(0, dimensions, width):
        block = aggregates[:, start : start + width]
        signs = rng.choice(np.array([-1.0, 1.0]), block.shape[1])
        folded[:, : block.shape[1]] += block * signs
    return np.asarray(folded @ rng.standard_normal((width, columns)))


def _sketched(log: Log, active: int, seed: int, *, certain: bool) -> Subspace | None:
    """The span without noise; None if the sketch shows some, or fewer directions than users."""
    sketch = _sketch(log.aggregates, active + _MORE_COLUMNS, seed)
    values, vectors = np.linalg.eigh(sketch.T @ sketch)
    values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
    floor = max(values[0] * 1e-15 * len(values), 1e-300)
    rank = min(active, int((values > 64 * floor).sum()))
    tail = np.sqrt(values[rank:].mean()) if rank < len(values) else 0.0
    if not certain and (rank < active or tail > _NO_NOISE * np.sqrt(values[rank - 1])):
        return None
    basis = _orthonormal(sketch @ (vectors[:, :rank] / np.sqrt(values[:rank])))
    gram = gram_matrix(log.aggregates)
    basis = _orthonormal(gram @ basis @ np.linalg.inv(basis.T @ gram @ basis))
    inner = basis.T @ gram @ basis
    inverse = np.linalg.inv((inner + inner.T) / 2)
    total = float(np.trace(gram))
    outside = max(total - float(np.trace(inner)), 0.0)
    spread = outside / log.dimensions * inverse + (1e-15 * total) ** 2 * inverse @ inverse
    weights, filled = np.ones(log.rounds), int((~log.empty).sum())
    spectrum, complete = values / log.dimensions, rank == active
    return Subspace(basis, weights, spread, spectrum, 0.0, True, complete, filled)


def _orthonormal(columns: FloatArray) -> FloatArray:
    """An orthonormal basis of the span of well-conditioned columns: Cholesky QR, twice."""
    for _ in range(2):
        root = np.linalg.cholesky(columns.T @ columns)
        columns = columns @ np.linalg.inv(root).T
    return columns


def _thresholded(
    log: Log, gram: FloatArray, active: int, noise: float | None, drift: int
) -> Subspace:
    """The span by the hard threshold, with rows weighted."""
    weights = _row_weights(log, gram)
    gram *= weights[:, None] * weights[None, :]
    smooth = _smooth_columns(log, drift) * weights[:, None]
    smooth = np.linalg.qr(smooth)[0]
    gram -= smooth @ (smooth.T @ gram)
    gram -= (gram @ smooth) @ smooth.T
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    values, vectors = np.maximum(values[::-1], 0) / log.dimensions, vectors[:, ::-1]
    filled = int((~log.empty).sum())
    tail = values[active : filled - drift]
    level = float(tail.mean()) if len(tail) else 0.0
    if noise:  # in weighted rows the noise of a sum is that of one update
        level = max(level, float(noise**2 * np.mean(weights**2)))
    level = max(level, 1e-15 * float(values[0]))
    dimensions = min(float(log.dimensions), _effective(tail))
    angles = _angles(values[:active] / level, filled / dimensions)
    beyond = max(filled - active, 0) / dimensions  # the noise's own eigenvalues end here
    stands_out = values[:active] > level * (1 + np.sqrt(beyond)) ** 2 * 1.02
    rank = max(1, int(stands_out.sum()))
    angles = np.concatenate((angles * max(filled - active, 0) / filled, np.zeros(drift)))
    return Subspace(
        np.hstack((vectors[:, :active], smooth)),
        weights,
        np.diag(angles),
        values,
        float(np.sqrt(level)),
        False,
        rank == active,
        filled,
        few=2 * dimensions < log.dimensions,
        drift=drift,
    )


def _effective(tail: FloatArray) -> float:
    """In how many dimensions noise lies whose eigenvalues these are: (sum s)^2 / sum s^2.

    The eigenvalues of f rounds of it have a variance of f / dimensions times their mean's square.
    """
    if len(tail) < 2:
        return 1.0
    return len(tail) / max(float(tail.var() / max(tail.mean() ** 2, 1e-300)), 1e-12)


def _smooth_columns(log: Log, number: int) -> FloatArray:
    """(rounds, number): the participants of each round times Legendre polynomials of its time.

    From the first degree on: what all updates have in common and does not change is in all of them.
    """
    time = np.linspace(-1, 1, log.rounds)
    people = np.ones(log.rounds) if log.participants is None else log.participants
    polynomials = np.polynomial.legendre.legvander(time, number)[:, 1:]
    return np.asarray(polynomials * people[:, None])


def _row_weights(log: Log, gram: FloatArray) -> FloatArray:
    """(rounds,): one over the square root of the participants, or of the rows' energy; mean 1."""
    energy = np.diag(gram) if log.participants is None else log.participants.astype(np.float64)
    energy = np.where(energy > 0, energy, energy[energy > 0].mean())
    weights = 1 / np.sqrt(energy)
    return np.asarray(weights / np.sqrt(np.mean(weights**2)))


def _angles(values: npt.NDArray[np.float64], ratio: float) -> FloatArray:
    """sin^2 over cos^2 of the angles at eigenvalues `values` times the noise."""
    excess = np.maximum(values - 1 - ratio, 2 * np.sqrt(ratio) + 1e-12)
    spike = (excess + np.sqrt(np.maximum(excess**2 - 4 * ratio, 0))) / 2
    cosine = np.maximum(1 - ratio / spike**2, 1e-3) / (1 + ratio / spike)
    # Of a direction that the noise hides nothing is known from what is seen along it.
    return np.asarray(np.minimum((1 - cosine) / cosine, _HIDDEN))
