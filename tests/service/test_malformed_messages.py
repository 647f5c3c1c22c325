"""The errors of messages that no honest server sends: they name the server, and say what to do."""

import contextlib
import json

import numpy as np
import pytest

from commands.conftest import assert_one_sentence, nescio_here
from nescio.errors import MalformedMessageError, MismatchError
from service.conftest import running
from service.fakes import FakeServer, tables

(V1,) = tables(1)
ROWS = [5, 8]


@contextlib.contextmanager
def pair_with(party, reply):
    """Runs two servers, of which one party's replies as `reply` says; gives its URL and both."""
    fakes = FakeServer(0, [V1]), FakeServer(1, [V1])
    fakes[party].reply = reply
    with running(fakes[0]) as first, running(fakes[1]) as second:
        yield (first, second)[party], [first, second]


def assert_names(message, url, other):
    """Checks a message: the server, what was found and expected, what to do; nothing of another."""
    assert url in message
    assert other not in message
    assert "found" in message
    assert "expected" in message
    assert "ask its operator which release of Nescio runs there" in message


def damaged_answer(damage):
    """A reply for `FakeServer.reply`: damages answers, of the table and lookups that were asked."""

    def reply(method, _, query):
        if method != "POST":
            return None
        fake = FakeServer(query[3], [V1])
        status, headers, body = fake._answer(query)
        return status, headers, damage(bytearray(body))

    return reply


def put(offset, value):
    def damage(body):
        body[offset : offset + len(value)] = value
        return bytes(body)

    return damage


ANSWERS = {
    "nothing": (lambda _: b"", MalformedMessageError),
    "a page": (lambda _: b"<html>" * 20, MalformedMessageError),
    "a header in part": (lambda body: bytes(body[:31]), MalformedMessageError),
    "one byte less": (lambda body: bytes(body[:-1]), MalformedMessageError),
    "one byte more": (lambda body: bytes(body) + b"\0", MalformedMessageError),
    "a query": (put(0, b"NQ"), MalformedMessageError),
    "another format": (put(2, b"\x07"), MalformedMessageError),
    "a third party": (put(3, b"\x02"), MalformedMessageError),
    "another number": (put(4, b"\x01"), MalformedMessageError),
    "three tables": (put(12, b"\x03"), MalformedMessageError),
    "another table": (put(16, bytes(16)), MismatchError),
}


@pytest.mark.parametrize("party", [0, 1])
@pytest.mark.parametrize("name", ANSWERS)
def test_an_invalid_answer_names_its_server(remote, name, party):
    damage, error = ANSWERS[name]
    with (
        pair_with(party, damaged_answer(damage)) as (url, urls),
        remote(urls, "words") as table,
        pytest.raises(error) as caught,
    ):
        table.lookup(ROWS)
    assert_names(str(caught.value), f"{url}/v1/tables/words/answer", urls[1 - party])


@pytest.mark.parametrize("party", [0, 1])
def test_an_answer_of_the_other_party_names_its_server(remote, party):
    damage = put(3, bytes([1 - party]))
    with (
        pair_with(party, damaged_answer(damage)) as (url, urls),
        remote(urls, "words") as table,
        pytest.raises(MismatchError, match=f"found party {1 - party}, expected {party}") as caught,
    ):
        table.lookup(ROWS)
    assert_names(str(caught.value), url, urls[1 - party])


def test_an_answer_of_another_table_is_not_asked_for_again(remote):
    asked = []

    def reply(method, path, query):
        asked.append(method)
        return damaged_answer(put(16, bytes(16)))(method, path, query)

    with pair_with(0, reply) as (_, urls), remote(urls, "words", timeout=20) as table:
        with pytest.raises(MismatchError):
            table.lookup(ROWS)
        assert asked.count("POST") == 1


def without_version(fields):
    del fields["params"]["version"]


def of_another_format(fields):
    fields["params"]["format"] = 1


DESCRIPTIONS = {
    "a page": lambda _: b"<html>",
    "a list": lambda _: b"[]",
    "no limits": lambda fields: fields.pop("limits"),
    "no version": without_version,
    "another format": of_another_format,
    "one of three parties": lambda fields: fields.update(party=2),
    "another id": lambda fields: fields.update(id="0" * 32),
    "versions of a list": lambda fields: fields.update(versions=[[]]),
    "many versions": lambda fields: fields.update(versions=9 * fields["versions"]),
    "changes of rows": lambda fields: fields.update(changes=[]),
    "a number as last change": lambda fields: fields.update(last_change=7),
}


@pytest.mark.parametrize("party", [0, 1])
@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_an_invalid_description_names_its_server(remote, name, party):
    def reply(_, path, __):
        if path != "/v1/tables/words":
            return None
        fields = FakeServer(party, [V1]).describe()
        body = DESCRIPTIONS[name](fields)
        return 200, {}, body if isinstance(body, bytes) else json.dumps(fields).encode()

    with pair_with(party, reply) as (url, urls):
        with pytest.raises(MalformedMessageError) as caught:
            remote(urls, "words")
        assert_names(str(caught.value), f"{url}/v1/tables/words", urls[1 - party])


@pytest.mark.parametrize("tops", [b"", b"<html>" * 20, b"NT\x02\x00" + bytes(28)])
def test_invalid_tops_of_both_servers_name_one_of_them(remote, tops):
    def reply(_, path, __):
        return (200, {}, tops) if path.endswith("/tops") else None

    fakes = FakeServer(0, [V1]), FakeServer(1, [V1])
    fakes[0].reply = fakes[1].reply = reply
    with running(fakes[0]) as first, running(fakes[1]) as second:
        with pytest.raises((MalformedMessageError, MismatchError)) as caught:
            remote([first, second], "words", timeout=1)
        assert f"{second}/v1/tables/words/tops: " in str(caught.value)
        assert "expected" in str(caught.value)


def test_a_server_with_invalid_tops_is_passed_over(remote):
    def reply(_, path, __):
        return (200, {}, b"<html>") if path.endswith("/tops") else None

    with pair_with(0, reply) as (_, urls), remote(urls, "words") as table:
        assert np.array_equal(table.lookup([0])[:, 0], [1])


@pytest.mark.parametrize("party", [0, 1])
def test_the_command_names_the_server(party):
    with pair_with(party, damaged_answer(put(0, b"NQ"))) as (url, urls):
        found = nescio_here("lookup", 5, "--servers", *urls, "--table", "words")
    assert_one_sentence(found)
    assert_names(found.stderr, f"{url}/v1/tables/words/answer", urls[1 - party])
    assert "found b'NQ' at the beginning, expected b'NA'" in found.stderr
