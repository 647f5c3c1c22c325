"""The chapter's networks with weights and images: trained ones where the data is to be had.

The folder of data has mnist/ (four IDX files, gzipped or not), cifar10/cifar10_lossless_head.npz
and models/resnet32-cifar10-d509ac18.th. A network whose files are missing gets random weights, and
images that are smooth noise; the subject's `source` says so.
"""

import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.infer.networks import NETWORKS, Architecture, standardize
from benchmarks.infer.resnet_model import load_images, load_state
from benchmarks.quant.data import read_digits
from nescio._arrays import Array
from nescio.errors import ArgumentError, FileError
from nescio.mpc._maps import Floats

__all__ = ["Paths", "Subject", "subject"]

_TRAINED_IMAGES, _BATCH, _RATE = 20_000, 128, 2e-3
_FITTED = 256  # images for the statistics of a random network
_COARSE = 8  # pixels of the noise that is made smooth
_RANDOM_TEST = 256
_CENTRED = "each output scaled to mean 0 and deviation 1 over calibration images"


class Paths(NamedTuple):
    """Files of the user; None where there are none."""

    mnist: Path | None
    images: Path | None
    model: Path | None

    @classmethod
    def of(cls, data: Path | None, images: Path | None, model: Path | None) -> "Paths":
        """Finds the files in the folder of data; `images` and `model` replace those in it."""
        if data is None:
            return cls(None, images, model)
        return cls(
            _existing(data / "mnist"),
            images or _existing(data / "cifar10" / "cifar10_lossless_head.npz"),
            model or _existing(data / "models" / "resnet32-cifar10-d509ac18.th"),
        )


class Subject(NamedTuple):
    """A model in eval mode, its images (n, channels, height, width), and labels of the test."""

    architecture: Architecture
    model: nn.Module
    calibration: Tensor
    test: Floats
    labels: Array | None
    source: str


class _Images(NamedTuple):
    calibration: Tensor
    test: Floats
    labels: Array | None
    source: str


def subject(name: str, paths: Paths, calibration: int, divisor: int = 1) -> Subject:
    """Makes a network with weights and images. Raises ArgumentError, or FileError for its files."""
    (own,) = (one for one in NETWORKS if one.name == name)
    if name == "LeNet" and paths.mnist is not None:
        return _lenet(own, paths.mnist, calibration, divisor)
    images = _random_images(own, calibration)
    if name != "LeNet" and paths.images is not None:
        images = _cifar(paths.images, calibration)
    model = own.make(divisor)
    if name == "ResNet-32" and paths.model is not None and divisor == 1:
        model.load_state_dict(load_state(paths.model))
        source = f"published weights (resnet32-d509ac18); {images.source}"
        labels = images.labels
    else:
        standardize(model, own.last, images.calibration[:_FITTED])
        source = f"random weights, {_CENTRED}; {images.source}"
        labels = None  # of no use to a random network
    return Subject(own, model.eval(), images.calibration, images.test, labels, source)


def _existing(path: Path) -> Path | None:
    return path if path.exists() else None


def _cifar(path: Path, calibration: int) -> _Images:
    found = load_images(path, calibration)
    return _Images(
        torch.from_numpy(found.calibration.astype(np.float32)),
        found.test,
        found.labels,
        f"images of CIFAR-10, {len(found.calibration)} for calibration",
    )


def _random_images(own: Architecture, calibration: int) -> _Images:
    """Draws smooth noise: as natural images, its neighboring pixels are alike."""
    generator = torch.Generator().manual_seed(1)
    count, (channels, height, width) = calibration + _RANDOM_TEST, own.inputs
    coarse = torch.randn(count, channels, _COARSE, _COARSE, generator=generator)
    images = functional.interpolate(coarse, (height, width), mode="bilinear")
    test = images[calibration:].double().numpy()
    return _Images(images[:calibration], test, None, "images of smooth noise")


def _lenet(own: Architecture, path: Path, calibration: int, divisor: int) -> Subject:
    """Trains LeNet on MNIST."""
    try:
        digits = read_digits(path)
    except ArgumentError as error:
        raise FileError(str(error)) from error
    (train, labels), (test, test_labels) = digits.train, digits.test
    images = torch.from_numpy(train).reshape(-1, *own.inputs)
    begin = time.perf_counter()
    torch.manual_seed(1)
    model = own.make(divisor)
    _train(model, images[:_TRAINED_IMAGES], torch.from_numpy(labels[:_TRAINED_IMAGES]))
    seconds = time.perf_counter() - begin
    source = (
        f"trained on {min(_TRAINED_IMAGES, len(images)):,} images of MNIST, once, in "
        f"{seconds:.0f} s; {calibration} others for calibration"
    )
    held = images[-calibration:]
    shaped = test.astype(np.float64).reshape(-1, *own.inputs)
    return Subject(own, model, held, shaped, test_labels, source)


def _train(model: nn.Module, images: Tensor, labels: Tensor) -> None:
    """Trains in place, with Adam and a learning rate that falls to zero."""
    steps = -(-len(images) // _BATCH)
    optimizer = torch.optim.Adam(model.parameters(), _RATE)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0.02, steps)
    model.train()
    for chosen in torch.randperm(len(images)).split(_BATCH):
        optimizer.zero_grad()
        functional.cross_entropy(model(images[chosen]), labels[chosen]).backward()
        optimizer.step()
        schedule.step()
    model.eval()
