"""Inputs of a model from files: arrays, and images."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._arrays import check_file, load_array
from ..errors import ArgumentError, FileError

__all__ = ["Input", "Scaling", "read_inputs", "read_labels"]

Floats = npt.NDArray[np.float64]
_KINDS = {1: "L", 3: "RGB"}


class Input(NamedTuple):
    """An input (*shape), and the name by which it is printed."""

    name: str
    values: Floats


class Scaling(NamedTuple):
    """Numbers of each channel: a pixel p from 0 to 1 becomes (p - mean) / deviation."""

    mean: Sequence[float] | None
    deviation: Sequence[float] | None

    def of(self, pixels: Floats) -> Floats:
        """Scales pixels (channels, height, width)."""
        mean = self._numbers("mean", self.mean, 0.0, len(pixels))
        return (pixels - mean) / self._numbers("deviation", self.deviation, 1.0, len(pixels))

    @staticmethod
    def _numbers(name: str, own: Sequence[float] | None, default: float, count: int) -> Floats:
        values = np.full(count, default) if own is None else np.array(own, np.float64)
        if values.shape != (count,):
            raise ArgumentError(
                f"--{name}: found {len(values)} numbers, expected {count}: one for each channel"
            )
        return values[:, None, None]


def read_inputs(paths: Sequence[Path], shape: tuple[int, ...], scaling: Scaling) -> list[Input]:
    """Reads inputs of a shape: arrays (.npy) of one or of several, and images.

    Raises FileError for other files, and for arrays and images of another size.
    """
    if scaling != Scaling(None, None) and all(path.suffix == ".npy" for path in paths):
        raise ArgumentError("--mean, --deviation: found arrays only, which are taken as they are")
    found: list[Input] = []
    for path in paths:
        if path.suffix == ".npy":
            found += _arrays(path, shape)
        else:
            found.append(Input(str(path), scaling.of(_pixels(path, shape))))
    return found


def _arrays(path: Path, shape: tuple[int, ...]) -> list[Input]:
    array = load_array(path)
    if array.dtype.kind not in "fiub":
        raise FileError(f"{path}: found an array of {array.dtype}, expected numbers")
    if array.shape == shape:
        found = [Input(str(path), np.asarray(array, np.float64))]
    elif array.shape[1:] == shape and len(array):
        values = np.asarray(array, np.float64)
        found = [Input(f"{path}[{number}]", one) for number, one in enumerate(values)]
    else:
        raise FileError(
            f"{path}: found an array of shape {array.shape}, expected {shape}, or several of them "
            f"as {('n', *shape)}"
        )
    for one in found:
        if not np.isfinite(one.values).all():
            raise FileError(f"{one.name}: found numbers that are not finite, expected finite ones")
    return found


def _pixels(path: Path, shape: tuple[int, ...]) -> Floats:
    """Reads an image as (channels, height, width), from 0 to 1."""
    check_file(path, "an image, or an array in a file *.npy")
    from PIL import Image  # noqa: PLC0415 - an extra

    if len(shape) != 3 or shape[0] not in _KINDS:
        raise FileError(
            f"{path}: found an image, but the model takes arrays of shape {shape}: give a .npy file"
        )
    height, width = shape[1:]
    try:
        with Image.open(path, formats=("PNG", "JPEG")) as image:
            if image.size != (width, height):
                size = f"{image.size[0]} x {image.size[1]}"
                raise FileError(
                    f"{path}: found an image of {size} pixels, expected {width} x {height}: resize "
                    "it as in the model's training"
                )
            pixels: Any = np.asarray(image.convert(_KINDS[shape[0]]), np.float64)
    except FileError:
        raise
    except Exception as error:  # of a damaged image, pillow raises nearly any error
        raise FileError(f"{path} is not an image of PNG or JPEG") from error
    own: Floats = pixels.reshape(height, width, -1).transpose(2, 0, 1) / 255
    return own


def read_labels(path: Path | None, count: int) -> list[str] | None:
    """Reads the labels of `count` outputs, one on each line. Raises FileError."""
    if path is None:
        return None
    check_file(path, "a text file with a label on each line")
    try:
        labels = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"the labels cannot be read from {path}: {error}") from error
    if len(labels) != count:
        raise FileError(
            f"{path}: found {len(labels)} labels, expected {count}: one for each output"
        )
    return labels
