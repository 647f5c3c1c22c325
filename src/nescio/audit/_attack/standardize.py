"""The span from standardized parameters: each divided by its standard deviation over the rounds.

P's columns stay in the span whatever factors multiply the parameters, and noise that lies in few of
them lies in more directions.
"""

from dataclasses import replace

import numpy as np

from .._arrays import FloatArray
from .._log.gram import gram_matrix
from .._log.record import Log
from .estimate import thresholded
from .span import Subspace

__all__ = ["standardized_space"]


def standardized_space(log: Log, active: int, plain: Subspace, drift: int = 0) -> Subspace:
    """Estimates the span with each parameter divided by its standard deviation over the rounds."""
    gram = gram_matrix(log.aggregates, _standardizing)
    made = thresholded(log, gram, active, None, drift)
    return replace(made, noise=plain.noise, standardized=True)


def _standardizing(block: FloatArray) -> FloatArray:
    """(dimensions,): 1 / standard deviation of each parameter over the rounds; 0 for constants.

    Parameters that change little relative to their size count as constants.
    """
    deviation = block.std(axis=0)
    size = np.sqrt(np.mean(block**2, axis=0))
    changes = deviation > 1e-3 * size
    return np.asarray(np.where(changes, 1 / np.where(changes, deviation, 1), 0))
