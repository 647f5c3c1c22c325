"""The devices that tests of the GPU's kernels run on.

The emulated ones are there wherever the engine is: 0, 1 (threads take turns in the other order) and
2 (an older card). Those of the machine carry the marker `gpu`.
"""

import pytest

from nescio import _devices

EMULATED = ("emulated", "emulated:1", "emulated:2")


def cards():
    try:
        return _devices.Device("cuda", 0).engine().devices()
    except _devices.ResourceError:  # no GPU part in this build, or no card
        return 0


no_card = pytest.mark.skipif(cards() == 0, reason="this machine has no GPU")
ALL = (*EMULATED, pytest.param("cuda", marks=(pytest.mark.gpu, no_card)))
FIRST = (EMULATED[0], ALL[-1])
