"""Tests `nescio info`, and the command line in general."""

import argparse
import errno
import json

import nescio as package
from commands.conftest import nescio
from nescio import _core
from nescio.cli import run
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


def test_a_broken_pipe_that_is_not_the_output_is_an_error(capsys):
    def fail(_):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    parser = argparse.ArgumentParser()
    parser.set_defaults(run=fail)
    assert run(parser, []) == 1
    assert capsys.readouterr().err == "nescio: [Errno 32] Broken pipe\n"


def test_options_are_not_abbreviated():
    found = nescio("lookup", "--servers", "http://a", "http://b", "--tab", "words", 5)
    assert found.returncode == 2
    assert "--table" in found.stderr
