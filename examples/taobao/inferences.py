"""The inferences of the click model: an ad, the ads that the user clicked before, the label."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from examples.taobao.data import Bools, Events, Integers
from nescio.errors import ArgumentError

_VALID = 0.1  # of the clicks of the training: those that the epoch and the layouts are chosen by
_TRIES = 100  # of drawing an ad that a user has not clicked
_DAYS = 8  # of the log of impressions: the last is to test with, the one before to validate


@dataclass(frozen=True)
class Inferences:
    """Ads that are scored for users, each after a history of clicked ads.

    `users`, `ads` and the labels `clicked` have the shape (n,). The history of an inference is a
    part of `clicks`, where the clicks of a user are together: those from `first` up to `end`,
    without the one at `own` (-1: none). `times` (n,) are seconds, or None.
    """

    users: Integers
    ads: Integers
    clicked: Bools
    first: Integers
    end: Integers
    own: Integers
    clicks: Integers
    times: Integers | None = None

    def __len__(self) -> int:
        """The number of inferences."""
        return len(self.users)

    def __getitem__(self, numbers: Integers | slice) -> "Inferences":
        """Returns some of the inferences."""
        names = ("users", "ads", "clicked", "first", "end", "own")
        taken = {name: getattr(self, name)[numbers] for name in names}
        times = None if self.times is None else self.times[numbers]
        return replace(self, times=times, **taken)

    @property
    def lengths(self) -> Integers:
        """The number of clicks in each history."""
        return self.end - self.first - (self.own >= 0)

    def history(self, places: int) -> Integers:
        """Returns the ads of the histories, (n, places), the latest first; -1 is an empty place."""
        at = self.end[:, None] - 1 - np.arange(places)
        at = at - ((self.own[:, None] >= 0) & (at <= self.own[:, None]))
        present = at >= self.first[:, None]
        return np.where(present, self.clicks[np.where(present, at, 0)], -1)

    def shuffled(self, random: np.random.Generator) -> "Inferences":
        """Returns the inferences in a random order, so that the first of them are a fair sample."""
        return self[random.permutation(len(self))]


class Split(NamedTuple):
    """Inferences to train with, to choose the epoch and the layouts by, and to test with."""

    train: Inferences
    valid: Inferences
    test: Inferences


def split(events: Events, seed: int) -> Split:
    """Divides events: a set of clicks as it was given, a log of impressions by time.

    No click that is held out is in a history. Of a set of clicks, the ads that were not clicked are
    drawn (`with_negatives`), for the training in each epoch anew: its part `train` has clicks only.
    """
    if events.times is None:
        return _split_clicks(events, seed)
    return _split_impressions(events, events.times, seed)


def _split_clicks(events: Events, seed: int) -> Split:
    """Puts a user's clicks in the order train, valid, test; histories are what comes before.

    The click that is predicted in the training is left out of its own history.
    """
    assert events.held_out is not None
    random = np.random.default_rng(seed)
    people, count = len(events.profiles), len(events.users)
    part = np.where(events.held_out, 2, random.random(count) < _VALID)
    order = np.lexsort((random.random(count), part, events.users))
    users, ads, part = events.users[order], events.ads[order], part[order]
    first = np.searchsorted(users, np.arange(people))
    ends = [first + np.bincount(users[part < number], minlength=people) for number in (1, 2)]

    def inferences(number: int) -> Inferences:
        places = np.flatnonzero(part == number)
        own = users[places]
        left_out = places if number == 0 else np.full(len(places), -1)
        end = ends[number // 2][own]
        labels = np.ones(len(places), bool)
        return Inferences(own, ads[places], labels, first[own], end, left_out, ads)

    train, valid, test = map(inferences, range(3))
    known = _pairs(events, ~events.held_out)
    return Split(
        train,
        with_negatives(valid, known, random).shuffled(random),
        with_negatives(test, _pairs(events, slice(None)), random).shuffled(random),
    )


def _pairs(events: Events, part: Bools | slice) -> Integers:
    """Returns the sorted numbers of the pairs of users and ads in a part of the clicks."""
    return np.unique(pair(events.users[part], events.ads[part]))


def pair(users: Integers, ads: Integers) -> Integers:
    """Returns a number for each pair of a user and an ad."""
    return (users << 32) | ads


def with_negatives(clicks: Inferences, known: Integers, random: np.random.Generator) -> Inferences:
    """Adds an ad that the user did not click to each click, with the same history.

    The ads that are added are those of the same clicks in another order, so an ad is shown without
    a click as often as with one: its popularity says nothing. Pairs in `known`, which are sorted,
    are clicks of that user, and drawn again. Raises ArgumentError where that finds no other ad.
    """
    drawn = random.permutation(clicks.ads)
    again = np.arange(len(drawn))
    for _ in range(_TRIES):
        again = again[_are_in(pair(clicks.users[again], drawn[again]), known)]
        if not len(again):
            break
        drawn[again] = random.choice(clicks.ads, len(again))
    else:
        raise ArgumentError(
            f"--data: found a user who clicked nearly all of {len(np.unique(clicks.ads))} ads, "
            "expected some ads that a user did not click"
        )
    both = clicks[np.tile(np.arange(len(clicks)), 2)]
    labels = np.arange(len(both)) < len(clicks)
    return replace(both, ads=np.concatenate([clicks.ads, drawn]), clicked=labels)


def _are_in(values: Integers, ordered: Integers) -> Bools:
    places = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    found: Bools = ordered[places] == values
    return found


def _split_impressions(events: Events, times: Integers, seed: int) -> Split:
    """Divides a log by time; the history of an impression has the clicks of earlier seconds."""
    order = np.lexsort((times, events.users))
    users, ads, times = events.users[order], events.ads[order], times[order]
    clicked = events.clicked[order]
    seconds = times - times.min()
    moments = _moments(users, seconds)
    end = np.searchsorted(moments[clicked], moments, side="left")
    first = np.searchsorted(users[clicked], users, side="left")
    none = np.full(len(users), -1)
    whole = Inferences(users, ads, clicked, first, end, none, ads[clicked], times)
    day = seconds // -(-(int(seconds.max()) + 1) // _DAYS)
    test, valid = day == _DAYS - 1, day == _DAYS - 2
    parts = (np.flatnonzero(part) for part in (~(test | valid), valid, test))
    random = np.random.default_rng(seed)
    return Split(*(whole[part].shuffled(random) for part in parts))


def _moments(users: Integers, seconds: Integers) -> Integers:
    """Numbers pairs of users and seconds in their order."""
    found, places = np.unique(seconds, return_inverse=True)
    moments: Integers = users * len(found) + places
    return moments
