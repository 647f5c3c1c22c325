"""Taobao's ads: clicks or impressions of ads by users, with profiles of both."""

import csv
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

import numpy as np
import numpy.typing as npt

from examples.common.files import find, missing, open_text
from nescio.errors import FileError

Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

PROFILE = (
    "cms_segid",
    "cms_group_id",
    "final_gender_code",
    "age_level",
    "pvalue_level",
    "shopping_level",
    "occupation",
    "new_user_class_level",
)
"""The fields of a user's profile, as the data set names them; the first is the user's segment."""

_LARGEST = 1 << 53  # integers up to here are exact as floats
_MOST = 1 << 24  # rows of a table
_CLICKS = ("train.txt", "test.txt", "u.item", "u.user")
_RAW = ("raw_sample.csv", "ad_feature.csv", "user_profile.csv")
_SOURCE = (
    "get raw_sample.csv, ad_feature.csv and user_profile.csv from "
    "https://tianchi.aliyun.com/dataset/56, or a set of clicks, train.txt, test.txt, u.item and "
    "u.user, from data/taobao of https://github.com/project-NFA/NFA-Pytorch, and name the folder "
    "with --data"
)


@dataclass(frozen=True)
class Events:
    """Clicks, or impressions, of ads by users: their numbers count from 0.

    `users`, `ads`, `times` (seconds) and `clicked` have the shape (n,). In a set of clicks, all
    are `clicked`, `times` is None, and `held_out` (n,) marks those to test with; otherwise
    `held_out` is None. `categories` and `brands` are those of the ads, `profiles` (people, 8) the
    values of PROFILE for each user.
    """

    name: str
    users: Integers
    ads: Integers
    clicked: Bools
    times: Integers | None
    held_out: Bools | None
    categories: Integers
    brands: Integers
    profiles: Integers

    def of_users(self, count: int, seed: int) -> "Events":
        """Returns the events of some users, at random, with new numbers; of all if they are few."""
        people = len(self.profiles)
        if count >= people:
            return self
        chosen = np.sort(np.random.default_rng(seed).permutation(people)[:count])
        own = np.isin(self.users, chosen)
        return replace(
            self,
            users=np.searchsorted(chosen, self.users[own]),
            ads=self.ads[own],
            clicked=self.clicked[own],
            times=None if self.times is None else self.times[own],
            held_out=None if self.held_out is None else self.held_out[own],
            profiles=self.profiles[chosen],
        )


def load(folder: Path) -> Events:
    """Loads a set of clicks, or the raw log of impressions, gzipped or not.

    Raises FileError, which says where to get them.
    """
    for names, loader in ((_RAW, _load_raw), (_CLICKS, _load_clicks)):
        paths = [find(folder, [name]) for name in names]
        if all(paths):
            return loader(*paths)  # type: ignore[arg-type]
    expected = f"{' and '.join(_RAW)}, or {' and '.join(_CLICKS)}"
    raise missing(folder, expected, _SOURCE)


# ---- the set of clicks ---------------------------------------------------------------------------


def _load_clicks(train: Path, test: Path, ads: Path, people: Path) -> Events:
    features = _table(ads, 4, "an ad, its category, brand and price level")
    profiles = _table(people, 1 + len(PROFILE), "a user and eight fields of the profile")
    parts = [_clicks(path, len(profiles), len(features)) for path in (train, test)]
    clicks = np.concatenate(parts, axis=1)
    _, kept = np.unique(clicks[:, ::-1], axis=1, return_index=True)
    kept = np.sort(clicks.shape[1] - 1 - kept)  # each click once, those of both parts to test with
    users, items = clicks[:, kept]
    return Events(
        "clicks of Taobao",
        users,
        items,
        clicked=np.ones(len(users), bool),
        times=None,
        held_out=kept >= parts[0].shape[1],
        categories=features[:, 1],
        brands=features[:, 2],
        profiles=profiles[:, 1:],
    )


def _table(path: Path, columns: int, expected: str) -> Integers:
    """Reads lines that are numbered from 0, (n, columns). Raises FileError."""
    lines = _integers(path, expected)
    found = {len(line) for line in lines}
    if found != {columns}:
        raise FileError(
            f"{path}: found lines of {sorted(found)} numbers, expected {columns}: {expected}"
        )
    table = np.array(lines, np.int64)
    if (table[:, 0] != np.arange(len(table))).any():
        raise FileError(
            f"{path}: found lines out of order, expected the numbers from 0 to {len(table) - 1} "
            f"first, one a line: {expected}"
        )
    if table.min() < 0 or table.max() >= _MOST:
        raise FileError(
            f"{path}: found numbers from {table.min()} to {table.max()}, expected 0 to {_MOST - 1}"
        )
    return table


def _clicks(path: Path, people: int, ads: int) -> Integers:
    """Reads lines of a user and clicked ads: the users and ads of the clicks, (2, n)."""
    expected = "lines of a user and the ads that the user clicked"
    lines = _integers(path, expected)
    users = np.repeat([line[0] for line in lines], [len(line) - 1 for line in lines])
    clicks = np.array([users, [ad for line in lines for ad in line[1:]]], np.int64)
    if not clicks.size:
        raise FileError(f"{path}: found no clicks, expected {expected}")
    for found, size, kind in ((clicks[0], people, "users"), (clicks[1], ads, "ads")):
        if found.min() < 0 or found.max() >= size:
            raise FileError(
                f"{path}: found {kind} from {found.min()} to {found.max()}, expected {kind} from 0 "
                f"to {size - 1}"
            )
    return clicks


def _integers(path: Path, expected: str) -> list[list[int]]:
    """Reads lines of integers with spaces between them. Raises FileError."""
    try:
        with open_text(path) as file:
            lines = [list(map(int, line.split())) for line in file if line.strip()]
    except ValueError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path}: {error}; expected {expected}") from error
    if any(abs(number) >= _LARGEST for line in lines for number in line):
        raise FileError(f"{path}: found a number of 2^53 or more, expected {expected}")
    return lines


# ---- the raw log ---------------------------------------------------------------------------------


def _load_raw(log: Path, ads: Path, people: Path) -> Events:
    shown = _columns(log, ("user", "time_stamp", "adgroup_id", "clk"))
    if not np.isin(shown[:, 3], (0, 1)).all():
        raise FileError(f"{log}: found clk other than 0 and 1; get the file again")
    features = _columns(ads, ("adgroup_id", "cate_id", "brand"))
    given = _columns(people, ("userid", *PROFILE))
    numbers, users = np.unique(shown[:, 0], return_inverse=True)
    known = np.isin(given[:, 0], numbers)
    profiles = np.zeros((len(numbers), len(PROFILE)), np.int64)  # 0: not known
    for field, values in enumerate(given[known, 1:].T):
        place = np.searchsorted(numbers, given[known, 0])
        _, level = np.unique(values, return_inverse=True)
        profiles[place, field] = 1 + level
    features = features[np.argsort(features[:, 0])]
    items = np.searchsorted(features[:, 0], shown[:, 2])
    absent = features[np.minimum(items, len(features) - 1), 0] != shown[:, 2]
    if absent.any():
        raise FileError(
            f"{ads}: found no ad {shown[absent, 2][0]}, expected every ad of {log.name}; get both "
            "files from the same place"
        )
    _, categories = np.unique(features[:, 1], return_inverse=True)
    _, brands = np.unique(features[:, 2], return_inverse=True)
    return Events(
        "Taobao's log of impressions",
        users,
        items,
        clicked=shown[:, 3] == 1,
        times=shown[:, 1],
        held_out=None,
        categories=categories,
        brands=brands,
        profiles=profiles,
    )


def _columns(path: Path, names: Sequence[str]) -> Integers:
    """Reads columns of a CSV file of integers, (n, columns); -1 is a value that is not given."""
    expected = f"lines of numbers under {', '.join(names)}; get the file again"
    try:
        with open_text(path) as file:
            header = [name.strip() for name in next(csv.reader(file), [])]
            if missed := [name for name in names if name not in header]:
                raise FileError(f"{path}: found no column {missed[0]!r}, expected {expected}")
            places = [header.index(name) for name in names]
            values = _long(file, places) if "clk" in names else _with_gaps(file, places)
    except (ValueError, IndexError, OverflowError, csv.Error) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path}: {error}; expected {expected}") from error
    if not len(values):
        raise FileError(f"{path}: found no lines, expected {expected}")
    if np.abs(values).max() >= _LARGEST:
        raise FileError(f"{path}: found a number of 2^53 or more, expected {expected}")
    return values


def _long(file: TextIO, places: list[int]) -> Integers:
    """Reads the millions of lines of the log, which has no gaps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a file without lines
        return np.loadtxt(file, np.int64, delimiter=",", usecols=places, ndmin=2)


def _with_gaps(file: TextIO, places: list[int]) -> Integers:
    lines = [[_number(line[at]) for at in places] for line in csv.reader(file) if line]
    return np.array(lines, np.int64)


def _number(text: str) -> int:
    return int(float(text)) if text.strip() not in {"", "NULL"} else -1
