"""CIFAR-10 from a folder: JPEG images in an .npz file. Needs Pillow."""

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...errors import ArgumentError, FileError

__all__ = ["check_cifar10", "cifar10"]

_NAME = "cifar10/cifar10_train_jpeg.npz"
_SHAPE = (32, 32, 3)
_MAX_BYTES = 1 << 14
"""Maximum bytes of the JPEG of one 32 x 32 image."""

Pictures = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]


def check_cifar10(folder: str | None = None) -> Path:
    """Returns the path of the images. Raises FileError if it is missing."""
    try:
        import PIL.Image  # noqa: F401, PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise ArgumentError("pictures need Pillow: pip install 'nescio[audit-attacks]'") from error
    path = Path(folder or os.environ.get("NESCIO_DATA", "../shared/data")) / _NAME
    if not path.is_file():
        raise FileError(f"{path} does not exist; set its folder with --data or NESCIO_DATA")
    return path


def cifar10(folder: str | None = None, count: int = 50_000) -> tuple[Pictures, Labels]:
    """Returns the first `count` training images, float32 (count, 3, 32, 32) in [0, 1], and classes.

    Raises FileError if the file is missing, invalid, or has fewer images.
    """
    path = check_cifar10(folder)
    try:
        with np.load(path, allow_pickle=False) as file:
            data, offsets, labels = file["jpeg"], file["offsets"], file["labels"]
        return _decoded(data, offsets, count), labels[:count].astype(np.int64)
    except (OSError, KeyError, ValueError, IndexError, zipfile.BadZipFile) as error:
        raise FileError(f"{path} cannot be read: {error}") from error


def _decoded(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], count: int) -> Pictures:
    from PIL import Image  # noqa: PLC0415 - an extra

    if not 0 < count < len(offsets):
        raise ValueError(f"it has {len(offsets) - 1} pictures, expected {count}")
    pictures = np.empty((count, *_SHAPE), np.uint8)
    for i in range(count):
        begin, end = int(offsets[i]), int(offsets[i + 1])
        if not 0 <= begin < end <= min(len(data), begin + _MAX_BYTES):
            raise ValueError(f"picture {i} is of bytes {begin} to {end} of {len(data)}")
        with Image.open(io.BytesIO(data[begin:end].tobytes()), formats=["JPEG"]) as picture:
            if picture.size != _SHAPE[:2]:
                raise ValueError(f"picture {i} is {picture.size}, expected 32 x 32")
            pictures[i] = np.asarray(picture.convert("RGB"))
    channels_first = np.ascontiguousarray(pictures.transpose(0, 3, 1, 2))
    return channels_first.astype(np.float32) / np.float32(255)
