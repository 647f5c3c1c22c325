"""Shared helpers for tests of products on devices."""

import numpy as np
import pytest

from bitserial.cases import random_activations, to_planes
from nescio._device import Device

KERNELS = ("count", "count-fused", "matrix", "matrix-fused")


def upload(device, q, bits, scale=None, bias=None):
    """Upload a matrix of integers; its scale is 1 by default."""
    if scale is None:
        scale = np.ones(len(q), np.float32)
    return device.upload(to_planes(q, bits), q.shape[1], scale, bias)


def integers(rng, activation_bits, batch, columns):
    """Draw activations from the whole range, including both ends."""
    x = random_activations(rng, activation_bits, batch, columns)
    x[0, 0], x[-1, -1] = -(1 << activation_bits - 1), (1 << activation_bits - 1) - 1
    return x


def lacks_bit_matrix(device):
    """Check that the device has no matrix instructions for bits."""
    module = _engine_of(device)
    return module.device_info(device.number)["capability"] < 80


def _engine_of(device):
    kind = "emulated" if is_emulated(device) else "cuda"
    return Device(kind, device.number).engine()


def is_emulated(device):
    return type(device).__module__.endswith("_emulated")


def skip_unless_it_has(device, kernel):
    if kernel.startswith("matrix") and lacks_bit_matrix(device):
        pytest.skip("this GPU has no matrix instructions for bits")


def skip_unless_first(device, few):
    """Skip most cases on the other emulated devices, which compute the same in another order."""
    if is_emulated(device) and device.number > 0 and not few:
        pytest.skip("the first emulated device has this case")


def bits_of(floats):
    """Return the bits of floats, so that 0 and -0 differ."""
    return np.ascontiguousarray(floats, np.float32).view(np.uint32)
