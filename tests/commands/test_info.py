"""Tests `nescio info`, and the command line in general."""

import json

import nescio as package
from commands.conftest import nescio
from nescio import _core
from nescio.dpf import GENERATORS


def test_info():
    found = json.loads(nescio("info", "--json").stdout)
    assert found["version"] == package.__version__
    assert found["cpu_tiers"] == _core.supported_tiers()
    assert found["cpu_tier"] in found["cpu_tiers"]
    assert found["generators"] == list(GENERATORS)
    text = nescio("info").stdout
    assert f"cpu tier     {found['cpu_tier']}\n" in text


def test_version_and_help():
    assert nescio("--version").stdout == f"nescio {package.__version__}\n"
    usage = nescio("--help").stdout
    for command in ("demo", "serve", "lookup", "info"):
        assert f"    {command} " in usage
