"""Runs two parties in two threads of the test process."""

import threading

import numpy as np

from nescio.net import Channel
from nescio.ot import Receiver, Sender, _receiver, _sender
from nescio.ot.parameters import Primal

SETS = [("primal", "b10"), ("dual", "ec"), ("dual", "qc")]
TINY = Primal("insecure_tiny", t=40, depth=7, k=256, bits=20, source="tests")
"""A primal set without security, for emulated devices and for many sessions."""
TIMEOUT = 60


def together(first, second, channels=None):
    """Runs a function of a channel for each party concurrently, and returns both results.

    An exception of either is raised, the one that came first.
    """
    channels = channels or Channel.pair(timeout=TIMEOUT)
    results, errors = [None, None], []

    def run(k, work):
        try:
            results[k] = work(channels[k])
        except BaseException as error:
            errors.append(error)
            channels[k].close()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate((first, second))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
        assert not thread.is_alive()
    if errors:
        raise errors[0]
    return results


def session(sending, receiving, channels=None, **options):
    """Runs functions of a sender and a receiver concurrently, and returns both with results."""

    def sender(channel):
        party = Sender(channel, **options)
        return party, sending(party)

    def receiver(channel):
        party = Receiver(channel, **options)
        return party, receiving(party)

    (sender_party, sent), (receiver_party, received) = together(sender, receiver, channels)
    return sender_party, sent, receiver_party, received


def replace_base_ots(monkeypatch):
    """Replaces base OTs, which have other tests: the receiver sends its seeds to the sender."""

    def give(channel, count, randomness, malicious, **options):
        t = randomness.blocks(count)
        channel.send("FAKE", t)
        return (t[:, 0] & np.uint64(1)).astype(np.uint8), t

    def take(channel, delta, count, randomness, malicious, **options):
        t = np.frombuffer(bytearray(channel.receive("FAKE", 16 * count)), np.uint64).reshape(-1, 2)
        return t ^ delta * (t[:, :1] & np.uint64(1))

    monkeypatch.setattr(_receiver, "seed_receiver", give)
    monkeypatch.setattr(_sender, "seed_sender", take)
