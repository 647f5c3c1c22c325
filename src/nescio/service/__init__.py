"""Private lookups over HTTP: the service and its clients.

    RemoteTable, AsyncRemoteTable     look up rows on two servers
    TableAdmin                        changes rows on both servers, and repairs one that is behind
    TableStatus, PartyStatus          the state of both servers
    create_app                        makes the ASGI application of one server
    Quotas                            limits what a server accepts

Needs the extra `service`: pip install 'nescio[service]'.
"""

try:
    from ._admin import TableAdmin
    from ._app import create_app
    from ._async_remote import AsyncRemoteTable
    from ._operator import PartyStatus, TableStatus
    from ._quotas import Quotas
    from ._remote import RemoteTable
except ModuleNotFoundError as error:  # pragma: no cover - depends on what is installed
    if error.name in ("starlette", "httpx", "prometheus_client", "uvicorn"):
        raise ModuleNotFoundError(
            f"nescio.service needs {error.name}: pip install 'nescio[service]'", name=error.name
        ) from error
    raise

__all__ = [
    "AsyncRemoteTable",
    "PartyStatus",
    "Quotas",
    "RemoteTable",
    "TableAdmin",
    "TableStatus",
    "create_app",
]
