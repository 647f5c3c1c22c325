"""The data of the experiments, from files that the user has: MNIST and WikiText-2."""

import gzip
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nescio.errors import ArgumentError

DEFAULT = "../shared/data"

Images = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]

_SIDE = 28
_MAX_BYTES = 1 << 28  # size of an unpacked file
_UNKNOWN, _END = "<unk>", "<eos>"


@dataclass(frozen=True)
class Digits:
    """MNIST: images (n, 784) with values from 0 to 1, and labels from 0 to 9."""

    train: tuple[Images, Labels]
    test: tuple[Images, Labels]


@dataclass(frozen=True)
class Text:
    """A text as indices of words; a line ends with a word of its own."""

    words: int
    train: Labels
    valid: Labels
    test: Labels


def folder(given: str | None, name: str) -> Path:
    """Returns the folder of a data set: in the given folder, in NESCIO_DATA, or in the default.

    Raises ArgumentError if it does not exist.
    """
    path = Path(given or os.environ.get("NESCIO_DATA") or DEFAULT) / name
    if not path.is_dir():
        raise ArgumentError(
            f"{path}: the folder does not exist; expected the files of {name}. --data or "
            f"NESCIO_DATA names the folder that contains {name!r}"
        )
    return path


def read_digits(path: Path, most: int | None = None) -> Digits:
    """Reads MNIST from its four IDX files, gzipped or not; the first `most` images if given.

    Raises ArgumentError for files that are missing or invalid.
    """
    parts = []
    for stem in ("train", "t10k"):
        images = _idx(path, f"{stem}-images-idx3-ubyte", 3)
        labels = _idx(path, f"{stem}-labels-idx1-ubyte", 1)
        if images.shape[1:] != (_SIDE, _SIDE) or len(labels) != len(images) or labels.max() > 9:
            raise ArgumentError(
                f"{path}, {stem}: found images {images.shape} and labels {labels.shape}, expected "
                f"(n, {_SIDE}, {_SIDE}) and (n,), labels 0 to 9"
            )
        flat = images[:most].reshape(-1, _SIDE * _SIDE).astype(np.float32) / np.float32(255)
        parts.append((flat, labels[:most].astype(np.int64)))
    return Digits(*parts)


def read_text(path: Path, most: int | None = None) -> Text:
    """Reads WikiText-2 from its files of words; the first `most` words of each if given.

    A word that does not occur in the training file becomes <unk>. Raises ArgumentError for files
    that are missing or not text.
    """
    texts = [_words(path, stem)[:most] for stem in ("train", "valid", "test")]
    numbers: dict[str, int] = {_UNKNOWN: 0, _END: 1}
    for word, _ in sorted(_counts(texts[0]).items(), key=lambda pair: -pair[1]):
        numbers.setdefault(word, len(numbers))  # by frequency, as adaptive softmax requires
    coded = [
        np.fromiter((numbers.get(word, 0) for word in text), np.int64, len(text)) for text in texts
    ]
    return Text(len(numbers), *coded)


def _counts(text: list[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for word in text:
        counts[word] = counts.get(word, 0) + 1
    return counts


def _words(path: Path, stem: str) -> list[str]:
    for name in (f"{stem}.txt", f"{stem}.txt.gz", f"wiki.{stem}.tokens"):
        if (path / name).exists():
            try:
                lines = _content(path / name).decode().splitlines()
            except UnicodeDecodeError as error:
                raise ArgumentError(f"{path / name} is not text: {error}") from error
            return [word for line in lines for word in (*line.split(), _END)]
    raise ArgumentError(f"{path}: {stem}.txt or {stem}.txt.gz does not exist")


def _idx(path: Path, name: str, axes: int) -> npt.NDArray[np.uint8]:
    """Reads an array of bytes in IDX format: 0, 0, 8, number of axes, their lengths, the bytes."""
    for file in (path / name, path / f"{name}.gz"):
        if file.exists():
            content = _content(file)
            head = 4 + 4 * axes
            if len(content) >= head and content[:4] == bytes([0, 0, 8, axes]):
                shape = np.frombuffer(content, ">u4", axes, 4).astype(np.int64)
                if len(content) == head + int(shape.prod()):
                    return np.frombuffer(content, np.uint8, offset=head).reshape(shape)
            raise ArgumentError(f"{file}: expected an IDX file of bytes with {axes} axes")
    raise ArgumentError(f"{path}: {name} or {name}.gz does not exist")


def _content(file: Path) -> bytes:
    """Returns a file's unpacked bytes. Raises ArgumentError if it is unreadable or too large."""
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            content: bytes = stream.read(_MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ArgumentError(f"{file} cannot be read: {error}") from error
    if len(content) > _MAX_BYTES:
        raise ArgumentError(f"{file}: found more than {_MAX_BYTES:,} bytes, the maximum")
    return content
