"""Fixtures of the tests of private inference."""

import pytest

from nescio.ot import _party
from nescio.ot import parameters as sets
from ot.parties import TINY, replace_base_ots


@pytest.fixture
def quick_transfers(monkeypatch):
    """Replaces base OTs, and shrinks OT extension: tests of OT have the faults of their frames."""

    replace_base_ots(monkeypatch)
    monkeypatch.setattr(sets, "PRIMAL", (*sets.PRIMAL, TINY))
    monkeypatch.setattr(_party, "DEFAULT_PRIMAL", TINY.name)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "stores"


@pytest.fixture
def store(tmp_path):
    return tmp_path / "client.store"
