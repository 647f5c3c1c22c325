"""Connections to Ray clusters that do not come about."""

import types

import pytest

from nescio.errors import ResourceError
from nescio.service._cluster import _connect


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        # Ray 2.60 raises a bare Exception if its processes need more than some seconds to start.
        ("local", Exception("The current node timed out during startup"), "try again when it has"),
        ("10.0.0.1:6379", ConnectionError("refused"), "found no Ray cluster at '10.0.0.1:6379'"),
        ("10.0.0.1:6379", AssertionError("no token"), "start one with `ray start --head`"),
    ],
)
def test_the_reason_is_said(monkeypatch, address, error, message):
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_MODE", "RAY_USAGE_STATS_ENABLED"):
        monkeypatch.setenv(name, "")

    def init(*_, **__):
        raise error

    ended = []
    ray = types.SimpleNamespace(init=init, shutdown=lambda: ended.append(True))
    monkeypatch.setattr(_connect, "import_ray", lambda _: ray)
    with (
        pytest.raises(ResourceError, match=str(error)) as found,
        _connect.connected(address, 0),
    ):
        raise AssertionError("connected")
    assert message in str(found.value)
    assert ended == [True]
