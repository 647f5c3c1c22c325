"""Private lookups: a table held by two servers, and a client that neither can watch."""

from .client import Client, Query
from .params import TableParams
from .server import Server
from .table import Table

__all__ = ["Client", "Query", "Server", "Table", "TableParams"]
