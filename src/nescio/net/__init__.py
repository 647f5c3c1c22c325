"""Channels: what the two parties of a protocol send each other, counted to the byte.

    Channel      frames in order to and from one other party; in memory, over TCP or TLS
    Listener     waits for that party
    Counts       bytes, frames and rounds so far
    Link         a slower network, emulated

What a channel promises: frames come whole, in the order in which they were sent, of the kind and
length that the protocol expects next, or an error comes. Over TLS they come from the party whose
certificate was asked for and nobody between can read or change them. Without TLS nothing is
promised of who sends and who reads. Kinds, lengths and times of frames are public in any case, so
a protocol must not let them depend on a secret.
"""

from ._channel import Channel, Listener
from ._counts import Counts
from ._link import Link

__all__ = ["Channel", "Counts", "Link", "Listener"]
