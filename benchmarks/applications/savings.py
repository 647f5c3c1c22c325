"""Figures 16 and 17 of the paper: the least computation and the fewest bytes for a quality."""

from collections.abc import Callable, Iterator, Sequence

from nescio._report import Case
from nescio.pir.batch import Budgets
from nescio.pir.batch._tune.cost import Setup

from .designs import Point, of_family, scanned_rows, uncharged

__all__ = ["SCANNED", "savings"]

SCANNED = {"movielens": 50_000, "wikitext2": 50_000, "taobao": 2_500_000}
"""Rows that an inference may scan where bytes are compared.

The paper allows 100,000 calls of the generator (Taobao 5 million); its keys take two for a row.
"""

_FAMILIES = ("partial", "paper", "co-design")

Measure = Callable[[Point], float]


def savings(
    application: str, points: Sequence[Point], setup: Setup, budgets: Budgets
) -> Iterator[Case]:
    """Yields the least of each measure over the layouts of a family that meet the budgets.

    Measures: scanned rows, and a server's time by the model, with the bytes of the budgets; and
    bytes, also without those of rows that arrive together, with the rows of `SCANNED`.
    """
    most = SCANNED[application]
    few = [one for one in points if scanned_rows(one.design, setup.rows) <= most]
    measures: dict[str, tuple[Sequence[Point], Measure]] = {
        "scanned_rows": (points, lambda one: scanned_rows(one.design, setup.rows)),
        "microseconds": (points, lambda one: 1e6 * one.cost.seconds / setup.clients),
        "bytes": (few, lambda one: one.cost.bytes),
        "uncharged_bytes": (few, lambda one: uncharged(one.design, setup)),
    }
    for measure, (some, value) in measures.items():
        fitting = [one for one in some if budgets.affords(one.cost)]
        enough = [one for one in fitting if budgets.suffices(one.design, one.score)]
        for case in _least(enough, value):
            yield {"what": "saving", "measure": measure, **case}


def _least(points: Sequence[Point], value: Measure) -> Iterator[Case]:
    """Yields the least of a measure of each family, beside that of bins alone."""
    found = {
        family: [(value(one), one.design.describe()) for one in of_family(points, family)]
        for family in _FAMILIES
    }
    for family, values in found.items():
        if values and found["partial"]:
            least, layout = min(values)
            yield {
                "family": family,
                "least": least,
                "times_partial": min(found["partial"])[0] / least,
                "layout": layout,
            }
