"""What tests of products of few bits share."""

import pytest

import devices
from nescio._device import Device


@pytest.fixture(scope="module", params=devices.ALL)
def device(request):
    """Each device."""
    named = Device.parse(request.param)
    return named.engine().BitSerialDevice(named.number)
