"""The choice of a CPU tier."""

import json
import os
import subprocess
import sys

import pytest

from nescio import _core

LADDER = ["portable", "avx2", "avx512"]


def run(tier, *command):
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "NESCIO_CPU": tier},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_tiers_are_a_ladder_from_the_portable_one_up():
    tiers = _core.supported_tiers()
    assert tiers == LADDER[: len(tiers)]


def test_the_widest_tier_is_used_unless_one_is_forced():
    found = run("", "-m", "nescio", "info", "--json")
    assert json.loads(found.stdout)["cpu_tier"] == _core.supported_tiers()[-1]


def test_a_tier_can_be_forced(tier):
    found = run(tier, "-m", "nescio", "info", "--json")
    assert json.loads(found.stdout)["cpu_tier"] == tier


def test_a_tier_that_does_not_exist_is_refused_with_those_that_do():
    found = run("avx1024", "-m", "nescio", "info")
    assert found.returncode == 1
    assert found.stderr.startswith("nescio: NESCIO_CPU: CPU tier 'avx1024' does not exist")
    assert "portable" in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.skipif(
    len(_core.supported_tiers()) == len(LADDER), reason="this machine has all tiers"
)
def test_a_tier_that_this_machine_lacks_is_refused():
    found = run(LADDER[-1], "-m", "nescio", "info")
    assert found.returncode == 1
    assert f"CPU tier '{LADDER[-1]}' is not supported by this machine" in found.stderr


def test_everything_works_in_a_forced_tier(tier):
    program = """
import numpy as np, nescio
table = nescio.Table(np.arange(6000, dtype="f4").reshape(2000, 3))
client = nescio.Client(table.params, table.tops)
query = client.query([5, 1999])
rows = client.decode(query, *(nescio.Server(table).answer(key) for key in query.keys))
assert (rows == table[[5, 1999]]).all()
"""
    found = run(tier, "-c", program)
    assert found.returncode == 0, found.stderr
