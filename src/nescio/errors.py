"""The exceptions that Nescio raises on purpose.

NescioError
  ArgumentError (ValueError)        an argument of the caller is invalid
    IndexRangeError (IndexError)    a row or point is out of range
    FileError                       a file cannot be read or written, or its content is invalid
  MessageError                      a message from the other party is invalid
    MalformedKeyError               bytes that are not a DPF key
    MalformedMessageError           bytes that are not a valid query, answer, parameters, frame, ...
    MismatchError                   well formed, but for something else: `.found`, `.expected`
      LayoutChangedError            a table whose layout is another one than the caller's
      VersionGoneError              a version that a table has had, and no longer answers
    ConsistencyError                well formed, but does not follow the protocol
    ForgedAnswerError               rows that are not those of the table's digest
  ServiceError                      a lookup over the network failed: `.url`
    ServerUnreachableError          connecting failed, or the connection broke
    ServerTimeoutError              no answer in time
    ServerRefusedError              an HTTP error: `.status`, `.code`
  ChannelError                      the channel to the other party of a protocol is unusable
    PeerGoneError                   the other party closed it early, or the connection broke
    PeerTimeoutError                the other party did not connect, send or receive in time
    PeerRefusedError                the other party aborted and gave a reason: `.reason`
    PeerUntrustedError              TLS could not verify the other party
  ResourceError                     the machine lacks memory, threads, randomness or a device
    DeviceFailedError               a GPU has failed and is unusable until the process restarts

Four sources of an error have four classes: an argument of the caller (ArgumentError), a message
from the other party (MessageError), a file (FileError), the machine (ResourceError). FileError is
an ArgumentError because the caller chose the file.

Messages state what was found, what was expected, and what to do next.
"""

__all__ = [
    "ArgumentError",
    "ChannelError",
    "ConsistencyError",
    "DeviceFailedError",
    "FileError",
    "ForgedAnswerError",
    "IndexRangeError",
    "LayoutChangedError",
    "MalformedKeyError",
    "MalformedMessageError",
    "MessageError",
    "MismatchError",
    "NescioError",
    "PeerGoneError",
    "PeerRefusedError",
    "PeerTimeoutError",
    "PeerUntrustedError",
    "ResourceError",
    "ServerRefusedError",
    "ServerTimeoutError",
    "ServerUnreachableError",
    "ServiceError",
    "VersionGoneError",
]


class NescioError(Exception):
    """The base class of every error that Nescio raises on purpose.

    Attributes beyond the message are keyword arguments, and survive pickling.
    """

    def __init__(self, message: str = "", **facts: object) -> None:
        super().__init__(message)
        self._facts = facts

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles the class, the message and the attributes."""
        return _remake, (type(self), str(self), self._facts)


def _remake(kind: type[NescioError], message: str, facts: dict[str, object]) -> NescioError:
    return kind(message, **facts)


class ArgumentError(NescioError, ValueError):
    """An argument is invalid."""


class IndexRangeError(ArgumentError, IndexError):
    """A row or a point is out of range."""


class FileError(ArgumentError):
    """A file cannot be read or written, or its content is invalid.

    A subclass of ArgumentError because the caller chose the file.
    """


class MessageError(NescioError):
    """A message from the other party is invalid."""


class MalformedKeyError(MessageError):
    """Bytes that are not a key of a distributed point function."""


class MalformedMessageError(MessageError):
    """Bytes that are not a valid message: a query, public parameters, a frame, a curve point."""


class MismatchError(MessageError):
    """A message is well formed, but for another table, version, party or protocol step.

    Also raised for a model's state that belongs to another model. `found` and `expected` name
    both; the message repeats them.
    """

    def __init__(self, message: str, *, found: str, expected: str) -> None:
        super().__init__(message, found=found, expected=expected)
        self.found = found
        self.expected = expected


class LayoutChangedError(MismatchError):
    """The table has another layout than the one for which the caller computed places.

    Nothing has been sent for the table's new version. The error is independent of the places.
    """


class VersionGoneError(MismatchError):
    """The message is for a version that the table has had and no longer answers.

    Fetch the table's parameters again: `expected` is the id of the current version.
    """


class ConsistencyError(MessageError):
    """A consistency check of a protocol failed: the other party did not follow the protocol."""


class ForgedAnswerError(MessageError):
    """Rows do not fit the digest of their table: one of the two servers answered wrongly.

    Which of the two cannot be told. The error is independent of the rows that were looked up, and
    so must be everything that the caller does because of it.
    """


class ServiceError(NescioError):
    """A lookup over the network failed; `url` names the server."""

    def __init__(self, message: str, *, url: str, **facts: object) -> None:
        super().__init__(message, url=url, **facts)
        self.url = url


class ServerUnreachableError(ServiceError):
    """Connecting to the server failed, or the connection broke."""


class ServerTimeoutError(ServiceError):
    """The server did not answer in time."""


class ServerRefusedError(ServiceError):
    """The server answered with an HTTP error.

    `status` is the HTTP status, `code` the error code of the server's JSON (see the wire format).
    """

    def __init__(self, message: str, *, url: str, status: int, code: str) -> None:
        super().__init__(message, url=url, status=status, code=code)
        self.status = status
        self.code = code


class ChannelError(NescioError):
    """The channel to the other party could not be opened, or is no longer usable."""


class PeerGoneError(ChannelError):
    """The other party closed the channel before the protocol ended, or the connection broke."""


class PeerTimeoutError(ChannelError):
    """The other party did not connect, send or receive in time."""


class PeerRefusedError(ChannelError):
    """The other party aborted; `reason` is its text, made printable and cut to a short length."""

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message, reason=reason)
        self.reason = reason


class PeerUntrustedError(ChannelError):
    """TLS could not verify that the other party is the expected one."""


class ResourceError(NescioError):
    """The machine lacks memory, threads, randomness, or a device or feature that was requested."""


class DeviceFailedError(ResourceError):
    """A GPU has failed: it is unusable until the process restarts."""
