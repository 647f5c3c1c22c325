"""The private lookup over HTTP: the service and its clients.

    RemoteTable, AsyncRemoteTable     look rows up on two servers
    TableAdmin                        change rows at both servers
    create_app                        the ASGI application of one server
    Quotas                            what a server accepts

Needs the extra: pip install "nescio[service]".
"""

try:
    from ._admin import TableAdmin
    from ._app import create_app
    from ._quotas import Quotas
    from ._remote import AsyncRemoteTable, RemoteTable
except ModuleNotFoundError as error:  # pragma: no cover - depends on what is installed
    if error.name in ("starlette", "httpx", "uvicorn"):
        raise ModuleNotFoundError(
            f"nescio.service needs {error.name}: pip install 'nescio[service]'", name=error.name
        ) from error
    raise

__all__ = ["AsyncRemoteTable", "Quotas", "RemoteTable", "TableAdmin", "create_app"]
