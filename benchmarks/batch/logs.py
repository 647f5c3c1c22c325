"""Access logs of real data: films that people rated, and words of articles."""

import argparse
import csv
import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks._main import make_folder
from nescio.errors import FileError
from nescio.pir.batch import AccessLog

__all__ = ["LOGS", "RealLog", "movielens", "run", "wikitext2"]

_LIKED = 4.0
_FEWEST = 5
_SEED = 18


class RealLog(NamedTuple):
    """A log to make layouts from, one to score them on (or None), and the table's sizes."""

    log: AccessLog
    held_out: AccessLog | None
    rows: int
    row_bytes: int


def run(arguments: argparse.Namespace) -> int:
    """Writes the logs as files for `nescio tune`, and prints the sizes of their tables."""
    folder = make_folder(arguments.out)
    for name in arguments.logs:
        real = LOGS[name](Path(arguments.data))
        files = [folder / f"{name}.npz"]
        real.log.save(files[0])
        if real.held_out is not None:
            files.append(folder / f"{name}-held-out.npz")
            real.held_out.save(files[1])
        print(f"{', '.join(map(str, files))}: {real.log!r}")
        print(f"  --rows {real.rows} --row-bytes {real.row_bytes}")
    return 0


def movielens(folder: Path, last: int = 72, per_user: int = 10) -> RealLog:
    """Makes inferences from the ratings of ml-latest-small: the films that a user liked last.

    An inference has up to `last` films that a user had rated 4 or more at some time; up to
    `per_user` times are drawn for each user. Rows have 128 bytes. Raises FileError.
    """
    path = folder / "movielens" / "ml-latest-small" / "ratings.csv.gz"
    ratings = [
        (int(line["userId"]), int(line["timestamp"]), int(line["movieId"]), float(line["rating"]))
        for line in csv.DictReader(_lines(path))
    ]
    films = {film: row for row, film in enumerate(sorted({film for _, _, film, _ in ratings}))}
    random = np.random.default_rng(_SEED)
    sets, users, times = [], [], []
    liked: dict[int, list[tuple[int, int]]] = {}
    for user, time, film, rating in sorted(ratings):
        if rating >= _LIKED:
            liked.setdefault(user, []).append((time, films[film]))
    for user, own in liked.items():
        ends = np.arange(_FEWEST, len(own) + 1)
        for end in sorted(random.permutation(ends)[:per_user]):
            sets.append([row for _, row in own[max(0, end - last) : end]])
            users.append(user)
            times.append(own[end - 1][0])
    return RealLog(AccessLog(sets, users, times), None, len(films), 128)


def wikitext2(folder: Path, window: int = 35, *, stream: bool = False) -> RealLog:
    """Makes inferences from WikiText-2: windows of the words of the training and validation parts.

    With `stream`, each part is one user's text, in the order of time, for a cache. Rows have 512
    bytes. Raises FileError.
    """
    rows: dict[str, int] = {}
    logs = []
    for part in ("train", "valid"):
        words = [
            rows.setdefault(word, len(rows))
            for line in _lines(folder / "wikitext2" / f"{part}.txt.gz")
            for word in (*line.split(), "<eos>")
        ]
        sets = np.array(words[: len(words) // window * window]).reshape(-1, window)
        order = np.arange(len(sets))
        logs.append(AccessLog(sets, np.zeros(len(sets)), order) if stream else AccessLog(sets))
    return RealLog(logs[0], logs[1], len(rows), 512)


def _lines(path: Path) -> Iterator[str]:
    try:
        with gzip.open(path) as file:
            yield from io.TextIOWrapper(file, encoding="utf-8")
    except (OSError, EOFError) as error:
        raise FileError(
            f"{path} cannot be read: {error}; --data names the folder of the data sets"
        ) from error


LOGS = {
    "movielens": movielens,
    "wikitext2": wikitext2,
    "wikitext2-stream": lambda folder: wikitext2(folder, stream=True),
}
