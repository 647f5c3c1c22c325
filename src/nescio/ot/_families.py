"""The two families of extensions: the correlations that each spends, and its public code.

Both families grow t trees of 2^depth leaves each and puncture one leaf of every tree. Together the
leaves are a noise vector of regular weight t (learning parity with noise, LPN).

    primal (Ferret): out = A s + e      s: k correlations, spent; A: n x k, ten ones per row
    dual:            out = H e          H: n x 2n, expand-convolute ("ec") or quasi-cyclic ("qc")

A primal extension spends k correlations in addition to those of its trees, and needs megabytes of
messages for 2^24 OTs. A dual extension spends only those of its trees and needs kilobytes, for
more computation.

Source: Yang et al. 2020 (Ferret); Boyle et al. 2019; Raghuraman, Rindal and Tanguy 2023.
"""

from dataclasses import dataclass
from typing import Protocol

from . import parameters
from ._engine import Blocks, Kernels
from .parameters import Dual, Primal

CHECK_COTS = 128
"""Correlations that the consistency check of the trees spends."""

_MAX_DUAL_OUTPUTS = 1 << 23
_MIN_DUAL_OUTPUTS = 1 << 14
_DUAL_RESERVE = 256 * 18 + CHECK_COTS


class Encode(Protocol):
    """Multiplies leaves, and in primal LPN spent correlations, by a code."""

    def __call__(
        self, kernels: Kernels, leaves: Blocks, seeds: Blocks, code: bytes, out: Blocks | None, /
    ) -> Blocks:
        """Returns the new blocks; with `supports_out` and `out`, the first are in `out` instead.

        `code` is the public seed of the code, 16 bytes.
        """


@dataclass(frozen=True, slots=True)
class ExtensionPlan:
    """The sizes and the code of one extension.

    It grows `trees` trees of `depth` levels. It spends a correlation for each level, `checks` for
    the consistency check and `seeds` for the code, and makes `outputs` correlations.
    `supports_out`: the code can write to memory given by the caller.
    """

    trees: int
    depth: int
    checks: int
    seeds: int
    outputs: int
    encode: Encode
    supports_out: bool = False

    @property
    def inputs(self) -> int:
        """Correlations that the extension spends."""
        return self.trees * self.depth + self.checks + self.seeds

    @property
    def leaves(self) -> int:
        """Leaves of all trees together."""
        return self.trees << self.depth


class Family(Protocol):
    """Plans one extension after another."""

    @property
    def reserve(self) -> int:
        """Correlations of each extension that are kept for the next one."""

    def plan(self, wanted: int) -> ExtensionPlan:
        """Plans the next extension when `wanted` OTs are missing; it may make fewer or more."""

    def first_plan(self, inputs: int) -> ExtensionPlan | None:
        """Plans an extension that makes the first `inputs` correlations from fewer, or None."""


class PrimalFamily:
    """Iterations of Ferret with one plan; a dual extension makes the first one's correlations."""

    def __init__(self, chosen: Primal, *, malicious: bool) -> None:
        self._plan = ExtensionPlan(
            trees=chosen.t,
            depth=chosen.depth,
            checks=CHECK_COTS * malicious,
            seeds=chosen.k,
            outputs=chosen.n,
            encode=encode_primal,
        )
        self._malicious = malicious

    @property
    def reserve(self) -> int:
        """The inputs of the next iteration, the same for all."""
        return self._plan.inputs

    def plan(self, wanted: int) -> ExtensionPlan:
        """Returns the one plan, for any number of OTs."""
        del wanted
        return self._plan

    def first_plan(self, inputs: int) -> ExtensionPlan | None:
        """Plans a dual extension, which needs a thirtieth of the correlations."""
        return dual_plan(parameters.dual("ec", inputs), malicious=self._malicious)


class DualFamily:
    """Extensions of the size that is missing, at most 2^23 outputs each."""

    def __init__(self, code: str, *, malicious: bool) -> None:
        self._code = code
        self._malicious = malicious

    @property
    def reserve(self) -> int:
        """The most correlations that an extension spends."""
        return _DUAL_RESERVE

    def plan(self, wanted: int) -> ExtensionPlan:
        """Plans one extension for all missing OTs, or one of several extensions of equal size."""
        wanted = max(wanted, _MIN_DUAL_OUTPUTS)
        extensions = -(-wanted // _MAX_DUAL_OUTPUTS)
        chosen = parameters.dual(self._code, -(-wanted // extensions) + self.reserve)
        return dual_plan(chosen, malicious=self._malicious)

    def first_plan(self, inputs: int) -> ExtensionPlan | None:
        """Returns None: the base OTs make enough correlations for the first extension."""
        del inputs
        return None


def dual_plan(chosen: Dual, *, malicious: bool) -> ExtensionPlan:
    """Plans a dual extension with the given parameters."""

    def encode(
        kernels: Kernels, leaves: Blocks, seeds: Blocks, code: bytes, out: Blocks | None, /
    ) -> Blocks:
        del seeds  # empty: dual LPN spends none
        noise = leaves[: chosen.n]
        if chosen.code == "qc":
            return kernels.encode_qc(noise, code, chosen.outputs)
        return kernels.encode_ec(noise, code, out)[: chosen.outputs]

    return ExtensionPlan(
        trees=chosen.t,
        depth=chosen.depth,
        checks=CHECK_COTS * malicious,
        seeds=0,
        outputs=chosen.outputs,
        encode=encode,
        supports_out=chosen.code == "ec",
    )


def encode_primal(
    kernels: Kernels, leaves: Blocks, seeds: Blocks, code: bytes, out: Blocks | None, /
) -> Blocks:
    """Computes A s + e in the memory of e."""
    del out
    return kernels.encode_primal(leaves, seeds, code)
