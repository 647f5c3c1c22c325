"""The vocabulary and the shape of a model, in a file beside what is exported."""

import json
from dataclasses import asdict
from pathlib import Path

from examples.wikitext2.data import END, UNKNOWN
from examples.wikitext2.model import Shape
from nescio.errors import FileError

_NAME = "language.json"
_LARGEST = 1 << 20


def save(folder: Path, words: list[str], shape: Shape) -> None:
    """Writes the file into a folder. Raises FileError if that fails."""
    path = folder / _NAME
    try:
        path.write_text(json.dumps({"shape": asdict(shape), "words": words}), encoding="utf-8")
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror}") from error


def load(folder: Path) -> tuple[list[str], Shape]:
    """Reads the words and the shape. Raises FileError for a folder of no earlier run."""
    path = folder / _NAME
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        shape = Shape(**found["shape"] | {"cuts": tuple(found["shape"]["cuts"])})
        words = [str(word) for word in found["words"]]
        _check(shape, words)
    except OSError as error:
        raise FileError(
            f"--folder: {path} cannot be read ({error.strerror}), expected the folder of an "
            "earlier run; without --folder, a small model is trained first"
        ) from error
    except (ValueError, TypeError, KeyError) as error:
        raise FileError(
            f"{path}: {error!r}; run the application again, into a new folder"
        ) from error
    return words, shape


def _check(shape: Shape, words: list[str]) -> None:
    """Raises ValueError for what no run writes."""
    if not {END, UNKNOWN} <= set(words):
        raise ValueError(f"found {len(words)} words, expected {END} and {UNKNOWN} among them")
    sizes = [shape.hidden, shape.width, shape.layers, *shape.cuts]
    if not all(type(size) is int and 0 < size <= _LARGEST for size in sizes):
        raise ValueError(f"found sizes {sizes}, expected integers from 1 to {_LARGEST}")
    if list(shape.cuts) != sorted(set(shape.cuts)):
        raise ValueError(f"found cuts {shape.cuts}, expected rising ones")
