"""Silent oblivious transfer: millions of correlated OTs from a few kilobytes, between two parties.

    sender = nescio.ot.Sender(channel)                  receiver = nescio.ot.Receiver(channel)
    r = sender.extend(1 << 20)                          choices, t = receiver.extend(1 << 20)
    t[i] == r[i] ^ choices[i] * sender.delta

From these: random OTs (`extend_random`), OTs of chosen messages (`send`, `receive`), of one in N
(`send_one_of`, `receive_one_of`), correlated OTs with chosen choices (`extend_chosen`), and Beaver
triples of bits and words (`extend_bit_triples`, `extend_word_triples`).

How they are made, and what they cost: docs/ot.md.
"""

from ._receiver import Receiver
from ._sender import Sender

__all__ = ["Receiver", "Sender"]
