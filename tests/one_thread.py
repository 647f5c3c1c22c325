"""Runs PyTorch on one thread: on small tensors its threads mostly wait actively for each other."""

import importlib.util

import pytest


@pytest.fixture(autouse=True)
def one_thread():
    if importlib.util.find_spec("torch") is None:
        yield  # of tests without PyTorch
        return
    import torch  # noqa: PLC0415

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
