"""The demonstration: private lookups of word vectors from two local servers."""

import argparse
import signal
import sys
from types import FrameType

from .._device import describe, parse_device_list
from ._data import load
from ._lookup import look_up
from ._model import TopicModel
from ._report import print_json, print_report, progress, read_sentence
from ._servers import two_servers

__all__ = ["TopicModel", "load", "run"]


def run(arguments: argparse.Namespace) -> int:
    """Runs `nescio demo`. Returns 0 if every vector equals the plaintext table's, else 1."""
    for number in (signal.SIGTERM, signal.SIGHUP):  # stops the servers on these signals too
        signal.signal(number, _interrupt)
    describe(parse_device_list(arguments.device))  # raises early if a device does not exist
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
