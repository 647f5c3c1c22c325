"""Tells clients apart, and admits them."""

import math
from collections.abc import Hashable
from typing import NamedTuple

from starlette.requests import Request

from ..._arrays import shown
from ...errors import ArgumentError
from .. import _quotas as refuse
from .._requests import client_of
from ._budgets import Budgets
from ._keys import ClientKeys

_SCHEME = "bearer "


class Asking(NamedTuple):
    """A client that asks: its name in the queue, and its budget in keys a second, if any."""

    client: Hashable
    budget: float | None


class Access:
    """The clients of a service: by key, or by address if they have none.

    Without `keys`, nobody needs one, and those that are sent are ignored. `anonymous` also admits
    clients without a key; a wrong key is refused always. `budget` is the number of keys a second of
    each client whose line in the file has none.

    Raises ArgumentError for an invalid budget.
    """

    def __init__(
        self,
        keys: ClientKeys | None = None,
        *,
        anonymous: bool = False,
        budget: float | None = None,
    ) -> None:
        if budget is not None and not (math.isfinite(budget) and budget > 0):
            raise ArgumentError(
                f"the budget of clients: found {shown(budget)}, expected keys a second, more than 0"
            )
        self.keys = keys
        self._anonymous = anonymous
        self._budget = budget
        self._budgets = Budgets()

    def enter(self, request: Request) -> Asking:
        """Returns who asks. Raises RefusedError if it may not ask, or has spent its budget."""
        asking = self._asking(request)
        if asking.budget is not None:
            self._budgets.check(asking.client, asking.budget)
        return asking

    def spend(self, asking: Asking, keys: int) -> None:
        """Takes keys from a client's budget. Raises RefusedError if it has nothing left."""
        if asking.budget is not None:
            self._budgets.spend(asking.client, asking.budget, keys)

    def _asking(self, request: Request) -> Asking:
        if self.keys is None:
            return Asking(client_of(request), self._budget)
        given = request.headers.get("authorization")
        if given is None:
            if not self._anonymous:
                raise refuse.not_a_client("this server answers clients with a key only")
            return Asking(client_of(request), self._budget)
        known = None
        if given[: len(_SCHEME)].lower() == _SCHEME:
            known = self.keys.find(given[len(_SCHEME) :].strip())
        if known is None:
            raise refuse.not_a_client("this server does not know the key of this client")
        return Asking(("key", known.name), known.budget or self._budget)
