"""Both parties of a protocol in one process, with tampering by a malicious party."""

import queue
import threading

from nescio.errors import MalformedMessageError

PATIENCE = 20


class GoneError(Exception):
    """Raised if the other party ended first."""


class Loopback:
    """One end of a channel: records sent frames, which `tamper` may change."""

    def __init__(self, inbox, outbox, tamper=None):
        self._inbox, self._outbox = inbox, outbox
        self._tamper = tamper or (lambda kind, data: data)
        self.sent = []

    def send(self, kind, data):
        assert len(kind) == 4
        assert isinstance(data, bytes)
        data = self._tamper(kind, data)
        self.sent.append((kind, data))
        self._outbox.put((kind, data))

    def receive(self, kind, length):
        found, data = self._inbox.get(timeout=PATIENCE)
        if found is None:
            raise GoneError
        if (found, len(data)) != (kind, length):
            raise MalformedMessageError(
                f"found {found} of {len(data)} bytes, expected {kind} of {length}"
            )
        return bytearray(data)

    def close(self):
        self._outbox.put((None, b""))


class Outcome:
    """A party's result or error, and the frames that it sent."""

    def __init__(self):
        self.value = self.error = None
        self.sent = []

    def get(self):
        if self.error is not None:
            raise self.error
        return self.value


def run_both(first, second, tamper_first=None, tamper_second=None):
    """Runs two functions of a channel in two threads and returns an `Outcome` for each."""
    one, other = queue.Queue(), queue.Queue()
    ends = Loopback(one, other, tamper_first), Loopback(other, one, tamper_second)
    outcomes = Outcome(), Outcome()

    def run(party, end, outcome):
        try:
            outcome.value = party(end)
        except Exception as error:
            outcome.error = error
        finally:
            outcome.sent = end.sent
            end.close()

    threads = [
        threading.Thread(target=run, args=each, daemon=True)
        for each in zip((first, second), ends, outcomes, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    return outcomes
