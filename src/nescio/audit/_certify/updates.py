"""Updates by least squares from the recovered columns, in blocks of dimensions."""

import numpy as np
import numpy.typing as npt

from .._arrays import FloatArray
from .._attack.span import Subspace
from .._log.record import Log

__all__ = ["least_squares"]

_BLOCK_BYTES = 1 << 27


def least_squares(
    log: Log,
    subspace: Subspace,
    columns: npt.NDArray[np.uint8],
    found: npt.NDArray[np.bool_],
    *,
    wanted: bool,
) -> tuple[FloatArray | None, FloatArray]:
    """Returns updates (users, dimensions), None unless `wanted`, and conditioning (users,).

    Rows are weighted by the noise. Columns of users who were not found take part, as the best
    available estimate; their own results are NaN.
    """
    some = np.flatnonzero(columns.any(axis=1))
    weighted = columns[some].T * subspace.weights[:, None]
    gram = weighted.T @ weighted
    try:
        root = np.linalg.inv(np.linalg.cholesky(gram))
        inverse = root.T @ root
        if not np.abs(inverse).max(initial=0) < 1e10:
            inverse = np.linalg.pinv(gram, hermitian=True)
    except np.linalg.LinAlgError:
        inverse = np.linalg.pinv(gram, hermitian=True)
    solver = inverse @ (weighted.T * subspace.weights)
    conditioning = np.zeros(log.users)
    conditioning[some] = np.sqrt(np.maximum(np.diag(inverse), 0))
    conditioning[~found] = np.nan
    if not wanted:
        return None, conditioning
    updates = np.zeros((log.users, log.dimensions), log.aggregates.dtype)
    step = max(1, _BLOCK_BYTES // (8 * log.rounds))
    for start in range(0, log.dimensions, step):
        block = np.asarray(log.aggregates[:, start : start + step], np.float64)
        updates[some, start : start + step] = solver @ block
    updates[~found] = np.nan
    return updates, conditioning
