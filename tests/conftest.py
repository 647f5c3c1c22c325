"""What all tests share: the tiers of this machine, and a table of every kind."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from nescio import _core

settings.register_profile(
    "nescio", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("nescio")

TIERS = _core.supported_tiers()


@pytest.fixture(params=TIERS)
def tier(request):
    """Each CPU tier that this machine has."""
    return request.param


@pytest.fixture(scope="session")
def pool():
    return _core.ThreadPool(2)


@pytest.fixture
def rng():
    """Random numbers that are the same in every run: for test data, never for keys."""
    return np.random.default_rng(20261121)


class Exchanged:
    """An array that offers nothing but DLPack, like those of other libraries."""

    def __init__(self, array, device=(1, 0)):
        self._array = np.array(array)
        self._device = device

    def __dlpack__(self, **arguments):
        return self._array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self._device


@pytest.fixture
def dlpack():
    return Exchanged
