"""Runs PyTorch on one thread, and finds the data sets."""

import os
from pathlib import Path

import pytest

from one_thread import one_thread
from sets.taobao import clicks, impressions

__all__ = ["clicks", "impressions", "one_thread"]


@pytest.fixture
def data_set():
    """Returns the folder of a data set; skips the test where it is missing."""

    def found(name):
        folder = Path(os.environ.get("NESCIO_DATA") or "../shared/data") / name
        if not folder.is_dir():
            pytest.skip(f"{folder} is missing; NESCIO_DATA names the folder of data sets")
        return folder

    return found
