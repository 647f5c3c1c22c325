"""The log of a service, on standard error: a line of text or a JSON object for each record."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal

LogFormat = Literal["text", "json"]

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}


def _time(record: logging.LogRecord) -> str:
    """Returns the record's time as RFC 3339, in UTC with milliseconds."""
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """Returns what the caller gave as `extra`; names with `_` are those of libraries, as Ray."""
    found = vars(record).items()
    return {name: value for name, value in found if name not in _OWN and name[0] != "_"}


def _line(text: str) -> str:
    """Escapes what would end a line or control a terminal: a client may have chosen the text."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _word(value: object) -> str:
    """Returns a value as one word; one with spaces, quotes or signs of equality as JSON."""
    text = str(value)
    plain = text.isprintable() and not set(text) & set(" =\"'")
    return text if plain else json.dumps(text)


class TextFormatter(logging.Formatter):
    """Formats a record as a line: time, level, logger, message, and the fields as name=value."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line, followed by a traceback if there is one."""
        fields = "".join(f" {name}={_word(value)}" for name, value in _fields(record).items())
        message = _line(record.getMessage())
        text = f"{_time(record)} {record.levelname} {record.name}: {message}{fields}"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return text


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object: time, level, logger, message, fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the object in one line; a traceback is its entry `exception`."""
        entry: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if fields := _fields(record):
            entry["fields"] = fields
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def set_up_logging(form: LogFormat) -> None:
    """Sends the log of this process to standard error, from INFO on for the service itself."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("nescio").setLevel(logging.INFO)
