"""Runs PyTorch on one thread, and finds the data sets."""

import importlib.util
import os
from pathlib import Path

import pytest

from sets.taobao import clicks, impressions

__all__ = ["clicks", "impressions"]


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


@pytest.fixture
def data_set():
    """Returns the folder of a data set; skips the test where it is missing."""

    def found(name):
        folder = Path(os.environ.get("NESCIO_DATA") or "../shared/data") / name
        if not folder.is_dir():
            pytest.skip(f"{folder} is missing; NESCIO_DATA names the folder of data sets")
        return folder

    return found
