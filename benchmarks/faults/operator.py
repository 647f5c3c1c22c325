"""An operator that updates rows all the time, and finishes each update before the next."""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nescio.errors import NescioError
from nescio.service import TableAdmin

from .model import Model, Update
from .party import TABLE

_PAUSE_SECONDS = 0.05


class Operator(threading.Thread):
    """Makes updates of random rows until `stop`.

    An update that fails is repeated under the same version until both servers acknowledge it,
    after a repair: whether a server that was killed had made it cannot be known, and repeating it
    is safe. `journal` is the operator's.
    """

    def __init__(
        self,
        model: Model,
        urls: Sequence[str],
        tokens: Sequence[str],
        journal: Path,
        *,
        pause: float = 0.02,
        rows: tuple[int, int] = (1, 50),
        timeout: float = 5.0,
    ) -> None:
        super().__init__(name="operator", daemon=True)
        self.updates = 0
        self.repaired = 0
        self.saw: Counter[str] = Counter()
        self.texts: dict[str, str] = {}
        self._model = model
        self._admin = TableAdmin(urls, TABLE, tokens, timeout=timeout, retries=0, journal=journal)
        self._pause, self._rows = pause, rows
        self._random = np.random.default_rng(1000)
        self._stopping = threading.Event()
        self._open: Update | None = None
        self._failed = False

    def run(self) -> None:
        """Makes updates until `stop`."""
        while not self._stopping.is_set():
            self._step()
            self._stopping.wait(self._random.exponential(self._pause))

    def settle(self, seconds: float) -> bool:
        """Stops, and finishes the last update within some seconds; False if that failed."""
        self._stopping.set()
        self.join()
        end = time.monotonic() + seconds
        while self._open is not None and time.monotonic() < end:
            self._step()
            time.sleep(_PAUSE_SECONDS if self._open else 0)
        self._admin.close()
        return self._open is None

    def _step(self) -> None:
        """Begins an update, or repeats the one that is not finished."""
        if self._open is None:
            count = self._random.integers(*self._rows, endpoint=True)
            self._open = self._model.begin(self._random.integers(self._model.rows, size=count))
        update = self._open
        try:
            if self._failed:
                self.repaired += sum(self._admin.repair().values())
            self._admin.update(update.indices, update.rows, version=str(update.number))
        except NescioError as error:
            self.saw[type(error).__name__] += 1
            self.texts[type(error).__name__] = str(error)
            self._failed = True
            self._stopping.wait(_PAUSE_SECONDS)
        else:
            self._failed = False
            self._model.acknowledge(update)
            self.updates += 1
            self._open = None
