"""An operator's program that is killed at any instant: repairs lose nothing and repeat nothing."""

import random
import subprocess
import sys
import time

import numpy as np

from nescio.service import TableAdmin
from service.conftest import TOKENS

ROUNDS = 12
OPERATOR = """
import sys
import numpy as np
from nescio.service import TableAdmin

first, second, journal, count = sys.argv[1:]
with TableAdmin([first, second], "words", sys.stdin.read().split("\\n"), journal=journal) as admin:
    for i in range(int(count), 1000):
        row = np.full((1, 3), i, "f4")
        admin.insert([0], row) if i % 3 else admin.update([i % 1000], row)
        print(i, flush=True)
"""


def run_until_killed(urls, journal, count, seconds):
    """Runs the operator's program, kills it, and returns the numbers of the changes it reported."""
    command = [sys.executable, "-c", OPERATOR, *urls, str(journal), str(count)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        process.stdin.write("\n".join(TOKENS))
        process.stdin.close()
        lines = [process.stdout.readline()]  # the first change is made
        time.sleep(seconds)
        process.kill()
        lines += process.stdout.read().splitlines()
    return [int(line) for line in lines]


def test_an_operator_that_is_killed_at_random(changing, tmp_path):
    urls, tables = changing
    rng, made = random.Random(22), 0
    for _ in range(ROUNDS):
        reported = run_until_killed(urls, tmp_path / "j", made, rng.uniform(0, 0.1))
        assert reported == list(range(made, made + len(reported)))
        with TableAdmin(urls, "words", TOKENS, journal=tmp_path / "j") as admin:
            behind = [party.behind for party in admin.status().parties]
            counts = list(admin.repair().values())
            assert counts in ([0, 0], [0, 1], [1, 1]), behind
            assert admin.status().agree
        after = int(tables[0].params.version) - 1
        # All changes that were reported, and at most the one that was under way.
        assert made + len(reported) <= after <= made + len(reported) + 1
        made = after
        assert len(tables[0]) == len(tables[1]) == 1000 + sum(1 for i in range(made) if i % 3)
        if (made - 1) % 3:
            assert np.array_equal(tables[1][[0]], np.full((1, 3), made - 1, "f4"))
    assert made > ROUNDS
