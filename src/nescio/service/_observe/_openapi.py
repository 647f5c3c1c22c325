"""The OpenAPI 3.1 description of the service. docs/wire-format.md specifies the bodies."""

from typing import Any

from ... import __version__

Json = dict[str, Any]
"""An object of JSON."""

_OCTETS = "application/octet-stream"
_ID = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
_NUMBER = {"type": "integer", "minimum": 0}


def document() -> Json:
    """Returns the description, as JSON types."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Nescio: one of two servers of private lookups",
            "version": __version__,
            "description": "A client sends a query to each of two servers, which do not collude, "
            "and adds their answers. docs/wire-format.md specifies the bytes of queries, answers, "
            "hashes and changes.",
        },
        "paths": {**_state_paths(), **_table_paths(), **_operator_paths()},
        "components": {
            "schemas": _schemas(),
            "parameters": {"name": _NAME},
            "responses": {"Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


_NAME: Json = {
    "name": "name",
    "in": "path",
    "required": True,
    "description": "The name of a table.",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9._~-]{1,128}$"},
}
_ERROR: Json = {
    "description": "A refusal, with its reason.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}


def _json(text: str, schema: str) -> Json:
    reference = {"$ref": f"#/components/schemas/{schema}"}
    return {"description": text, "content": {"application/json": {"schema": reference}}}


def _octets(text: str) -> Json:
    headers = {
        "Server-Timing": {
            "description": "The milliseconds of the batch, as answer;dur=MS.",
            "schema": {"type": "string"},
        }
    }
    return {"description": text, "headers": headers, "content": {_OCTETS: {}}}


def _operation(name: str, text: str, responses: Json, **more: object) -> Json:
    errors = {"default": {"$ref": "#/components/responses/Error"}}
    return {"operationId": name, "summary": text, "responses": {**responses, **errors}, **more}


def _of_table(**methods: Json) -> Json:
    return {"parameters": [{"$ref": "#/components/parameters/name"}], **methods}


def _body(text: str) -> Json:
    schema = {"type": "string", "format": "binary"}
    return {"required": True, "description": text, "content": {_OCTETS: {"schema": schema}}}


def _state_paths() -> Json:
    status = _json("The service is alive.", "Status")
    failed = _json("The service needs a restart.", "Status")
    ready = _json("The service should get requests.", "Readiness")
    not_ready = _json("It should not get requests; a check says why.", "Readiness")
    itself = {"description": "This document.", "content": {"application/json": {}}}
    return {
        "/healthz": {
            "get": _operation("health", "Tells if it is alive", {"200": status, "500": failed})
        },
        "/readyz": {
            "get": _operation("ready", "Tells if it is ready", {"200": ready, "503": not_ready})
        },
        "/v1/openapi.json": {
            "get": _operation("openapi", "Describes the service", {"200": itself})
        },
    }


def _table_paths() -> Json:
    since = {
        "name": "since",
        "in": "query",
        "required": False,
        "description": "The id of a version: only what differs from it is sent.",
        "schema": _ID,
    }
    version = since | {
        "name": "version",
        "description": "The id of a version that is answered; by default the current one.",
    }
    tables, table = _json("All tables.", "Tables"), _json("The table.", "Table")
    base = "/v1/tables/{name}"
    return {
        "/v1/tables": {"get": _operation("tables", "Describes all tables", {"200": tables})},
        base: _of_table(get=_operation("table", "Describes a table", {"200": table})),
        f"{base}/tops": _of_table(
            get=_operation(
                "tops",
                "Sends the hashes that rows are checked against",
                {"200": _octets("The hashes.")},
                parameters=[since, version],
            )
        ),
        f"{base}/layout": _of_table(
            get=_operation(
                "layout",
                "Sends the layout",
                {"200": _octets("The layout.")},
                parameters=[version],
            )
        ),
        f"{base}/answer": _of_table(
            post=_operation(
                "answer",
                "Answers a query",
                {"200": _octets("The share of the rows.")},
                requestBody=_body("A query: one party's keys."),
            )
        ),
    }


def _operator_paths() -> Json:
    base = "/v1/tables/{name}/rows"
    table = _json("The table.", "Table")
    count = {
        "name": "count",
        "in": "query",
        "required": False,
        "description": "The rows to list, at most.",
        "schema": {"type": "integer", "minimum": 0, "maximum": 1 << 20},
    }
    token: Json = {"security": [{"token": []}]}
    return {
        base: _of_table(
            post=_operation(
                "change",
                "Changes rows",
                {"200": table},
                requestBody=_body("A change."),
                **token,
            )
        ),
        f"{base}/check": _of_table(
            post=_operation(
                "check",
                "Tells if a change would be made",
                {"200": table},
                requestBody=_body("The head of a change."),
                **token,
            )
        ),
        f"{base}/vacant": _of_table(
            get=_operation(
                "vacant",
                "Lists the lowest vacant rows",
                {"200": _json("The vacant rows.", "Vacant")},
                parameters=[count],
                **token,
            )
        ),
    }


def _object(required: Json, **optional: object) -> Json:
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **optional},
    }


def _schemas() -> Json:
    text, maybe = {"type": "string"}, {"type": ["string", "null"]}
    check = _object({"ok": {"type": "boolean"}}, detail=text)
    checks = {"type": "object", "additionalProperties": check}
    error = _object({"code": text, "message": text}, found=text, expected=text)
    limits = _object({"max_keys": _NUMBER, "max_body_bytes": _NUMBER})
    table = _object(
        {
            "name": text,
            "party": {"type": "integer", "enum": [0, 1]},
            "id": _ID,
            "params": {"$ref": "#/components/schemas/Params"},
            "changes": {"type": "object"},
            "last_change": maybe,
            "changed_id": maybe,
            "next_version": maybe,
            "limits": limits,
        },
        versions={"type": "array", "items": {"$ref": "#/components/schemas/Params"}},
    )
    return {
        "Status": _object({"status": {"type": "string", "enum": ["ok", "failed"]}}),
        "Readiness": _object(
            {"status": {"type": "string", "enum": ["ready", "not_ready"]}, "checks": checks}
        ),
        "Error": _object({"error": error}),
        "Tables": _object(
            {"tables": {"type": "array", "items": {"$ref": "#/components/schemas/Table"}}}
        ),
        "Table": table,
        "Vacant": _vacant(),
        "Params": _params(),
    }


def _vacant() -> Json:
    runs = {"type": "array", "items": {"type": "array", "items": _NUMBER}}
    check = {"type": "string", "pattern": "^[0-9a-f]{16}$"}
    return _object({"total": _NUMBER, "check": check, "rows": runs, "appended": runs})


def _params() -> Json:
    names = ("layout", "dtype", "output", "generator", "version")
    shape = {"type": "array", "items": _NUMBER}
    return _object(
        {
            "format": _NUMBER,
            "rows": _NUMBER,
            "bins": {"type": "array", "items": shape},
            "row_shape": shape,
            **{name: {"type": "string"} for name in names},
            "digest": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "record_rows": _NUMBER,
            "hashes": {"type": "object"},
        }
    )
