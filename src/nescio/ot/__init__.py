"""Silent oblivious transfer: millions of correlated OTs from a few kilobytes, between two parties.

    sender = nescio.ot.Sender(channel)                  receiver = nescio.ot.Receiver(channel)
    r = sender.extend(1 << 20)                          choices, t = receiver.extend(1 << 20)
    t[i] == r[i] ^ choices[i] * sender.delta

Other methods build on these: random OTs (`extend_random`), OTs of chosen messages (`send`,
`receive`) and of one message in N (`send_one_of`, `receive_one_of`), correlated OTs with chosen
choices (`extend_chosen`), and Beaver triples of bits and words (`extend_bit_triples`,
`extend_word_triples`).

Public modules: `parameters` (parameter sets), `estimate` (costs of known attacks on them), `device`
(kernels for GPUs). docs/ot.md describes the protocol and its costs.
"""

from ._receiver import Receiver
from ._sender import Sender

__all__ = ["Receiver", "Sender"]
