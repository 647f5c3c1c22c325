"""Errors: their attributes, and pickling."""

import copy
import pickle

import pytest

from nescio import errors

EXAMPLES = [
    errors.NescioError("a"),
    errors.ArgumentError("b"),
    errors.IndexRangeError("c"),
    errors.FileError("r"),
    errors.MalformedKeyError("d"),
    errors.MalformedMessageError("e"),
    errors.MismatchError("f", found="x", expected="y"),
    errors.LayoutChangedError("f", found="x", expected="y"),
    errors.VersionGoneError("f", found="x", expected="y"),
    errors.ConsistencyError("m"),
    errors.ForgedAnswerError("s"),
    errors.ServiceError("g", url="http://a"),
    errors.ServerUnreachableError("h", url="http://a"),
    errors.ServerTimeoutError("i", url="http://a"),
    errors.ServerRefusedError("j", url="http://a", status=503, code="overloaded"),
    errors.ChannelError("m"),
    errors.PeerGoneError("n"),
    errors.PeerTimeoutError("o"),
    errors.PeerRefusedError("p", reason="why"),
    errors.PeerUntrustedError("q"),
    errors.ResourceError("k"),
    errors.DeviceFailedError("l"),
]


def facts(error):
    names = ("found", "expected", "url", "status", "code", "reason")
    return {name: getattr(error, name) for name in names if hasattr(error, name)}


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda e: type(e).__name__)
def test_every_error_travels_between_processes(error):
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert facts(again) == facts(error)


def test_the_examples_are_all_errors_that_there_are():
    assert {type(e).__name__ for e in EXAMPLES} == set(errors.__all__) - {"MessageError"}


def test_errors_are_what_python_calls_them_too():
    assert issubclass(errors.ArgumentError, ValueError)
    assert issubclass(errors.IndexRangeError, IndexError)
    assert issubclass(errors.FileError, errors.ArgumentError)
