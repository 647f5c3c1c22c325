"""Lines of the text log: what a client chooses ends no line and invents no field."""

import logging

from nescio.service._observe._logs import TextFormatter


def _line(message: str, **fields: object) -> str:
    record = logging.makeLogRecord({"name": "nescio.audit", "msg": message, **fields})
    return TextFormatter().format(record)


def test_a_name_of_a_table_ends_no_line() -> None:
    line = _line("an action", table="a\nFAKE ENTRY result=done", result="unknown_table")
    assert "\n" not in line
    assert line.endswith(r'table="a\nFAKE ENTRY result=done" result=unknown_table')


def test_a_message_ends_no_line() -> None:
    assert _line("refused: a\r\nFAKE\x1b[2J").endswith(r"refused: a\r\nFAKE\x1b[2J")


def test_plain_fields_stay_as_they_are() -> None:
    assert _line("done", rows=3, table="words").endswith("done rows=3 table=words")
