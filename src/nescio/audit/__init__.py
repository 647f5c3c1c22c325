"""What a server that sees only sums of updates can tell: an audit of secure aggregation.

    disaggregate   the attack: columns, updates and certificates from sums and counts
    Log            a record of sums and counts, checked; .npz files of it
    Result         what was recovered
    Certificate    how sure one user's column is

The attack is that of thesis chapter 6 (Lam et al., "Gradient Disaggregation", ICML 2021).
"""

from .problem import Log
from .result import Certificate, Result
from .solve import disaggregate, solve

__all__ = ["Certificate", "Log", "Result", "disaggregate", "solve"]
