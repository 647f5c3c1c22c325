"""Estimates of the span of the participation columns, from the aggregates.

A = P G, so the column space of A is that of P if the active users' updates are linearly
independent. It is computed from the Gram matrix A A^T (rounds x rounds), summed over blocks of
dimensions, so that memory does not grow with the length of an update.

Without noise: a sketch of the rows of A, whose rank shows whether there is noise, and two steps of
subspace iteration, which bring the span to the precision of the aggregates.

With noise: rows divided by the square root of the participants (a sum of m updates has m times the
noise variance of one), then the u largest eigenvectors, the hard threshold of thesis section 6.3.4.
In the spiked model (Benaych-Georges and Nadakuditi, 2012) a direction whose eigenvalue is (1 + l)
times the noise is off by an angle with

    sin^2 = (c / l^2 + c / l) / (1 + c / l),        c = rounds / dimensions.

For colored noise, `dimensions` is the effective number that the spread of the noise eigenvalues
gives.

`drift` adds smooth columns to the span, participants times Legendre polynomials in t: the change
that all updates of a round share as the model learns.
"""

import numpy as np

from .._arrays import FloatArray
from .._log.gram import gram_matrix
from .._log.record import Log
from .span import Subspace

__all__ = ["MAX_DRIFT", "column_space", "thresholded"]

MAX_DRIFT = 32
"""Maximum smooth columns in the span."""

_BLOCK_BYTES = 1 << 27
_MORE_COLUMNS = 64
_NO_NOISE = 1e-5
"""Largest noise, relative to the weakest direction, that counts as rounding."""

_HIDDEN = 0.5
"""Largest sin^2 / cos^2 assumed for a direction."""


def column_space(
    log: Log,
    active: int,
    noise: float | None,
    seed: int,
    *,
    drift: int = 0,
) -> Subspace:
    """Estimates the span of the columns of `active` users.

    `noise`: standard deviation of an entry of one user's update from round to round; 0 for none,
    None to estimate it. `drift` adds that many smooth columns and assumes noise.
    """
    if not noise and not drift:
        sketched = _sketched(log, active, seed, certain=noise == 0)
        if sketched is not None:
            return sketched
    return thresholded(log, gram_matrix(log.aggregates), active, noise, drift)


def _sketch(aggregates: FloatArray, columns: int, seed: int) -> FloatArray:
    """(rounds, columns): sums of dimensions with random signs, in random groups."""
    rounds, dimensions = aggregates.shape
    if dimensions <= columns:
        return np.asarray(aggregates, np.float64)
    rng = np.random.default_rng(seed)
    if dimensions <= 4 * columns:
        mixer = rng.standard_normal((dimensions, columns))
        return np.asarray(np.asarray(aggregates, np.float64) @ mixer)
    # Many dimensions: random signs and groups, which read each entry once, then a dense mixture.
    folded = np.zeros((rounds, 4 * columns))
    width = 4 * columns
    for start in range(0, dimensions, width):
        block = aggregates[:, start : start + width]
        signs = rng.choice(np.array([-1.0, 1.0]), block.shape[1])
        folded[:, : block.shape[1]] += block * signs
    return np.asarray(folded @ rng.standard_normal((width, columns)))


def _sketched(log: Log, active: int, seed: int, *, certain: bool) -> Subspace | None:
    """Estimates the span without noise; None if the sketch shows noise or too few directions."""
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
    return Subspace(basis, basis, weights, spread, spectrum, 0.0, True, complete, filled)


def _orthonormal(columns: FloatArray) -> FloatArray:
    """Returns an orthonormal basis of well-conditioned columns by Cholesky QR, applied twice."""
    for _ in range(2):
        root = np.linalg.cholesky(columns.T @ columns)
        columns = columns @ np.linalg.inv(root).T
    return columns


def thresholded(
    log: Log, gram: FloatArray, active: int, noise: float | None, drift: int
) -> Subspace:
    """Estimates the span by the hard threshold, with weighted rows."""
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
    if noise:  # in weighted rows, sums have the noise of one update
        level = max(level, float(noise**2 * np.mean(weights**2)))
    level = max(level, 1e-15 * float(values[0]))
    dimensions = min(float(log.dimensions), _effective(tail))
    angles = _angles(values[:active] / level, filled / dimensions)
    beyond = max(filled - active, 0) / dimensions  # the largest noise eigenvalue
    stands_out = values[:active] > level * (1 + np.sqrt(beyond)) ** 2 * 1.02
    rank = max(1, int(stands_out.sum()))
    angles = np.concatenate((angles * max(filled - active, 0) / filled, np.zeros(drift)))
    basis = np.hstack((vectors[:, :active], smooth))
    plain = basis if (weights == 1).all() else np.linalg.qr(basis / weights[:, None])[0]
    return Subspace(
        basis,
        np.asarray(plain),
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
    """Estimates in how many dimensions noise with these eigenvalues lies: (sum s)^2 / sum s^2.

    The eigenvalues of f rounds of noise have a variance of f / dimensions times their squared mean.
    """
    if len(tail) < 2:
        return 1.0
    return len(tail) / max(float(tail.var() / max(tail.mean() ** 2, 1e-300)), 1e-12)


def _smooth_columns(log: Log, number: int) -> FloatArray:
    """(rounds, number): participants of each round times Legendre polynomials of its time.

    From degree 1: a common change that is constant is already in the span of all columns.
    """
    time = np.linspace(-1, 1, log.rounds)
    participants = np.ones(log.rounds) if log.participants is None else log.participants
    polynomials = np.polynomial.legendre.legvander(time, number)[:, 1:]
    return np.asarray(polynomials * participants[:, None])


def _row_weights(log: Log, gram: FloatArray) -> FloatArray:
    """(rounds,): 1 / square root of the participants, or of the rows' energy; mean square 1."""
    energy = np.diag(gram) if log.participants is None else log.participants.astype(np.float64)
    energy = np.where(energy > 0, energy, energy[energy > 0].mean())
    weights = 1 / np.sqrt(energy)
    return np.asarray(weights / np.sqrt(np.mean(weights**2)))


def _angles(values: FloatArray, ratio: float) -> FloatArray:
    """sin^2 / cos^2 of the angles at eigenvalues `values` times the noise."""
    excess = np.maximum(values - 1 - ratio, 2 * np.sqrt(ratio) + 1e-12)
    spike = (excess + np.sqrt(np.maximum(excess**2 - 4 * ratio, 0))) / 2
    cosine = np.maximum(1 - ratio / spike**2, 1e-3) / (1 + ratio / spike)
    # Noise hides this direction, so its eigenvalue says nothing about its angle.
    return np.asarray(np.minimum((1 - cosine) / cosine, _HIDDEN))
