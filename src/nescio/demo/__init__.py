"""The demonstration: private lookups of word vectors from two local servers."""

import argparse
import signal
import sys
from types import FrameType

from .._devices import describe, parse_several
from .data import load
from .lookup import look_up
from .report import print_json, print_report, progress, read_sentence
from .servers import two_servers

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    """Runs `nescio demo`. Returns 0 if every vector was what the plain table holds, else 1."""
    for number in (signal.SIGTERM, signal.SIGHUP):  # so that nothing is left behind
        signal.signal(number, _interrupt)
    describe(parse_several(arguments.device))  # whether they are there shows before the long part
    sentence = read_sentence(arguments.sentence)
    show = sys.stderr.isatty() and not arguments.json
    with progress(show) as step:
        step("reading the word vectors")
        with load(arguments.table, arguments.words, arguments.rows) as vocabulary:
            step("starting two servers")
            with two_servers(
                vocabulary.path, arguments.ports, arguments.generator, arguments.device
            ) as urls:
                step("looking the words up")
                result = look_up(vocabulary, sentence, urls)
    (print_json if arguments.json else print_report)(result)
    return 0 if result.verified else 1


def _interrupt(number: int, _: FrameType | None) -> None:
    raise KeyboardInterrupt(number)
