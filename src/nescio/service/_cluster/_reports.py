"""Reports of a front to a table's head each second: its queue time, and the replicas it asks."""

import logging
import secrets
import threading
from collections.abc import Callable

from .._batcher import Waited
from ._autoscale import Report
from ._connect import NamedActor
from ._replicas import Replicas

_LOG = logging.getLogger(__name__)
_REPORT_SECONDS = 1.0


class Reports:
    """Sends reports in a thread until `stop`. A head that does not answer is sent later ones."""

    def __init__(self, head: NamedActor, replicas: Replicas, waited: Callable[[], Waited]) -> None:
        self._head = head
        self._replicas = replicas
        self._waited = waited
        self._front = secrets.token_hex(8)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nescio-reports", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(_REPORT_SECONDS):
            up = [one.name for own in self._replicas.shards for one in own if one.up]
            report = Report(*self._waited(), up)
            try:
                self._head.report.remote(self._front, report)
            except Exception as error:
                _LOG.debug("the head of the table was not told of waits: %s", error)
