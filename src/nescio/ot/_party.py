"""The common part of both parties: their agreement on parameters, and their correlations."""

import itertools
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Literal, Self, get_args

import numpy as np

from .. import _core
from .._arrays import Array, ByteArray, IndexArray, as_array, as_bytes, as_threads, shown
from .._device import parse_devices
from ..errors import ArgumentError, ChannelError, MismatchError, ResourceError
from ..net import Channel, aborting
from . import parameters
from ._blocks import as_output
from ._engine import Blocks, Kernels
from ._extension import Check, Extender, Request
from ._families import DualFamily, ExtensionPlan, Family, PrimalFamily
from ._kernels import CpuKernels, GpuKernels
from ._keys import NONCE_BYTES, ExtensionKeys, SessionKeys
from ._randomness import Randomness, SystemRandomness, insecure_seeded

FamilyName = Literal["primal", "dual"]
FAMILIES: tuple[FamilyName, ...] = get_args(FamilyName)

DEFAULT_PRIMAL = "b10"
DEFAULT_DUAL = "ec"

MAX_OTS = 1 << 34
STREAM_BATCH = 1 << 20

_PROTOCOL = 3
_MAX_AGREEMENT_BYTES = 4096


class Party:
    """One party of a session: its channel, its parameters, and its correlations.

    It sends its first message when a method first needs OTs.
    """

    def __init__(
        self,
        role: str,
        channel: Channel,
        *,
        family: FamilyName,
        malicious: bool,
        parameters: str | None,
        threads: int,
        device: str,
        devices: Sequence[str] | None,
        insecure_seed: bytes | None,
    ) -> None:
        from . import _base_ot  # noqa: F401, PLC0415 - raises ModuleNotFoundError without PyNaCl

        if not isinstance(channel, Channel) and not hasattr(channel, "receive_at_most"):
            raise ArgumentError(f"channel: found {shown(channel)}, expected a nescio.net.Channel")
        self.channel = channel
        self.family, self.parameters = check_family(family, parameters)
        self.malicious = bool(malicious)
        self._role = role
        self._threads = as_threads(threads) or _core.available_processors()
        self._kernels: Kernels = _kernels(as_threads(threads), device, devices, self.parameters)
        self._randomness: Randomness = (
            SystemRandomness()
            if insecure_seed is None
            else insecure_seeded(role.encode() + as_bytes(insecure_seed, "insecure_seed").tobytes())
        )
        self._extender: Extender | None = None
        self._closed = False
        self._lock = threading.RLock()

    def close(self) -> None:
        """Ends the session, and overwrites its secrets; the channel stays open.

        Overwritten are delta and, on the CPU, the correlations kept for later calls and scratch
        memory. After an error this has happened already. Results of earlier calls belong to the
        caller. It waits for a call in another thread to end. A party is a context manager that
        calls this at its end, and aborts the channel if the end is an exception.
        """
        with self._lock:
            self._closed = True
            self._wipe()
            self._kernels.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self.channel.abort("an error on its side")
        self.close()

    def _wipe(self) -> None:
        """Overwrites the party's own secrets."""

    @property
    def seconds(self) -> dict[str, float]:
        """Total seconds of each step so far: base, trees, check, lpn, hash."""
        return {} if self._extender is None else dict(self._extender.clock.seconds)

    def _seed(self, count: int, session: bytes, idle: Callable[[], None]) -> IndexArray:
        raise NotImplementedError

    def _grow(
        self,
        plan: ExtensionPlan,
        blocks: IndexArray,
        checks: IndexArray,
        keys: ExtensionKeys,
        scratch: Blocks | None,
    ) -> tuple[Blocks, Check | None]:
        raise NotImplementedError

    def _session(self) -> Extender:
        """Returns the session's extender; at the first call, agrees on parameters before."""
        if self._extender is None:
            keys = self._agree()
            family = _family(self.family, self.parameters, malicious=self.malicious)
            self._extender = Extender(
                self.channel,
                family,
                self._seed,
                self._grow,
                self._kernels,
                keys=keys,
                leads=self._role == "sender",
            )
        return self._extender

    @contextmanager
    def _ending_with_errors(self) -> Iterator[None]:
        """Ends the session on any error, because a correlation must not be spent twice.

        Calls in several threads run one after the other.
        """
        with self._lock:
            if self._closed:
                raise ChannelError(
                    "this session has ended, by an error or by close(): start a new one"
                )
            try:
                with self._aborting():
                    yield
            except BaseException:
                self.close()
                raise

    @contextmanager
    def _aborting(self) -> Iterator[None]:
        """Tells the other party about an error, and closes the channel."""
        try:
            with aborting(self.channel):
                yield
        except MemoryError as error:
            raise ResourceError(f"not enough memory: {error}") from error

    def _draw(
        self,
        request: Request,
        on_blocks: Callable[[int, Blocks], None] | None = None,
        out: IndexArray | None = None,
    ) -> tuple[Blocks, int]:
        """Draws the next blocks, and returns them and the index of the first."""
        session = self._session()
        first = session.drawn
        return session.draw(request, on_blocks, out), first

    def _outputs(self, out: object, *expected: tuple[tuple[int, ...], type]) -> list[Array | None]:
        """Checks the arrays of `out`, or returns a None for each. Raises ArgumentError."""
        if out is None:
            return [None] * len(expected)
        if not isinstance(self._kernels, CpuKernels):
            raise ArgumentError("out: found arrays, expected None: results stay on the device")
        given = (out,) if len(expected) == 1 else out
        if not isinstance(given, tuple) or len(given) != len(expected):
            raise ArgumentError(
                f"out: found {type(out).__name__}, expected a tuple of {len(expected)} arrays"
            )
        pairs = zip(given, expected, strict=True)
        arrays = [as_output(array, shape, kind) for array, (shape, kind) in pairs]
        if any(np.may_share_memory(a, b) for a, b in itertools.combinations(arrays, 2)):
            raise ArgumentError("out: found arrays that share memory, expected separate ones")
        return list(arrays)

    def _draw_host(self, request: Request) -> tuple[IndexArray, int]:
        """Draws blocks and copies them to host memory, where messages are masked."""
        blocks, first = self._draw(request)
        return self._kernels.to_host(blocks), first

    def _to_host(self, blocks: Blocks) -> IndexArray:
        return self._kernels.to_host(blocks)

    def _triples(
        self, batches: list[slice], make: Callable[[int], tuple[Array, ...]], kind: type
    ) -> tuple[Array, Array, Array]:
        """Makes the shares a, b, c of triples batch by batch; `make` gets the size of a batch."""
        shares: Array = np.empty((3, batches[-1].stop), kind)
        with self._ending_with_errors():
            for batch in batches:
                shares[:, batch] = make(batch.stop - batch.start)
        return shares[0], shares[1], shares[2]

    def _hash(
        self,
        blocks: Blocks,
        first: int,
        tag: int = 0,
        delta: IndexArray | None = None,
        out: Blocks | None = None,
    ) -> Blocks:
        """Hashes correlated blocks into random ones; on the CPU, into `out` unless it is None."""
        session = self._session()
        key = session.keys.hashing()
        with session.clock.step("hash"):
            return self._kernels.hash_blocks(blocks, first, tag, key, delta, out=out)

    def _host_hash(
        self, blocks: IndexArray, first: int, tag: int = 0, delta: IndexArray | None = None
    ) -> IndexArray:
        """Hashes blocks in host memory."""
        kernels = self._kernels
        return kernels.to_host(self._hash(kernels.upload(blocks), first, tag, delta))

    def _agree(self) -> SessionKeys:
        """Compares parameters with the other party's, and derives keys from both parties' nonces.

        Raises MismatchError at both parties if their parameters differ.
        """
        own = {
            "protocol": _PROTOCOL,
            "family": self.family,
            "parameters": self.parameters,
            "malicious": self.malicious,
        }
        other = "receiver" if self._role == "sender" else "sender"
        nonce = self._randomness.draw(NONCE_BYTES)
        self.channel.send("PARM", nonce + _encoded({**own, "role": self._role}))
        received = bytes(self.channel.receive_at_most("PARM", _MAX_AGREEMENT_BYTES))
        theirs, found = received[:NONCE_BYTES], received[NONCE_BYTES:]
        expected = _encoded({**own, "role": other})
        if found != expected:
            given, wanted = _shown(found), _shown(expected)
            message = (
                f"the parties of an OT session have different parameters: found {given}, "
                f"expected {wanted}"
            )
            raise MismatchError(message, found=given, expected=wanted)
        return SessionKeys(*((nonce, theirs) if self._role == "sender" else (theirs, nonce)))


def as_messages(value: object, what: str) -> ByteArray:
    """Returns messages, given as bytes or blocks, as bytes (n, length). Raises ArgumentError."""
    array = np.ascontiguousarray(as_array(value, what))
    if array.dtype == np.uint64 and array.ndim == 2 and array.shape[1] == 2:
        return array.view(np.uint8).reshape(len(array), 16)
    if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] == 0:
        raise ArgumentError(
            f"{what}: found {array.dtype} of shape {array.shape}, expected uint8 of shape "
            "(n, length), or blocks: uint64 of shape (n, 2)"
        )
    return array


def as_choices(value: object, largest: int = 1) -> Array:
    """Returns choices from 0 to `largest` as uint64, in time that does not depend on them.

    Raises ArgumentError.
    """
    array = as_array(value, "choices")
    if array.shape == (0,):
        return np.zeros(0, np.uint64)
    if array.ndim != 1 or array.dtype.kind not in "biu":
        raise ArgumentError(
            f"choices: found {array.dtype} of shape {array.shape}, expected integers of shape (n,)"
        )
    if array.size and (int(array.min()) < 0 or int(array.max()) > largest):
        raise ArgumentError(f"choices: found numbers outside 0 to {largest}")
    return array.astype(np.uint64)


def check_family(family: FamilyName, chosen: str | None) -> tuple[FamilyName, str]:
    """Checks a family and the name of its set, None for the default. Raises ArgumentError."""
    if family not in FAMILIES:
        raise ArgumentError(f"family: found {shown(family)}, expected one of {', '.join(FAMILIES)}")
    if not isinstance(chosen, str | None):
        raise ArgumentError(f"parameters: found {shown(chosen)}, expected the name of a set")
    if family == "primal":
        return family, parameters.primal(DEFAULT_PRIMAL if chosen is None else chosen).name
    if chosen not in (None, *parameters.CODES):
        raise ArgumentError(
            f"parameters: found {chosen!r}, expected one of {', '.join(parameters.CODES)}"
        )
    return family, DEFAULT_DUAL if chosen is None else chosen


def _kernels(
    threads: int, device: str, devices: Sequence[str] | None, parameters: str
) -> CpuKernels | GpuKernels:
    used = parse_devices(device, devices)
    if not used:
        return CpuKernels(threads)
    if parameters == "qc":
        raise ArgumentError(
            f"parameters: found 'qc', which does not run on {used[0]}; use parameters='ec' or "
            "device='cpu'"
        )
    return GpuKernels([str(place) for place in used])


def _family(family: FamilyName, chosen: str, *, malicious: bool) -> Family:
    if family == "primal":
        return PrimalFamily(parameters.primal(chosen), malicious=malicious)
    return DualFamily(chosen, malicious=malicious)


def _encoded(agreement: dict[str, object]) -> bytes:
    return json.dumps(agreement, sort_keys=True, separators=(",", ":")).encode()


def _shown(encoded: bytes) -> str:
    text = encoded.decode("ascii", "replace")
    return "".join(c if c.isprintable() else "?" for c in text[:300])
