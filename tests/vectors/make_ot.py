"""Makes tests/vectors/ot.json: run it only when the protocol changes, and say why in the commit."""

import hashlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from ot.test_sessions import VECTORS, transcript

CASES = [
    ("primal", {"family": "primal", "parameters": "b10"}),
    ("primal, malicious", {"family": "primal", "parameters": "b10", "malicious": True}),
    ("dual, expand-convolute", {"family": "dual", "parameters": "ec"}),
    ("dual, quasi-cyclic, malicious", {"family": "dual", "parameters": "qc", "malicious": True}),
]


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def main():
    """Writes the file."""
    vectors = []
    for name, options in CASES:
        vector = {"name": name, "n": 1000, "seed": "00" * 16, "options": options}
        channels, delta, r, choices, t = transcript("portable", vector)
        for role, channel in zip(("sender", "receiver"), channels, strict=True):
            vector[role] = [
                {"kind": kind, "bytes": len(data), "sha256": sha256(data)}
                for kind, data in channel.frames
            ]
        vector["delta"] = delta.tobytes().hex()
        for key, value in (("r", r), ("choices", choices), ("t", t)):
            vector[key] = sha256(value.tobytes())
        vectors.append(vector)
    VECTORS.write_text(json.dumps(vectors, indent=1) + "\n")


if __name__ == "__main__":
    main()
