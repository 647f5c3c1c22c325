"""The processor or the devices that answer, with their limits."""

from typing import NamedTuple, Protocol

from nescio import _core
from nescio._report import Case
from nescio.bench.answers import Checked
from nescio.bench.cpu_case import answer_limits
from nescio.bench.gpu_case import GpuBench, Spec
from nescio.pir import Server, Table

__all__ = ["Answer", "Devices", "Place", "Processor"]


class Answer(NamedTuple):
    """A server's answer to so many lookups together, which took `seconds`."""

    server: Server
    lookups: int
    verified: bool
    checked: Checked
    seconds: float


class Place(Protocol):
    """A processor or devices that answer."""

    @property
    def name(self) -> str:
        """The processor's tier, or the devices."""
        ...

    def open(self, table: Table) -> Server:
        """Returns a server of a table."""
        ...

    def describe(self) -> str:
        """Describes the rates that limits are computed from."""
        ...

    def limits(self, answer: Answer) -> Case:
        """Returns the limits of an answer."""
        ...


class Processor(NamedTuple):
    """The processor of the machine, with `threads`; limits are measured for `duration` each."""

    threads: int
    duration: float

    @property
    def name(self) -> str:
        """The tier of the CPU."""
        return _core.active_tier()

    def open(self, table: Table) -> Server:
        """Returns a server on the processor."""
        return Server(table, threads=self.threads, device="cpu")

    def describe(self) -> str:
        """Describes a thread: leaves of 512 bits, and products with shares of bits."""
        leaves = ", ".join(
            f"{name} {_core.seconds_per_node(name, True, self.name) * 1e9:.1f} ns"
            for name in ("chacha20", "aes128")
        )
        product = 1e-9 / _core.seconds_per_byte("bit", self.name)
        return f"one thread: 512 bits of {leaves}; a key's product {product:,.0f} GB/s"

    def limits(self, answer: Answer) -> Case:
        """Measures the limits: a read of the table, the inner loops, their bare instructions."""
        server, seconds = answer.server, answer.seconds
        found = answer_limits(
            server, self.name, answer.lookups, self.duration, verified=answer.verified
        )
        return {
            "threads": server.threads,
            "pass_milliseconds": found.one_pass * 1e3,
            "loops_milliseconds": found.loops * 1e3,
            "issue_milliseconds": None if found.issue is None else found.issue * 1e3,
            "times_limit": seconds / max(found.one_pass, found.loops),
            "times_machine": None if found.issue is None else seconds / found.machine,
        }


class Devices(NamedTuple):
    """Devices that share the rows."""

    bench: GpuBench

    @property
    def name(self) -> str:
        """The devices."""
        return "+".join(map(str, self.bench.places))

    def open(self, table: Table) -> Server:
        """Returns a server on the devices."""
        return self.bench.open(table, "auto", None)

    def describe(self) -> str:
        """Describes the devices."""
        return self.bench.device

    def limits(self, answer: Answer) -> Case:
        """Computes the limits from the devices' rates, without those of hash tables."""
        found: Case = {"device": self.bench.device}
        if answer.verified:
            return found
        server = answer.server
        server.answer(answer.checked.query)  # the device keeps the work of the latest answer
        params = server.params
        kind = (params.rows, params.row_bytes, params.output, params.generator)
        spec = Spec(*kind, "auto", None, answer.lookups)
        case = self.bench.case(server, spec, answer.seconds, answer.checked.peak)
        return found | {
            "pass_milliseconds": case["memory_milliseconds"],
            "loops_milliseconds": case["compute_milliseconds"],
            "times_limit": case["times_limit"],
        }
