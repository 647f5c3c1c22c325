"""Runs the commands of docs/cluster-tutorial.md in order, as printed, on free ports."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

pytest.importorskip("ray")

PAGE = (Path(__file__).parents[2] / "docs" / "cluster-tutorial.md").read_text()
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PORTS = ("8080", "8081", "6379")
SECONDS = 540
RANDOM = re.compile(r"\b[0-9a-f]{8}\b|\d+\.\d\b|\b\d{3,7}\b")
"""Numbers of nodes and processes, and seconds, which differ from run to run."""


def blocks(language):
    return [code for found, code in FENCE.findall(PAGE) if found == language]


def free_ports():
    """Returns free ports below those that connections get, as many as the page names."""
    found = []
    for port in range(7000 + os.getpid() % 2000, 10_000):
        try:
            with socket.create_server(("", port)):
                found.append(str(port))
        except OSError:
            continue
        if len(found) == len(PORTS):
            return found
    raise AssertionError("no free ports")


def on_free_ports(code):
    for old, new in zip(PORTS, free_ports(), strict=True):
        code = re.sub(rf"\b{old}\b", new, code)
    return code


def end_all(folder):
    """Ends every process that was started in a folder."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            started = (entry / "environ").read_bytes().split(b"\0")
            if f"TUTORIAL={folder}".encode() in started:
                os.kill(int(entry.name), signal.SIGKILL)
        except OSError:
            continue


@pytest.fixture
def short_folder():
    """A folder for sockets, whose paths have at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="nescio-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def same_lines(text):
    """Returns the lines of a text, less what differs from run to run."""
    return {" ".join(RANDOM.sub("#", line).split()) for line in text.splitlines()}


def run_script(folder, script):
    """Runs commands in a folder until one fails; returns the code and what they printed.

    A process of Ray that does not start ends the run too: the page waits for it without an end.
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "NESCIO_"))}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment |= {"PATH": path, "TUTORIAL": str(folder)}
    environment["RAY_agent_register_timeout_ms"] = "120000"  # on a machine with other work
    output, end = folder / "output.txt", time.monotonic() + SECONDS
    with output.open("w") as out:
        process = subprocess.Popen(
            ["bash", "-c", script],
            cwd=folder,
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
        try:
            while process.poll() is None and time.monotonic() < end:
                starts = [path for path in folder.glob("*.log") if path.name[0] in "hw"]
                if any("Traceback" in path.read_text() for path in starts):
                    break
                time.sleep(0.5)
            code = process.poll()
        finally:
            end_all(folder)
            process.kill()
            process.wait()
    return code, output.read_text()


@pytest.mark.slow
@pytest.mark.load
@pytest.mark.cluster
@pytest.mark.timeout(SECONDS + 60)
def test_the_commands_of_the_page_run_in_order(short_folder):
    script = "set -eu -o pipefail\n" + on_free_ports("\n".join(blocks("sh")))
    code, found = run_script(short_folder, script)
    logs = "".join(path.read_text()[-2000:] for path in short_folder.glob("*.log"))
    assert code == 0, f"{found}\n{logs}"
    printed = same_lines("".join(blocks("text")))
    assert printed
    assert printed - same_lines(found) == set()
    assert "the rows are those of one process" in found
    assert "no lookup failed" in found


def test_the_page_has_all_steps():
    script = "\n".join(blocks("sh"))
    steps = ("nescio build", "ray start --head", "nescio serve", "nescio lookup", "admin update")
    steps += ("cluster scale", "cluster status", "cluster drain", "kill -9", "RAY_AUTH_MODE=token")
    assert [step for step in steps if step not in script] == []
    assert not re.search(r"^\s*(ray stop|pkill|killall)", script, re.MULTILINE)
