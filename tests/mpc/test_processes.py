"""Both parties as processes over TCP, killed at random: no prepared inference is used twice."""

import json
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from nescio.mpc._store import Store

PROGRAM = """
    import os, sys
    import numpy as np
    from nescio.errors import ChannelError
    from nescio.mpc._activation import Activation
    from nescio.mpc._maps import Dense
    from nescio.mpc._network import Layer, Network, Term
    from nescio.mpc._public import PublicNetwork
    from nescio.mpc._session import Client, Server, prepare
    from nescio.mpc._store import Store
    from nescio.net import Channel

    role, what, path, port = sys.argv[1:]
    relu = Activation(lambda x: np.maximum(x, 0))
    random = np.random.default_rng(1)
    layers = [
        Layer((Term(k, Dense(random.integers(-9, 10, (50, 50)))),), np.zeros(50, int), relu, 6)
        for k in range(4)
    ]
    last = Layer((Term(4, Dense(random.integers(-9, 10, (3, 50)))),), np.arange(3))
    network = Network((50,), (*layers, last))

    use_all = Store.use_all
    def reported(store, number, parts):
        use_all(store, number, parts)
        numbers = range(number, number + len(parts))
        os.write(1, b"".join(b"%d\\n" % own for own in numbers))
    Store.use_all = reported

    if role == "server":
        with Channel.listener(timeout=20) as listener:
            os.write(1, b"%d\\n" % listener.port)
            channel = listener.accept()
    else:
        channel = Channel.connect("127.0.0.1", int(port), timeout=20)
    try:
        if what == "prepare":
            own = network if role == "server" else network.public
            prepare(channel, own, path, 300, threads=1)
        elif role == "server":
            with Server(channel, network, path, threads=1) as server:
                while True:
                    server.serve()
        else:
            with Client(channel, network.public, path, threads=1) as client:
                for trial in range(int(what)):  # of 1, 2, ... inputs, and again
                    inputs = np.zeros((1 + trial % 4, 50), np.uint32)
                    print(client.infer_batch(inputs)[0].tolist(), file=sys.stderr)
                channel.close()
    except ChannelError:
        sys.exit(3)
"""


@pytest.fixture
def start():
    """Starts a party as a process; all are ended after the test."""
    running = []

    def starter(role, what, path, port=0):
        command = [sys.executable, "-c", textwrap.dedent(PROGRAM), role, str(what), str(path)]
        process = subprocess.Popen(
            [*command, str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield starter
    for process in running:
        process.kill()
        process.wait()


def both(start, what, paths):
    """Starts both parties; returns them, the server first."""
    server = start("server", what if what == "prepare" else 0, paths[0])
    port = int(server.stdout.readline())
    return server, start("client", what, paths[1], port)


def ended(process):
    """Waits for a process; returns the numbers that it used, and its other output."""
    out, said = process.communicate(timeout=60)
    return [int(line) for line in out.splitlines()], said


def test_parties_that_are_killed_use_no_inference_twice(tmp_path, start):
    paths = tmp_path / "server", tmp_path / "client"
    for process in both(start, "prepare", paths):
        assert ended(process)[1] == ""
        assert process.returncode == 0
    used = [[], []]
    random = np.random.default_rng(2)
    for trial in range(4):
        parties = both(start, 1000, paths)
        for number in (0, 1):  # both have begun
            used[number].append(int(parties[number].stdout.readline()))
        time.sleep(random.uniform(0, 0.15))
        parties[trial % 2].send_signal(signal.SIGKILL)
        for number, party in enumerate(parties):
            numbers, said = ended(party)
            used[number] += numbers
            assert "Traceback" not in said
        assert parties[1 - trial % 2].returncode == 3  # the other one ends with a typed error
    for numbers in used:
        assert numbers == sorted(set(numbers))  # each once, in rising order
        assert len(numbers) > 4
    server, client = both(start, 1, paths)
    _, said = ended(client)
    outputs = np.array(json.loads(said), np.uint32).view(np.int32)
    assert np.abs(outputs - [0, 1, 2]).max() < 500  # rounded, in units of a result
    ended(server)
    with Store(paths[0]) as mine, Store(paths[1]) as theirs:
        assert mine.next == theirs.next > max(map(max, used))
