"""Silent oblivious transfer: millions of correlated OTs from a few kilobytes, between two parties.

    sender = nescio.ot.Sender(channel)                  receiver = nescio.ot.Receiver(channel)
    r = sender.extend(1 << 20)                          choices, t = receiver.extend(1 << 20)
    t[i] == r[i] ^ choices[i] * sender.delta

Other methods build on these: random OTs (`extend_random`, `extend_random_bytes`), OTs of chosen
messages (`send`, `receive`) and of one message in N (`send_one_of`, `receive_one_of`), correlated
OTs with chosen choices (`extend_chosen`), and Beaver triples of bits and words
(`extend_bit_triples`, `extend_word_triples`).

Public modules: `parameters` (parameter sets), `estimate` (costs of known attacks on them), `device`
(kernels for GPUs). docs/ot.md describes the protocol and its costs.
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from ._receiver import Receiver
from ._sender import Sender

if TYPE_CHECKING:
    from . import device as device
    from . import estimate as estimate
    from . import parameters as parameters
else:

    def __getattr__(name: str) -> ModuleType:
        """Imports `ot.device`, `ot.estimate` or `ot.parameters` when it is first used."""
        if name in ("device", "estimate", "parameters"):
            return importlib.import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["Receiver", "Sender"]
