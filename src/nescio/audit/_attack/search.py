"""One search for the columns of some users of a batch, by relaxed-reflect-reflect."""

from functools import partial

from .._arrays import Columns
from .._log.windows import Batch
from .fit import Taken
from .rrr import Found, Search, reflect
from .state import State

__all__ = ["search"]


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
