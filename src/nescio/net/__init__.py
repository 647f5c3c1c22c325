"""Channels between the two parties of a protocol, with exact counts of the bytes sent.

    Channel      sends and receives frames in order; in memory, over TCP or TLS
    Listener     accepts connections of the other party
    Counts       bytes, frames and rounds so far
    Link         emulates a slower network
    aborting     ends a channel if a block of code does not end well

Guarantees of a channel: every frame arrives complete, in the order of sending, with the kind and
length that the protocol expects next; otherwise the call raises an error. Over TLS the frames come
from the party whose certificate was verified, and nobody between the parties can read or change
them. Without TLS the channel guarantees neither the sender's identity nor confidentiality. Kinds,
lengths and times of frames are public in either case, so a protocol must not let them depend on a
secret.
"""

from ._channel import Channel, Listener, aborting
from ._counts import Counts
from ._link import Link

__all__ = ["Channel", "Counts", "Link", "Listener", "aborting"]
