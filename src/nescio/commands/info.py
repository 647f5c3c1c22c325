"""`nescio info`: what this installation can do on this machine."""

import argparse
import json
import platform

from .. import __version__, _core
from .._device import gpus
from ..dpf import GENERATORS, OUTPUTS
from . import Subparsers


def add_parser(commands: Subparsers) -> None:
    """Declares the command."""
    parser = commands.add_parser("info", help="what this installation can do on this machine")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    facts = {
        "version": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processors": _core.available_processors(),
        "cpu_tiers": _core.supported_tiers(),
        "cpu_tier": _core.active_tier(),
        "gpus": gpus(),
        "generators": list(GENERATORS),
        "outputs": list(OUTPUTS),
    }
    if arguments.json:
        print(json.dumps(facts))
    else:
        for name, value in facts.items():
            text = ", ".join(value) if isinstance(value, list) else value
            print(f"{name.replace('_', ' '):12} {text}")
    return 0
