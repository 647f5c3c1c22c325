"""Five tables in one: where the rows of an inference are."""

from dataclasses import dataclass

import numpy as np

from examples.taobao.data import PROFILE, Events, Integers
from examples.taobao.inferences import Inferences

TABLES = ("ads", "categories", "brands", "segments", "fields")
"""The tables. All have rows of one size, and are parts of one: `fields` has the fields of profiles
except for the segment, one after the other."""

_FIELDS = len(PROFILE) - 1
AD, CATEGORY, BRAND, SEGMENT = range(4)
FIELDS = slice(4, 4 + _FIELDS)
FIXED = 4 + _FIELDS
"""Places of an inference before its history."""


@dataclass(frozen=True)
class Places:
    """The places of an inference with a history of some length, by table.

    First come the ad that is scored, its category and brand, the segment and the fields of the
    user, then the ads of the history, then their categories, then their brands.
    """

    history: int

    @property
    def count(self) -> int:
        """The rows of an inference."""
        return FIXED + 3 * self.history

    def past(self, kind: int) -> slice:
        """Returns the places of the ads (0), categories (1) or brands (2) of the history."""
        return slice(FIXED + kind * self.history, FIXED + (kind + 1) * self.history)

    def of_table(self, number: int) -> list[int]:
        """Returns the places whose rows are of a table."""
        numbers = range(self.count)
        if number < SEGMENT:
            return [number, *numbers[self.past(number)]]
        return [SEGMENT] if number == SEGMENT else list(numbers[FIELDS])


class Tables:
    """The tables of some events, joined: table i has the rows from `firsts[i]` to `firsts[i + 1]`.

    Rows are numbered over all tables.
    """

    def __init__(self, events: Events, history: int) -> None:
        levels = events.profiles.max(axis=0) + 1
        ads, categories = len(events.categories), int(events.categories.max()) + 1
        sizes = [ads, categories, int(events.brands.max()) + 1, levels[0], levels[1:].sum()]
        self.firsts: Integers = np.concatenate([[0], np.cumsum(sizes)])
        self.places = Places(history)
        _, first_category, first_brand, first_segment, first_field, _ = self.firsts
        self._ads = np.stack(
            [np.arange(ads), first_category + events.categories, first_brand + events.brands]
        )
        fields = np.concatenate([[0], np.cumsum(levels[1:-1])])
        self._profiles = events.profiles + np.concatenate([[first_segment], first_field + fields])

    @property
    def sizes(self) -> dict[str, int]:
        """The rows of each table."""
        return dict(zip(TABLES, np.diff(self.firsts).tolist(), strict=True))

    def __len__(self) -> int:
        """The rows of all tables."""
        return int(self.firsts[-1])

    def rows(self, inferences: Inferences) -> Integers:
        """Returns the rows of some inferences, (n, places).

        An empty place of the history repeats the row of the category of the ad that is scored,
        which no ad has and which is looked up anyway.
        """
        own = self._ads[:, inferences.ads].T
        past = inferences.history(self.places.history)
        empty = own[:, CATEGORY, None]
        history = [np.where(past >= 0, rows[past], empty) for rows in self._ads]
        return np.concatenate([own, self._profiles[inferences.users], *history], axis=1)
