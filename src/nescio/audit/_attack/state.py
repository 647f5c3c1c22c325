"""The state of a search with counts: the columns found so far, their tests, and one search."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from .._arrays import Columns, IntArray
from .._log.record import Log
from .._log.windows import Batch, batches, log_choices
from .fit import Fit, Taken
from .options import Options
from .rrr import Found, Search, reflect
from .span import Subspace

__all__ = ["State", "search"]


@dataclass(eq=False, slots=True)
class State:
    """The best columns found so far, uint8 (users, rounds), in `subspace`.

    `active`: users who took part, in `batches`. `fit`: the test of a column. `deadline`: of the
    monotonic clock. `method`: the methods that found the columns.
    """

    log: Log
    subspace: Subspace
    active: IntArray
    options: Options
    deadline: float
    batches: list[Batch]
    fit: Fit
    rng: np.random.Generator
    columns: Columns
    method: str = "reflect"

    @classmethod
    def of(
        cls, log: Log, subspace: Subspace, active: IntArray, options: Options, deadline: float
    ) -> "State":
        """Returns the state before the search, without columns."""
        assert log.counts is not None
        grouped = list(batches(log.windows, log.counts, log.count_error, active))
        choices = np.zeros(log.users)
        for batch in grouped:
            choices[batch.users] = log_choices(batch, log.empty)
        return cls(
            log,
            subspace,
            active,
            options,
            deadline,
            grouped,
            Fit(log.windows, log.counts, log.count_error, choices, subspace),
            np.random.default_rng(options.seed),
            np.zeros((log.users, log.rounds), np.uint8),
        )


def search(
    state: State,
    part: Batch,
    how: Search,
    taken: Columns | None = None,
    *,
    outside: bool = False,
) -> Found:
    """Searches for columns other than the rows of `taken`; with `outside`, outside their span."""
    known = frozenset() if taken is None else frozenset(one.tobytes() for one in taken)
    free = Taken(known, taken if outside else None)
    accept = partial(state.fit.accept, part.users, free)
    return reflect(state.subspace, part, state.log.empty, accept, rng=state.rng, search=how)
