"""A plan with its files, a server of it, and prepared inferences."""

import numpy as np
import pytest

from commands.conftest import nescio_here
from commands.infer.processes import INPUTS, PLAN, client, serving


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with a plan, its public part, and inputs."""
    folder = tmp_path_factory.mktemp("model")
    PLAN.save(folder / "plan")
    (folder / "public").write_bytes(PLAN.public.to_bytes())
    np.save(folder / "one.npy", INPUTS[0])
    np.save(folder / "three.npy", INPUTS[:3])
    (folder / "labels.txt").write_text("cat\ndog\nship\nfrog\n")
    return folder


@pytest.fixture(scope="module")
def server(files, tmp_path_factory):
    with serving(files, tmp_path_factory.mktemp("server") / "stores") as running:
        yield running


@pytest.fixture
def prepared(server, files, tmp_path):
    """The path of a store of three inferences."""
    store = tmp_path / "client.store"
    found = client(nescio_here, "prepare", server.address, files, store, "--count", 3)
    assert found.returncode == 0, found.stderr
    return store
