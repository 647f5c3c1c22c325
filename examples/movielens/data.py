"""MovieLens: ratings of films by users, and the inferences that they make."""

import csv
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np
import numpy.typing as npt

from examples.common.files import find, missing, open_text
from nescio.errors import FileError

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

LIKED = 4.0
"""The least rating of a film that a user likes."""

_SETS = ("ml-latest-small", "ml-1m", "ml-20m")
_RATINGS = ("ratings.csv", "ratings.dat")
_TITLES = ("movies.csv", "movies.dat")
_LARGEST = 1 << 53  # integers up to here are exact as floats
_SOURCE = (
    "get ml-latest-small.zip, ml-1m.zip or ml-20m.zip from https://grouplens.org/datasets/movielens"
    " and name its folder with --data"
)


@dataclass(frozen=True)
class Ratings:
    """Ratings in the order of users and, for each user, of time.

    `users` and `films` (n,) are numbered from 0 without gaps, `times` (n,) are seconds, `liked`
    (n,) are booleans. `titles` has a title for each film, different for all of them.
    """

    name: str
    users: Integers
    films: Integers
    times: Integers
    liked: Bools
    titles: list[str]

    @property
    def people(self) -> int:
        """The number of users."""
        return int(self.users.max()) + 1

    def of_users(self, count: int, seed: int) -> "Ratings":
        """Returns the ratings of some users, at random, for a table of the same films."""
        chosen = np.random.default_rng(seed).permutation(self.people)[:count]
        own = np.isin(self.users, chosen)
        _, users = np.unique(self.users[own], return_inverse=True)
        films, times, liked = self.films[own], self.times[own], self.liked[own]
        return Ratings(self.name, users, films, times, liked, self.titles)


def load(folder: Path) -> Ratings:
    """Loads a set from its own folder, or from the folder that has it.

    Takes ratings.csv of ml-latest-small and ml-20m, gzipped or not, and ratings.dat of ml-1m, with
    their files of titles. Raises FileError, which says where to get the sets.
    """
    for own in (folder, *(folder / name for name in _SETS)):
        ratings, titles = find(own, _RATINGS), find(own, _TITLES)
        if ratings is not None and titles is not None:
            return _ratings(own.resolve().name, _columns(ratings), titles)
    raise missing(folder, f"{' or '.join(_RATINGS)} and {' or '.join(_TITLES)}", _SOURCE)


def _columns(path: Path) -> Floats:
    """Reads users, films, ratings and times, (n, 4). Raises FileError."""
    try:
        with open_text(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a file without lines
            if ".dat" in path.suffixes:
                lines = (line.replace("::", ",") for line in file)
                values = np.loadtxt(lines, delimiter=",", ndmin=2)
            else:
                values = np.loadtxt(file, delimiter=",", skiprows=1, ndmin=2)
    except ValueError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path}: {error}; expected lines of a user, film, rating, time") from error
    if not values.size:
        raise FileError(f"{path}: found no ratings, expected lines of a user, film, rating, time")
    if values.shape[1] != 4:
        raise FileError(
            f"{path}: found lines of {values.shape[1]} numbers, expected a user, film, rating, time"
        )
    wrong = ~(np.abs(values) < _LARGEST).all(1)  # also nan
    if wrong.any():
        found = ",".join(f"{value:g}" for value in values[np.argmax(wrong)])
        raise FileError(f"{path}: found {found}, expected numbers below 2^53; get the set again")
    return values


def _ratings(name: str, columns: Floats, titles: Path) -> Ratings:
    columns = columns[np.lexsort((columns[:, 3], columns[:, 0]))]
    _, users = np.unique(columns[:, 0], return_inverse=True)
    numbers, films = np.unique(columns[:, 1].astype(np.int64), return_inverse=True)
    times, liked = columns[:, 3].astype(np.int64), columns[:, 2] >= LIKED
    return Ratings(name, users, films, times, liked, _titles(titles, numbers.tolist()))


def _titles(path: Path, numbers: list[int]) -> list[str]:
    """Returns a title for each film; its number is added where another film has it too."""
    if ".dat" in path.suffixes:
        with open_text(path, "latin-1") as file:
            lines = [line.split("::") for line in file if line.strip()]
    else:
        with open_text(path) as file:
            lines = _csv(path, file)[1:]
    names = {}
    for line in lines:
        if len(line) < 2 or not line[0].isdecimal():
            raise FileError(f"{path}: found {line!r:.99}, expected a film, title and genres")
        names[int(line[0])] = " ".join(line[1].split())
    titles = [names.get(number, "") for number in numbers]
    shared = Counter(titles)
    return [
        title if title and shared[title] == 1 else f"{title} #{number}".strip()
        for number, title in zip(numbers, titles, strict=True)
    ]


def _csv(path: Path, file: TextIO) -> list[list[str]]:
    """Parses the lines that are not empty. Raises FileError."""
    try:
        return [line for line in csv.reader(file) if line]
    except csv.Error as error:
        raise FileError(f"{path}: {error}; expected CSV; get the set again") from error


class Split(NamedTuple):
    """The numbers of inferences in three parts; each user's are all in one of them."""

    train: Integers
    valid: Integers
    test: Integers


class Inferences:
    """One inference for each rating: if the user likes this film, after those liked before.

    `films` (n,) were rated by `users` at `times`, and `liked` or not. The history of an inference
    has the films that the user liked in earlier seconds; `lengths` (n,) counts them.
    """

    def __init__(self, ratings: Ratings) -> None:
        self.users, self.films, self.times = ratings.users, ratings.films, ratings.times
        self.liked = ratings.liked
        self._history = self.films[self.liked]
        self._ends = _ends(ratings)
        firsts = np.searchsorted(self.users[self.liked], self.users, side="left")
        self.lengths: Integers = self._ends - firsts

    def __len__(self) -> int:
        """The number of inferences."""
        return len(self.films)

    def rows(self, inferences: Integers, history: int) -> Integers:
        """Returns the rows of some inferences, (k, 1 + history): the film, then its history.

        The film liked last comes first, and at most `history` of them count. Places that are left
        repeat the film itself, which costs nothing: a row that repeats is looked up once.
        """
        film = self.films[inferences][:, None]
        back = np.arange(history)
        at = np.maximum(self._ends[inferences][:, None] - 1 - back, 0)
        present = back < self.lengths[inferences][:, None]
        return np.concatenate([film, np.where(present, self._history[at], film)], axis=1)

    def split(self, seed: int) -> Split:
        """Divides the users at random: 70 % to train, 10 % to validate, 20 % to test with."""
        count = int(self.users.max()) + 1
        order = np.random.default_rng(seed).permutation(count)
        part = np.zeros(count, np.int64)
        part[order[round(0.7 * count) :]] = 1
        part[order[round(0.8 * count) :]] = 2
        return Split(*(np.flatnonzero(part[self.users] == number) for number in range(3)))

    def film_means(self, train: Integers, films: int, prior: float = 5) -> Floats:
        """Returns the fraction of likes of each film in `train`, with `prior` average ratings."""
        liked, rated = self.liked[train], self.films[train]
        likes = np.bincount(rated, liked, films) + prior * liked.mean()
        means: Floats = likes / (np.bincount(rated, minlength=films) + prior)
        return means


def _ends(ratings: Ratings) -> Integers:
    """Returns the end of each rating's history among all films that are liked."""
    seconds, places = np.unique(ratings.times, return_inverse=True)
    moments = ratings.users * len(seconds) + places
    ends: Integers = np.searchsorted(moments[ratings.liked], moments, side="left")
    return ends
