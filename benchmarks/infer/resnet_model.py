"""ResNet-32 for CIFAR-10 as layers of floats, and its images, from files that others published."""

from pathlib import Path
from pickle import UnpicklingError
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nescio._arrays import Array
from nescio.errors import FileError
from nescio.mpc._maps import Convolution, Dense, Floats, Shape
from nescio.mpc._plans.floats import FloatLayer, FloatTerm

__all__ = ["Images", "load_images", "load_layers", "load_state"]

_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # those of its training
_BLOCKS = 5  # in each of three groups
_EPSILON = 1e-5  # of batch norm
_UNREADABLE = (KeyError, ValueError, RuntimeError, AttributeError, TypeError, UnpicklingError)
_RECORD = 1 + 3 * 32 * 32

Weights = dict[str, Floats]


class Images(NamedTuple):
    """Images for calibration and for the test, (n, 3, 32, 32), normalised; labels of the test."""

    calibration: Floats
    test: Floats
    labels: npt.NDArray[np.integer]


def load_images(path: Path, calibration: int) -> Images:
    """Loads images: an .npz, or the folder `cifar-10-batches-bin` of CIFAR-10's binary version.

    An .npz has train_images and test_images (uint8, n x 32 x 32 x 3) and test_labels. Raises
    FileError.
    """
    try:
        if path.is_dir():
            train, _ = _records(path / "data_batch_1.bin")
            test, labels = _records(path / "test_batch.bin")
        else:
            with np.load(path) as files:
                train, test = (files[f"{part}_images"] for part in ("train", "test"))
                labels = files["test_labels"]
    except (OSError, KeyError, ValueError) as error:
        raise FileError(
            f"--images: {path}: found {error}, expected an .npz with train_images, test_images and "
            "test_labels, or the folder cifar-10-batches-bin"
        ) from error
    return Images(_normalised(train[:calibration]), _normalised(test), labels)


def _records(path: Path) -> tuple[Array, Array]:
    """Reads records of a label and three planes of an image."""
    records = np.fromfile(path, np.uint8).reshape(-1, _RECORD)
    return records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), records[:, 0]


def _normalised(images: Array) -> Floats:
    values = (images / 255.0 - np.array(_MEAN)) / np.array(_DEVIATION)
    return np.ascontiguousarray(values.transpose(0, 3, 1, 2))


def load_layers(path: Path) -> list[FloatLayer]:
    """Loads the checkpoint resnet32-d509ac18.th, and folds batch norm into the weights.

    Shortcuts that change the shape take every second pixel and add channels of zeros on both sides
    (option A of He et al., 2015). Raises FileError.
    """
    try:
        return _layers({name: value.double().numpy() for name, value in load_state(path).items()})
    except _UNREADABLE as error:
        raise _refusal(path, "no such checkpoint") from error


def load_state(path: Path) -> dict[str, Any]:
    """Loads the tensors of the checkpoint by name. Raises FileError."""
    import torch  # noqa: PLC0415 - the only place that needs it

    try:
        found: Any = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
        return {name.removeprefix("module."): value for name, value in found.items()}
    except (OSError, *_UNREADABLE) as error:
        what = error.strerror if isinstance(error, OSError) else "no such checkpoint"
        raise _refusal(path, str(what)) from error


def _refusal(path: Path, found: str) -> FileError:
    return FileError(f"--model: {path}: found {found}, expected resnet32-d509ac18.th")


def _layers(weights: Weights) -> list[FloatLayer]:
    layers = [_first(weights)]
    shape: Shape = layers[0].outputs
    for group in range(1, 4):
        for block in range(_BLOCKS):
            stride = 2 if group > 1 and block == 0 else 1
            name = f"layer{group}.{block}"
            layers += _block(weights, name, shape, len(layers), stride)
            shape = layers[-1].outputs
    pooled = np.repeat(weights["linear.weight"] / 64, 64, axis=1)  # an average of 8 x 8 pixels
    last = FloatTerm(len(layers), Dense(np.zeros(pooled.shape, np.int64), shape), pooled)
    return [*layers, FloatLayer((last,), weights["linear.bias"])]


def _first(weights: Weights) -> FloatLayer:
    kernel, bias = _folded(weights, "conv1", "bn1")
    return FloatLayer((_convolution(0, kernel, (3, 32, 32)),), bias)


def _block(
    weights: Weights, name: str, shape: Shape, source: int, stride: int
) -> tuple[FloatLayer, FloatLayer]:
    """Returns the two layers of a residual block, whose input is result `source`."""
    kernel, bias = _folded(weights, f"{name}.conv1", f"{name}.bn1")
    first = FloatLayer((_convolution(source, kernel, shape, stride),), bias)
    kernel, bias = _folded(weights, f"{name}.conv2", f"{name}.bn2")
    second = _convolution(source + 1, kernel, first.outputs)
    added = len(bias) - shape[0]
    ones = np.zeros((len(bias), shape[0], 1, 1))
    ones[np.arange(shape[0]) + added // 2, np.arange(shape[0])] = 1
    shortcut = _convolution(source, ones, shape, stride, padding=0)
    return first, FloatLayer((second, shortcut), bias)


def _folded(weights: Weights, convolution: str, norm: str) -> tuple[Floats, Floats]:
    deviation = np.sqrt(weights[f"{norm}.running_var"] + _EPSILON)
    scale = weights[f"{norm}.weight"] / deviation
    bias = weights[f"{norm}.bias"] - weights[f"{norm}.running_mean"] * scale
    return weights[f"{convolution}.weight"] * scale[:, None, None, None], bias


def _convolution(
    source: int, weights: Floats, shape: Shape, stride: int = 1, *, padding: int = 1
) -> FloatTerm:
    empty = np.zeros(weights.shape, np.int64)
    geometry = Convolution(empty, shape, (stride, stride), (padding, padding))
    return FloatTerm(source, geometry, weights)
