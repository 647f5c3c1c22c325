"""Servers and clients of private inference as processes."""

import contextlib
import signal
import subprocess
import sys

from mpc.plans import small_plan

PLAN, INPUTS = small_plan()


class Server:
    """A server process."""

    def __init__(self, process, line):
        self.process, self.address, self.plan = process, line.split()[-1], line.split()[2]

    def stop(self, number=signal.SIGTERM):
        """Ends it; returns its lines."""
        self.process.send_signal(number)
        lines, errors = self.process.communicate(timeout=20)
        assert (self.process.returncode, errors) == (0, "")
        return lines.splitlines()


@contextlib.contextmanager
def serving(files, stores, *options):
    command = [sys.executable, "-m", "nescio", "infer", "serve", files / "plan"]
    command += ["--stores", stores, "--port", 0, "--threads", 1, *options]
    process = subprocess.Popen(
        [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        line = process.stdout.readline()
        assert line.startswith("serving plan "), process.stderr.read()
        yield Server(process, line)
    finally:
        process.kill()
        process.communicate(timeout=20)


def client(run, what, address, files, store, *rest):
    """Runs a client's command, with `run`."""
    options = ["--public", files / "public", "--store", store, "--threads", 1]
    return run("infer", what, address, *rest, *options)
