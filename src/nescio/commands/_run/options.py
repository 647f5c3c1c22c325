"""The options of `nescio serve` about operation: metrics, logs, the other party, the end."""

import argparse
from pathlib import Path


def as_folder(text: str) -> Path:
    """Parses the name of a folder, for argparse: an empty one would be the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("found an empty name, expected a folder")
    return Path(text)


def add_operation_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add = parser.add_argument_group("operation").add_argument
    add(
        "--log",
        choices=("text", "json"),
        default="text",
        help="format of the log on standard error: lines of text, or a JSON object in each line "
        "(default: %(default)s)",
    )
    add(
        "--metrics",
        action="store_true",
        help="let everyone who reaches the port read /metrics, for Prometheus; it has counts and "
        "times, and nothing of a single client or row",
    )
    add(
        "--peer",
        metavar="URL",
        help="URL of the other party, which is asked every five seconds for the versions of its "
        "tables, and for nothing else: /readyz then says if lookups find a common version",
    )
    add(
        "--peer-ca-cert",
        type=Path,
        metavar="FILE",
        help="PEM file of the certificate authority of --peer (default: those of the system)",
    )
    add(
        "--drain-seconds",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="maximum time for the requests that have begun when a signal ends the service "
        "(default: %(default)s)",
    )
