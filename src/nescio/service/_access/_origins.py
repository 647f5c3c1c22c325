"""Web pages that may ask: cross-origin resource sharing (CORS)."""

import re
from collections.abc import Sequence

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from ..._arrays import shown
from ...errors import ArgumentError

_ORIGIN = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
_READ = ("Retry-After", "Server-Timing", "Nescio-Newer", "WWW-Authenticate")
_SENT = ("Authorization", "Content-Type")
_CACHED_SECONDS = 600


def check_origins(origins: Sequence[str]) -> Sequence[str]:
    """Returns the origins. Raises ArgumentError for one that no browser sends."""
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise ArgumentError(
                f"--cors: found {shown(origin)}, expected an origin in lower case without a path: "
                "https://app.example.org"
            )
    return origins


def with_origins(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """Lets web pages of these origins use an application, and read the headers of its replies."""
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=tuple(origins),
        allow_methods=("GET", "POST"),
        allow_headers=_SENT,
        expose_headers=_READ,
        max_age=_CACHED_SECONDS,
    )
