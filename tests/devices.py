"""The devices that tests of the GPU's kernels run on.

The emulated ones are there wherever the engine is: 0, 1 (threads take turns in the other order) and
2 (an older card). Tests on a card carry the marker `gpu` and are skipped where there is none; with
NESCIO_TEST_DEVICE=cuda:1 they run on that one, and fail if it is not there.
"""

import os

import pytest

from nescio import _device

EMULATED = ("emulated", "emulated:1", "emulated:2")


def cards():
    try:
        return _device.Device("cuda", 0).engine().devices()
    except _device.ResourceError:  # no GPU part in this build, or no card
        return 0


CARD = os.environ.get("NESCIO_TEST_DEVICE")
no_card = pytest.mark.skipif(CARD is None and cards() == 0, reason="this machine has no GPU")
ALL = (*EMULATED, pytest.param(CARD or "cuda", marks=(pytest.mark.gpu, no_card)))
FIRST = (EMULATED[0], ALL[-1])
