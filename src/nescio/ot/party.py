"""What both parties of an OT session have in common: what they agree on, and their supply."""

import json
from typing import Literal, get_args

import numpy as np

from .. import _core
from .._arrays import Array, as_count, as_threads
from ..errors import ArgumentError, MismatchError
from ..net import Channel
from . import parameters
from .extension import Blocks, Extender, Role, Seen
from .family import DualFamily, Family, PrimalFamily
from .randomness import Randomness, SystemRandomness, insecure_seeded

FamilyName = Literal["primal", "dual"]
FAMILIES: tuple[FamilyName, ...] = get_args(FamilyName)

DEFAULT_PRIMAL = "b10"
DEFAULT_DUAL = "ec"

MOST_OTS = 1 << 34
STREAM_BATCH = 1 << 20

_PROTOCOL = 1
_MOST_AGREEMENT_BYTES = 4096


class Party:
    """A party of a session: its channel, its parameters, and the correlations it draws on.

    Nothing is sent before the first OTs are asked for.
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
        insecure_seed: bytes | None,
    ) -> None:
        self.channel = channel
        self.family, self.parameters = check_family(family, parameters)
        self.malicious = bool(malicious)
        self._role = role
        self._pool = _core.ThreadPool(as_threads(threads))
        self._randomness: Randomness = (
            SystemRandomness()
            if insecure_seed is None
            else insecure_seeded(role.encode() + insecure_seed)
        )
        self._extender: Extender | None = None

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds that each step took so far: base, trees, check, lpn, hash."""
        return {} if self._extender is None else dict(self._extender.clock.seconds)

    def _make_role(self) -> Role:
        raise NotImplementedError

    def _supply(self) -> Extender:
        """The supply, once both parties are found to want the same."""
        if self._extender is None:
            self._agree()
            family = _family(self.family, self.parameters, malicious=self.malicious)
            self._extender = Extender(
                self.channel,
                family,
                self._make_role(),
                self._pool,
                leads=self._role == "sender",
            )
        return self._extender

    def _draw(self, count: object, seen: Seen | None = None) -> tuple[Blocks, int]:
        """The next blocks, and the number of the first of them. Raises ArgumentError."""
        number = as_count(count, "n", 0, MOST_OTS)
        supply = self._supply()
        first = supply.drawn
        return supply.draw(number, seen), first

    def _hash(
        self, blocks: Blocks, first: int, tag: int = 0, delta: Blocks | None = None
    ) -> Blocks:
        """The hash that turns correlated blocks into random ones."""
        with self._supply().clock.step("hash"):
            return _core.hash_blocks(blocks, first, tag, self._pool, delta)

    def _agree(self) -> None:
        """Compares parameters with the other party's. Raises MismatchError at both."""
        own = {
            "protocol": _PROTOCOL,
            "family": self.family,
            "parameters": self.parameters,
            "malicious": self.malicious,
        }
        other = "receiver" if self._role == "sender" else "sender"
        self.channel.send("PARM", _encoded({**own, "role": self._role}))
        found = bytes(self.channel.receive_at_most("PARM", _MOST_AGREEMENT_BYTES))
        expected = _encoded({**own, "role": other})
        if found != expected:
            shown, wanted = _shown(found), _shown(expected)
            message = (
                f"the parties of an OT session want different things: found {shown}, "
                f"expected {wanted}"
            )
            self.channel.abort(message)
            raise MismatchError(message, found=shown, expected=wanted)


def as_messages(value: Array, what: str, count: int) -> tuple[Array, bool]:
    """Messages as bytes (count, length), and whether they came as blocks. Raises ArgumentError."""
    array = np.ascontiguousarray(value)
    if array.dtype == np.uint64 and array.ndim == 2 and array.shape[1] == 2:
        return array.view(np.uint8).reshape(len(array), 16), True
    if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] == 0:
        raise ArgumentError(
            f"{what}: found {array.dtype} of shape {array.shape}, expected uint8 of shape "
            f"({count}, length), or blocks: uint64 of shape ({count}, 2)"
        )
    return array, False


def as_choices(value: object, most: int = 1) -> Array:
    """Choices as uint64 from 0 to `most`. Raises ArgumentError; the time tells nothing of them."""
    array = np.asarray(value)
    if array.ndim != 1 or array.dtype.kind not in "biu":
        raise ArgumentError(
            f"choices: found {array.dtype} of shape {array.shape}, expected integers, flat"
        )
    if array.size and (int(array.min()) < 0 or int(array.max()) > most):
        raise ArgumentError(f"choices: found numbers outside 0 to {most}")
    return array.astype(np.uint64)


def check_family(family: FamilyName, chosen: str | None) -> tuple[FamilyName, str]:
    """A family and the name of its parameters, the default's for None. Raises ArgumentError."""
    if family not in FAMILIES:
        raise ArgumentError(f"family: found {family!r}, expected one of {', '.join(FAMILIES)}")
    if family == "primal":
        return family, parameters.primal(chosen or DEFAULT_PRIMAL).name
    if chosen not in (None, *parameters.CODES):
        raise ArgumentError(
            f"parameters: found {chosen!r}, expected one of {', '.join(parameters.CODES)}"
        )
    return family, chosen or DEFAULT_DUAL


def _family(family: FamilyName, chosen: str, *, malicious: bool) -> Family:
    if family == "primal":
        return PrimalFamily(parameters.primal(chosen), malicious=malicious)
    return DualFamily(chosen, malicious=malicious)


def _encoded(agreement: dict[str, object]) -> bytes:
    return json.dumps(agreement, sort_keys=True, separators=(",", ":")).encode()


def _shown(encoded: bytes) -> str:
    text = encoded.decode("ascii", "replace")
    return "".join(c if c.isprintable() else "?" for c in text[:300])
