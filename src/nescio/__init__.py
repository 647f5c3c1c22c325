"""Nescio: private machine-learning inference.

A device gets what it needs from a server's model, and the server does not learn what was asked.

    Table, Server, Client     private lookup of rows held by two servers
    nescio.dpf                distributed point functions, for people who build protocols
    nescio.service            the lookup over HTTP
    nescio.net                channels between the two parties of a protocol
    nescio.quant              models of few bits, on the device
    nescio.compat             GPU-DPF's interface, for programs written for it
    nescio.errors             everything that is raised on purpose
"""

from . import dpf, errors
from .errors import NescioError
from .pir import Client, Query, Server, Table, TableParams

__all__ = [
    "Client",
    "NescioError",
    "Query",
    "Server",
    "Table",
    "TableParams",
    "__version__",
    "dpf",
    "errors",
]

__version__ = "0.1.0"
