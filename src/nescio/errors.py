"""Everything that Nescio raises on purpose.

NescioError
  ArgumentError (ValueError)        you passed something impossible
    IndexRangeError (IndexError)    a row or point that does not exist
  MessageError                      the other side sent something impossible
    MalformedKeyError               bytes that are not a key
    MalformedMessageError           bytes that are no query, answer, parameters, frame or point
    MismatchError                   well formed, but for something else: `.found`, `.expected`
    ConsistencyError                well formed, but not made as the protocol says
  ServiceError                      a lookup over the network failed: `.url`
    ServerUnreachableError          no connection, or it broke
    ServerTimeoutError              no answer in time
    ServerRefusedError              an HTTP error: `.status`, `.code`
  ChannelError                      the channel to the other party of a protocol cannot be used
    PeerGoneError                   the other party closed it early, or the connection broke
    PeerTimeoutError                the other party did not come, send or take in time
    PeerRefusedError                the other party stopped, and said why: `.reason`
    PeerUntrustedError              TLS did not show the other party to be the right one
  ResourceError                     the machine would not give memory, threads or randomness
    DeviceFailedError               a GPU has failed: this process gets nothing from it any more

Messages say what was found, what was expected, and what to do.
"""

__all__ = [
    "ArgumentError",
    "ChannelError",
    "ConsistencyError",
    "DeviceFailedError",
    "IndexRangeError",
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
]


class NescioError(Exception):
    """The base of every error that Nescio raises on purpose.

    Errors carry what they say beyond their message as keyword arguments, and travel between
    processes (`pickle`) with them.
    """

    def __init__(self, message: str = "", **facts: object) -> None:
        super().__init__(message)
        self._facts = facts

    def __reduce__(self) -> tuple[object, ...]:
        """The class, its message and its facts."""
        return _remake, (type(self), str(self), self._facts)


def _remake(kind: type[NescioError], message: str, facts: dict[str, object]) -> NescioError:
    return kind(message, **facts)


class ArgumentError(NescioError, ValueError):
    """The caller passed something that cannot be."""


class IndexRangeError(ArgumentError, IndexError):
    """A row or a point was asked for that does not exist."""


class MessageError(NescioError):
    """Bytes from the other side are not what the protocol allows."""


class MalformedKeyError(MessageError):
    """Bytes that are not a key of a distributed point function."""


class MalformedMessageError(MessageError):
    """Bytes that are not what they should be: a query, public parameters, a frame, a point."""


class MismatchError(MessageError):
    """A message is well formed, but for another table, version, party or step of a protocol.

    So is a file or a state of a model that belongs to another one.

    `found` and `expected` say which; both are also in the message.
    """

    def __init__(self, message: str, *, found: str, expected: str) -> None:
        super().__init__(message, found=found, expected=expected)
        self.found = found
        self.expected = expected


class ConsistencyError(MessageError):
    """A check of a protocol failed: what the other side sent does not fit together."""


class ServiceError(NescioError):
    """A lookup over the network failed; `url` names the server."""

    def __init__(self, message: str, *, url: str, **facts: object) -> None:
        super().__init__(message, url=url, **facts)
        self.url = url


class ServerUnreachableError(ServiceError):
    """The server could not be connected to, or the connection broke."""


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
    """The channel to the other party of a protocol cannot be had, or cannot be used any more."""


class PeerGoneError(ChannelError):
    """The other party closed the channel before the protocol was over, or the connection broke."""


class PeerTimeoutError(ChannelError):
    """The other party did not come, did not send, or did not take what was sent, in time."""


class PeerRefusedError(ChannelError):
    """The other party stopped the protocol; `reason` is what it said, made printable and short."""

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message, reason=reason)
        self.reason = reason


class PeerUntrustedError(ChannelError):
    """TLS did not show the other party to be the one that its certificate should name."""


class ResourceError(NescioError):
    """The machine would not give memory, threads or randomness."""


class DeviceFailedError(ResourceError):
    """A GPU has failed: nothing that this process asks of it succeeds until it is started anew."""
