"""Totals of a run, and the transfers that inferences take."""

import json
import time
from dataclasses import dataclass, field

from nescio.mpc import PublicNetwork

_FIRST_LEVELS = 7  # of trees, which transfers make; docs/private-inference.md


@dataclass
class Totals:
    """Inferences or OTs that were made, bytes and times; `again` counts parts that failed.

    `seconds` counts from the first part's begin to the last part's end, `work_seconds` adds up
    the times of all parts.
    """

    inferences: int = 0
    transfers: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    parts: int = 0
    again: int = 0
    seconds: float = 0.0
    work_seconds: float = 0.0
    _begin: float = field(default=0.0, repr=False)

    def add(self, inferences: int, sent: int, received: int, seconds: float) -> None:
        """Adds a part that has just ended."""
        now = time.monotonic()
        self._begin = self._begin or now - seconds
        self.seconds = now - self._begin
        self.inferences += inferences
        self.sent_bytes += sent
        self.received_bytes += received
        self.work_seconds += seconds
        self.parts += 1

    def facts(self) -> dict[str, float]:
        """Returns the totals by name, with rates."""
        found = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        seconds = self.seconds or 1.0
        rates = {"inferences_per_second": self.inferences, "ots_per_second": self.transfers}
        return found | {name: number / seconds for name, number in rates.items()}


def show(totals: Totals, *, as_json: bool) -> None:
    """Prints the totals."""
    facts = totals.facts()
    if as_json:
        print(json.dumps(facts), flush=True)
        return
    made = [f"{totals.inferences:,} inferences"] if totals.inferences else []
    made += [f"{totals.transfers:,} OTs"] if totals.transfers else []
    rate = facts["ots_per_second"] / 1e6
    print(
        f"{', '.join(made) or 'nothing'} in {totals.seconds:.1f} s: "
        f"{facts['inferences_per_second']:.1f} inferences and {rate:.2f} million OTs a second; "
        f"{totals.sent_bytes:,} bytes sent, {totals.received_bytes:,} received; "
        f"{totals.parts} parts, {totals.again} begun again",
        flush=True,
    )


def transfers_of(network: PublicNetwork) -> int:
    """Counts the OTs that tables of one inference take, in both directions.

    A table of b bits with entries of m bits takes one OT for each bit of the place and of the
    entry, and one for each bit but the first in the other direction. From 9 bits on, trees take
    the higher bits: two OTs for each, beside the one of its number.
    """
    count = 0
    for layer in network.layers:
        if layer.activation is not None:
            bits, outputs = layer.activation.bits, layer.activation.outputs
            low = bits if bits < 9 else _FIRST_LEVELS
            count += layer.size * (bits + outputs + low - 1 + 2 * (bits - low))
    return count
