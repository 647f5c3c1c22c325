"""Shared fixtures for tests of bit-serial products."""

import pytest

import devices
from nescio._device import Device


@pytest.fixture(scope="module", params=devices.ALL)
def device(request):
    """Return each device in turn."""
    named = Device.parse(request.param)
    return named.engine().BitSerialDevice(named.number)
