"""The private lookup over HTTP: the service and its clients.

    RemoteTable, AsyncRemoteTable     look rows up on two servers
    TableAdmin                        change rows at both servers
    create_app                        the ASGI application of one server
    Limits                            what a server accepts

Needs the extra: pip install "nescio[service]".
"""

try:
    from .admin import TableAdmin
    from .app import create_app
    from .limits import Limits
    from .remote import AsyncRemoteTable, RemoteTable
except ModuleNotFoundError as error:  # pragma: no cover - depends on what is installed
    if error.name in ("starlette", "httpx", "uvicorn"):
        raise ModuleNotFoundError(
            f"nescio.service needs {error.name}: pip install 'nescio[service]'", name=error.name
        ) from error
    raise

__all__ = ["AsyncRemoteTable", "Limits", "RemoteTable", "TableAdmin", "create_app"]
