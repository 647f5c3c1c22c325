"""The two families of extensions: what each spends, and the code that its leaves are put through.

Both are bound to one shape of trees: `t` of them, 2^depth leaves each, of which one is punctured;
together a noise vector of regular weight t (learning parity with noise, LPN).

    primal (Ferret): out = A s + e      s: k correlations, spent; A: n x k, ten ones a row
    dual:            out = H e          H: n x 2n, expand-convolute ("ec") or quasi-cyclic ("qc")

Primal spends k correlations an extension and needs megabytes of messages for 2^24 OTs, dual spends
none beside the trees' and needs kilobytes, for more work.

Source: Yang et al. 2020 (Ferret); Boyle et al. 2019; Raghuraman, Rindal and Tanguy 2023.
"""

from dataclasses import dataclass
from typing import Protocol

from . import parameters
from ._engine import Blocks, Kernels
from .parameters import Dual, Primal

CHECK_COTS = 128
"""Correlations that the proof of honest trees spends."""

CODE_SEED = b"Nescio LPN codes"
"""The public seed of all codes: there is nothing to choose in it."""

_MOST_DUAL_OUTPUTS = 1 << 23
_LEAST_DUAL_OUTPUTS = 1 << 14
_DUAL_RESERVE = 256 * 18 + CHECK_COTS


class Encode(Protocol):
    """A code: what it makes of leaves and of correlations that it spends."""

    def __call__(
        self, kernels: Kernels, leaves: Blocks, seeds: Blocks, place: Blocks | None, /
    ) -> Blocks:
        """The blocks that come of it; the first of them in `place`, if that is named and used."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One extension: `trees` of `depth` levels, `checks` and `seeds` correlations beside theirs.

    `gives` is how many correlations come of it; `places`, whether the code can write them elsewhere
    than to where the leaves are.
    """

    trees: int
    depth: int
    checks: int
    seeds: int
    gives: int
    encode: Encode
    places: bool = False

    @property
    def needs(self) -> int:
        """Correlations that it spends."""
        return self.trees * self.depth + self.checks + self.seeds

    @property
    def leaves(self) -> int:
        """Leaves of all trees."""
        return self.trees << self.depth


class Family(Protocol):
    """How extensions follow each other."""

    @property
    def reserve(self) -> int:
        """Correlations to keep of each extension for the next."""

    def shape(self, wanted: int) -> Shape:
        """The extension to make when so many OTs are wanted; it may give fewer, or more."""

    def start(self, needs: int) -> Shape | None:
        """An extension that makes `needs` correlations from fewer, for the first; or None."""


class PrimalFamily:
    """Ferret's iterations, all of one shape; the first one's correlations come of a dual one."""

    def __init__(self, chosen: Primal, *, malicious: bool) -> None:
        self._shape = Shape(
            trees=chosen.t,
            depth=chosen.depth,
            checks=CHECK_COTS * malicious,
            seeds=chosen.k,
            gives=chosen.n,
            encode=encode_primal,
        )
        self._malicious = malicious

    @property
    def reserve(self) -> int:
        """What the next iteration spends: all of them spend the same."""
        return self._shape.needs

    def shape(self, wanted: int) -> Shape:
        """The one shape there is."""
        del wanted
        return self._shape

    def start(self, needs: int) -> Shape | None:
        """A dual extension: it needs a thirtieth of the correlations."""
        return dual_shape(parameters.dual("ec", needs), malicious=self._malicious)


class DualFamily:
    """Extensions of any size, each as large as is wanted, up to 2^23."""

    def __init__(self, code: str, *, malicious: bool) -> None:
        self._code = code
        self._malicious = malicious

    @property
    def reserve(self) -> int:
        """The most that an extension spends."""
        return _DUAL_RESERVE

    def shape(self, wanted: int) -> Shape:
        """An extension that gives all that is wanted, or one of several equal ones."""
        wanted = max(wanted, _LEAST_DUAL_OUTPUTS)
        extensions = -(-wanted // _MOST_DUAL_OUTPUTS)
        chosen = parameters.dual(self._code, -(-wanted // extensions) + self.reserve)
        return dual_shape(chosen, malicious=self._malicious)

    def start(self, needs: int) -> Shape | None:
        """None: base OTs are enough for the first."""
        del needs
        return None


def dual_shape(chosen: Dual, *, malicious: bool) -> Shape:
    """The extension with some parameters."""

    def encode(kernels: Kernels, leaves: Blocks, seeds: Blocks, place: Blocks | None, /) -> Blocks:
        del seeds  # there are none
        noise = leaves[: chosen.n]
        if chosen.code == "qc":
            return kernels.encode_qc(noise, CODE_SEED, chosen.outputs)
        return kernels.encode_ec(noise, CODE_SEED, place)[: chosen.outputs]

    return Shape(
        chosen.t,
        chosen.depth,
        CHECK_COTS * malicious,
        0,
        chosen.outputs,
        encode,
        chosen.code == "ec",
    )


def encode_primal(
    kernels: Kernels, leaves: Blocks, seeds: Blocks, place: Blocks | None, /
) -> Blocks:
    """A s + e, in the place of e."""
    del place
    return kernels.encode_primal(leaves, seeds, CODE_SEED)
