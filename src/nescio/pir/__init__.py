"""Private lookups (two-server private information retrieval): Table, Server, Client.

Two servers hold the same table. A client looks up rows; neither server learns which rows.
"""

from ._client import Client, Query
from ._params import TableParams
from ._server import Server
from ._table import Table

__all__ = ["Client", "Query", "Server", "Table", "TableParams"]
