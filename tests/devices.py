"""The devices on which tests run the GPU kernels.

Emulated devices exist on every machine: 0, 1 (threads are scheduled in reverse order), 2 (an older
GPU) and 3 (of a card's size, while the others are small). Tests on a GPU have the marker `gpu` and
are skipped without one. With NESCIO_TEST_DEVICE=cuda:1 they run on that GPU, and fail if it does
not exist.
"""

import os

import pytest

from nescio import _device

EMULATED = ("emulated", "emulated:1", "emulated:2", "emulated:3")


def cards():
    try:
        return _device.Device("cuda", 0).engine().devices()
    except _device.ResourceError:  # no GPU part in this build, or no GPU
        return 0


CARD = os.environ.get("NESCIO_TEST_DEVICE")
no_card = pytest.mark.skipif(CARD is None and cards() == 0, reason="this machine has no GPU")
ALL = (*EMULATED, pytest.param(CARD or "cuda", marks=(pytest.mark.gpu, no_card)))
FIRST = (EMULATED[0], ALL[-1])
