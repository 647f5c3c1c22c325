"""The layouts of an application's table: what `nescio tune` finds on its log of lookups."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nescio.pir.batch import AccessLog, Budgets, Layout, Trial, Tuning, make_layout, tune

Quality = Callable[[list[npt.NDArray[np.int64]], list[npt.NDArray[np.bool_]]], float]
"""Rates held-out inferences by their rows, and by flags of those that a layout gets."""


class Layouts(NamedTuple):
    """Two layouts, and the search that found them.

    `exact` gets up to `lookups` rows of every inference. `relaxed` is the fastest layout with the
    least quality. Both are within the budgets of `nescio tune`: 300 KB and 300 ms.
    """

    exact: Layout
    relaxed: Layout
    tuning: Tuning


def find_layouts(
    log: AccessLog,
    held_out: AccessLog,
    rows: int,
    row_bytes: int,
    lookups: int,
    *,
    quality: Quality,
    least: float,
    **options: Any,  # noqa: ANN401 - of `tune`
) -> Layouts:
    """Searches layouts for a table of `rows` rows, on the log of its lookups.

    Layouts are made from `log`, and rated by `quality` on `held_out`. `options` are further ones of
    `nescio.pir.batch.tune`. Raises its errors.
    """
    budgets = Budgets(min_quality=least)
    tuning = tune(
        log, rows, row_bytes, held_out=held_out, quality=quality, budgets=budgets, **options
    )
    exact = [t for t in tuning.trials if t.design.lookups >= lookups and budgets.affords(t.cost)]
    layout = tuning.layout(min(exact, key=_time)) if exact else _exact(rows, log, lookups)
    return Layouts(layout, tuning.layout(), tuning)


def _time(trial: Trial) -> float:
    return trial.cost.seconds


def _exact(rows: int, log: AccessLog, lookups: int) -> Layout:
    return make_layout(rows, log, lookups=lookups)
