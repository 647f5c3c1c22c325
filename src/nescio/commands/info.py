"""`nescio info`: CPU tiers, GPUs, generators and outputs that this installation supports here."""

import argparse
import json
import platform

from .. import __version__, _core
from .._device import gpus
from ..dpf import GENERATORS, OUTPUTS
from . import Subparsers


def add_parser(commands: Subparsers) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "info",
        help="show the CPU tiers, GPUs, generators and outputs that are supported here",
        description="Shows the version, and the CPU tiers, GPUs, generators and output groups "
        "that this installation supports on this machine.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
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
