"""Two parties, and their operator's journal."""

import pytest

import nescio
from service.conftest import VALUES
from service.repair.two_parties import two_parties


@pytest.fixture
def parties():
    with two_parties(lambda: nescio.Table(VALUES)) as both:
        yield both


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "words.journal"
