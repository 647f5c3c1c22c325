"""Replay tests/vectors/dpf.json against the package, as another implementation would."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import nescio.dpf
from dpf.helpers import to_integers

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "dpf.json").read_text())


def _name(case):
    return "-".join(str(case[field]) for field in ("generator", "output", "domain"))


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_vector(case):
    output = case["output"]
    roots = np.frombuffer(bytes.fromhex("".join(case["roots"])), np.uint8).reshape(1, 2, 16)
    keys = nescio.dpf.insecure_generate(
        int(case["alpha"]),
        domain=case["domain"],
        output=output,
        generator=case["generator"],
        payload=int(case["payload"]),
        roots=roots,
    )
    assert [key.hex() for key in keys] == case["keys"]
    for party, key in enumerate(keys):
        at_points = nescio.dpf.evaluate(key, case["points"])
        assert to_integers(at_points, output) == [int(s) for s in case["shares"][party]]
        everywhere = nescio.dpf.evaluate_all(key, packed=output == "bit")
        assert hashlib.sha256(everywhere.tobytes()).hexdigest() == case["digests"][party]
