"""A service that computes answers on a device."""

import numpy as np

import nescio
from nescio.service import RemoteTable, create_app
from service.conftest import running


def test_the_service_on_a_device(rng):
    values = rng.normal(size=(1500, 11)).astype("f4")
    servers = [nescio.Server(nescio.Table(values), party=p, device="emulated") for p in (0, 1)]
    apps = [create_app({"words": server}, party=server.party) for server in servers]
    with running(apps[0]) as first, running(apps[1]) as second:
        with RemoteTable([first, second], "words") as remote:
            assert np.array_equal(remote.lookup([4, 1499]), values[[4, 1499]])
