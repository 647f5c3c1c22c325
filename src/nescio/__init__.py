"""Nescio: private machine-learning inference.

A client uses a model that is on a server, and the server does not learn the client's input.

    Table, Server, Client     private information retrieval: lookups of rows from two servers
    nescio.dpf                distributed point functions, for protocol builders
    nescio.service            lookups over HTTP
    nescio.ot                 oblivious transfer
    nescio.mpc                two-party private inference
    nescio.net                channels between the two parties of a protocol
    nescio.quant              models with low-bit weights
    nescio.torch              PyTorch models whose embedding rows are looked up
    nescio.audit              an attack on logs of secure aggregation, and its report
    nescio.compat             GPU-DPF's Python interface
    nescio.errors             the exceptions that Nescio raises

The modules from `nescio.service` to `nescio.compat` are imported at their first use; some of them
need an extra, such as `pip install 'nescio[service]'`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from . import dpf, errors
from ._extras import installed
from .errors import NescioError
from .pir import Client, Query, Server, Table, TableParams

if TYPE_CHECKING:
    from . import audit, compat, mpc, net, ot, quant, service, torch  # noqa: F401 - see __getattr__

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

# The submodules, and the packages of extras that importing each of them needs.
_LAZY: dict[str, tuple[str, ...]] = {
    "audit": (),
    "compat": (),
    "mpc": (),
    "net": (),
    "ot": (),
    "quant": (),
    "service": ("httpx", "starlette"),
    "torch": ("safetensors", "torch"),
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module
    """Imports a submodule at its first use."""
    if name in _LAZY:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Lists the names of this module, including each submodule whose packages are installed."""
    found = (name for name, needs in _LAZY.items() if all(map(installed, needs)))
    return sorted({*globals(), *found})
