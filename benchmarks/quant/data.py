"""The data of the chapter's experiments, from files that the user has: MNIST and WikiText-2."""

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
_MOST_BYTES = 1 << 28  # of a file, unpacked
_UNKNOWN, _END = "<unk>", "<eos>"


@dataclass(frozen=True)
class Digits:
    """MNIST: images (n, 784) with values 0 to 1, and what they show, 0 to 9."""

    train: tuple[Images, Labels]
    test: tuple[Images, Labels]


@dataclass(frozen=True)
class Text:
    """A text as numbers of words; a line ends with a word of its own."""

    words: int
    train: Labels
    valid: Labels
    test: Labels


def folder(given: str | None, name: str) -> Path:
    """Where a set is: in the folder given, that of NESCIO_DATA, or the default.

    Raises ArgumentError if it is not there.
    """
    path = Path(given or os.environ.get("NESCIO_DATA") or DEFAULT) / name
    if not path.is_dir():
        raise ArgumentError(
            f"{path}: found no such folder, expected the files of {name} (--data, or NESCIO_DATA, "
            f"names the folder that has a folder {name!r})"
        )
    return path


def read_digits(path: Path, most: int | None = None) -> Digits:
    """MNIST from its four files of IDX, gzipped or not; the first `most` of each, if given.

    Raises ArgumentError for files that are not there or not these.
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
    """WikiText-2 from train, valid and test files of words; the first `most` words of each.

    A word of valid or test that train has not is <unk>. Raises ArgumentError for files that are
    not there or not text.
    """
    texts = [_words(path, stem)[:most] for stem in ("train", "valid", "test")]
    numbers: dict[str, int] = {_UNKNOWN: 0, _END: 1}
    for word, _ in sorted(_counts(texts[0]).items(), key=lambda pair: -pair[1]):
        numbers.setdefault(word, len(numbers))  # frequent ones first, as adaptive softmax wants
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
                raise ArgumentError(f"{path / name} is no text: {error}") from error
            return [word for line in lines for word in (*line.split(), _END)]
    raise ArgumentError(f"{path}: found no {stem}.txt or {stem}.txt.gz")


def _idx(path: Path, name: str, axes: int) -> npt.NDArray[np.uint8]:
    """An array of bytes of the IDX format: 0, 0, 8, its axes, their lengths, the bytes."""
    for file in (path / name, path / f"{name}.gz"):
        if file.exists():
            content = _content(file)
            head = 4 + 4 * axes
            if len(content) >= head and content[:4] == bytes([0, 0, 8, axes]):
                shape = np.frombuffer(content, ">u4", axes, 4).astype(np.int64)
                if len(content) == head + int(shape.prod()):
                    return np.frombuffer(content, np.uint8, offset=head).reshape(shape)
            raise ArgumentError(f"{file}: found no IDX file of bytes with {axes} axes")
    raise ArgumentError(f"{path}: found no {name} or {name}.gz")


def _content(file: Path) -> bytes:
    """A file's bytes, unpacked. Raises ArgumentError for what cannot be read or is too much."""
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            content: bytes = stream.read(_MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ArgumentError(f"{file} cannot be read: {error}") from error
    if len(content) > _MOST_BYTES:
        raise ArgumentError(f"{file}: found more than {_MOST_BYTES:,} bytes")
    return content
