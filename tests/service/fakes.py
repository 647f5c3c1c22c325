"""A server whose faults a test chooses: kept versions, delays, refusals. It records requests."""

import asyncio
import contextlib
import json
import socket
from urllib.parse import parse_qs

import nescio
from nescio.pir._tops import encode_tops
from service.conftest import VALUES


def tables(count, values=VALUES):
    """Makes versions of a table, newest first; version n has n in row 0."""
    made = []
    for number in range(1, count + 1):
        rows = values.copy()
        rows[0] = number
        made.insert(0, nescio.Table(rows, version=str(number)))
    return made


class FakeServer:
    """One party's server of `words` in several versions, newest first.

    `answers` and `gets` are what clients sent. `reply`, if set, is called with a request's method,
    path and body, and returns (status, headers, body) or None for the normal reply.
    """

    def __init__(self, party, versions, known=()):
        self.party, self.versions = party, list(versions)
        self.gone = {table.params.id for table in known}
        self.names_versions = True
        self.newer = None  # the header in place of the right one
        self.ages = {}  # what it says of the version's age
        self.delay = 0.0
        self.reply = None
        self.answers, self.gets, self.headers = [], [], []
        self._servers = {}

    def replace(self, versions):
        """Goes on with other versions; those that it no longer has are gone."""
        self.gone |= {table.params.id for table in self.versions}
        self.versions = list(versions)

    def describe(self):
        current = self.versions[0].params
        described = {
            "name": "words",
            "party": self.party,
            "id": current.id.hex(),
            "params": current.to_dict(),
            "limits": {"max_keys": 1024, "max_body_bytes": 1 << 22},
        }
        if self.names_versions:
            described["versions"] = [table.params.to_dict() for table in self.versions]
        return described

    def _find(self, id_):
        return next((table for table in self.versions if table.params.id == id_), None)

    def _answer(self, body):
        id_ = body[16:32]
        table = self._find(id_)
        if table is None:
            status, code = (410, "version_gone") if id_ in self.gone else (409, "mismatch")
            return status, {}, _error(code)
        if id_ not in self._servers:
            self._servers[id_] = nescio.Server(table, threads=1, party=self.party)
        headers, current = {}, self.versions[0].params
        if self.newer is not None:
            headers["Nescio-Newer"] = self.newer
        elif table is not self.versions[0]:
            named = {"id": current.id.hex(), "params": current.to_dict(), **self.ages}
            headers["Nescio-Newer"] = json.dumps(named, separators=(",", ":"))
        return 200, headers, self._servers[id_].answer(body)

    def _get(self, path, query):
        if path == "/v1/tables/words":
            return 200, {}, json.dumps(self.describe()).encode()
        named = bytes.fromhex(query["version"][0]) if "version" in query else None
        table = self.versions[0] if named is None else self._find(named)
        if path != "/v1/tables/words/tops" or table is None:
            return 404, {}, _error("unknown_table")
        with table.reading() as state:
            return 200, {}, encode_tops(state)

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            for name in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{name}.complete"})
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        path, method = scope["path"], scope["method"]
        self.headers.append({k.decode(): v.decode() for k, v in scope["headers"]})
        if method == "POST":
            self.answers.append(body)
            await asyncio.sleep(self.delay)
        else:
            self.gets.append(f"{path}?{scope['query_string'].decode()}".rstrip("?"))
        made = None if self.reply is None else self.reply(method, path, body)
        if made is None and method == "POST":
            made = self._answer(body)
        if made is None:
            made = self._get(path, parse_qs(scope["query_string"].decode()))
        status, headers, content = made
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": content})


def _error(code):
    return json.dumps({"error": {"code": code, "message": f"the reason is {code}"}}).encode()


def refusal(status, code="overloaded", **headers):
    """A reply for `FakeServer.reply`: refuses all queries."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda method, *_: (status, named, _error(code)) if method == "POST" else None


@contextlib.contextmanager
def closed_port():
    """Gives the URL of a port on which nobody listens, and nobody will."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"
