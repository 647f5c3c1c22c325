"""The view of a running service from outside: metrics, readiness, logs, the API's description.

    _metrics.py    counts and times, for Prometheus
    _state.py      the metrics that are read when they are asked for: queues, versions, connections
    _ready.py      the checks of /readyz
    _peer.py       asks the other party for its versions
    _logs.py       the log as text or JSON
    _tables.py     what is read and checked of each table
    _openapi.py    the description of the API
    _endpoints.py  the endpoints /metrics, /readyz and /v1/openapi.json

Nothing here has a client's address, key or query, or the number of a row.
"""

from ._endpoints import Endpoints
from ._logs import set_up_logging
from ._metrics import JournalMetrics, Metrics
from ._ready import Check, Readiness
from ._tables import observe

__all__ = [
    "Check",
    "Endpoints",
    "JournalMetrics",
    "Metrics",
    "Readiness",
    "observe",
    "set_up_logging",
]
