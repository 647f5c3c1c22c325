"""Private lookups: a table held by two servers, and a client that neither can watch."""

from ._client import Client, Query
from ._params import TableParams
from ._server import Server
from ._table import Table

__all__ = ["Client", "Query", "Server", "Table", "TableParams"]
