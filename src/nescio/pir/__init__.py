"""Private lookups (two-server private information retrieval): Table, Server, Client.

Two servers hold the same table. A client looks up rows; neither server learns which rows.
"""

from ._bins import Bins
from ._client import Client, Query
from ._keyed import KeyedClient, KeyedResult, KeyedTable
from ._local import LocalTable, Lookups
from ._params import TableParams
from ._server import Server
from ._table import Table

__all__ = [
    "Bins",
    "Client",
    "KeyedClient",
    "KeyedResult",
    "KeyedTable",
    "LocalTable",
    "Lookups",
    "Query",
    "Server",
    "Table",
    "TableParams",
]
