"""Write ot.json: transcripts of silent OT with fixed randomness, and its outputs.

Run this script when the protocol changes, and give the reason in the commit message. `--print`
prints the file instead of writing it.
"""

import hashlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from nescio.net import Channel
from ot.parties import session

FILE = Path(__file__).with_name("ot.json")
CASES = [
    ("primal", {"family": "primal", "parameters": "b10"}),
    ("primal, malicious", {"family": "primal", "parameters": "b10", "malicious": True}),
    ("dual, expand-convolute", {"family": "dual", "parameters": "ec"}),
    ("dual, quasi-cyclic, malicious", {"family": "dual", "parameters": "qc", "malicious": True}),
]
COUNT = 1000
SEED = bytes(16)


class Recorded:
    """A channel that records sent frames."""

    def __init__(self, channel):
        self._channel = channel
        self.frames = []

    def send(self, kind, data):
        """Send a frame and record its kind, length and hash."""
        raw = bytes(memoryview(data).cast("B"))
        self.frames.append({"kind": kind, "bytes": len(raw), "sha256": sha256(raw)})
        self._channel.send(kind, data)

    def __getattr__(self, name):
        return getattr(self._channel, name)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def make(name, options):
    """Build one vector."""
    channels = [Recorded(channel) for channel in Channel.pair(timeout=60)]
    sender, r, _, (choices, t) = session(
        lambda s: s.extend(COUNT),
        lambda c: c.extend(COUNT),
        channels,
        **options,
        insecure_seed=SEED,
    )
    return {
        "name": name,
        "n": COUNT,
        "insecure_seed": SEED.hex(),
        "options": options,
        "sender": channels[0].frames,
        "receiver": channels[1].frames,
        "delta": sender.delta.tobytes().hex(),
        "r": sha256(r.tobytes()),
        "choices": sha256(choices.tobytes()),
        "t": sha256(t.tobytes()),
    }


def main():
    """Write the file, or print it."""
    text = json.dumps([make(*case) for case in CASES], indent=1) + "\n"
    if "--print" in sys.argv:
        print(text)
    else:
        FILE.write_text(text)


if __name__ == "__main__":
    main()
