"""LLL by FLINT (python-flint), and a process that runs it where the time is limited.

A call of FLINT takes up to minutes and cannot be interrupted. So where there is a deadline, large
bases are reduced in a child process, which is ended if it is late. Its start takes a tenth of a
second; it is used again until it is closed.
"""

import contextlib
import json
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ...errors import ArgumentError
from .._arrays import IntArray

__all__ = ["Reducer", "check_library", "has_library", "reducer"]

_LARGE = 50
"""Bases of more rows are reduced in the child process; a call for fewer takes about 0.1 s."""

_CHILD = """
import json, signal, sys
if hasattr(signal, "alarm"):  # ends this process even if its parent was killed
    signal.alarm(int(sys.argv[2]))
sys.path[:] = json.loads(sys.argv[1])
from flint import fmpz_mat
for line in sys.stdin:
    task = json.loads(line)
    found = fmpz_mat(task["rows"]).lll(transform=task["transform"])
    found = found[1] if task["transform"] else found
    print(json.dumps([[int(one) for one in row] for row in found.tolist()]), flush=True)
"""


def has_library() -> bool:
    """Returns True if python-flint is installed."""
    try:
        import flint  # noqa: F401, PLC0415 - an extra
    except ModuleNotFoundError:
        return False
    return True


def check_library() -> None:
    """Raises ArgumentError without python-flint."""
    if not has_library():
        raise ArgumentError(
            "method lattice needs python-flint: pip install 'nescio[audit-lattice]'"
        )


class Reducer:
    """LLL reduction until a deadline (monotonic clock)."""

    def __init__(self, deadline: float = float("inf")) -> None:
        self.deadline = deadline
        self._child: subprocess.Popen[str] | None = None
        self._answered = False

    def reduced(self, rows: IntArray) -> IntArray:
        """Returns the LLL-reduced basis of integer rows, int64 (k, m).

        Raises TimeoutError at the deadline.
        """
        return self._call(rows, transform=False)

    def transform(self, rows: IntArray) -> IntArray:
        """Returns the matrix, int64 (k, k), that turns rows into their LLL-reduced basis.

        Raises TimeoutError at the deadline.
        """
        return self._call(rows, transform=True)

    def close(self) -> None:
        """Ends the child process, if there is one."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.communicate()

    def check(self) -> None:
        """Raises TimeoutError after the deadline."""
        if time.monotonic() > self.deadline:
            raise TimeoutError("lattice reduction: no time is left")

    def _call(self, rows: IntArray, *, transform: bool) -> IntArray:
        self.check()
        if self.deadline == float("inf") or len(rows) <= _LARGE or not sys.executable:
            return _here(rows, transform=transform)
        try:
            text = self._ask(json.dumps({"rows": rows.tolist(), "transform": transform}))
        except BrokenPipeError:
            text = ""
        if not text:
            self.close()
            if self._answered:  # something ended it: a call here could not be ended
                raise TimeoutError("lattice reduction: its process has ended")
            return _here(rows, transform=transform)  # it could not start
        self._answered = True
        return np.array(json.loads(text), np.int64)

    def _seconds_of_child(self) -> str:
        return str(max(1, min(int(self.deadline - time.monotonic()) + 2, 1 << 30)))

    def _ask(self, task: str) -> str:
        """Sends a line to the child process and returns its answer; empty if it has ended."""
        if self._child is None:
            self._child = subprocess.Popen(  # noqa: S603 - this interpreter, constant code
                [sys.executable, "-c", _CHILD, json.dumps(sys.path), self._seconds_of_child()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(f"{task}\n")
        self._child.stdin.flush()
        with selectors.DefaultSelector() as answer:
            answer.register(self._child.stdout, selectors.EVENT_READ)
            in_time = answer.select(max(self.deadline - time.monotonic(), 0))
        if not in_time:
            self.close()
            raise TimeoutError("lattice reduction: the time limit ended it")
        return self._child.stdout.readline()


def _here(rows: IntArray, *, transform: bool) -> IntArray:
    from flint import fmpz_mat  # noqa: PLC0415 - an extra

    found = fmpz_mat(rows.tolist()).lll(transform=transform)
    matrix = found[1] if transform else found
    return np.array([[int(value) for value in row] for row in matrix.tolist()], np.int64)


@contextmanager
def reducer(deadline: float) -> Iterator[Reducer]:
    """Makes a reducer, and ends its process afterwards."""
    made = Reducer(deadline)
    with contextlib.closing(made):
        yield made
