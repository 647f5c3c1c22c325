"""Counts of bytes, frames and rounds of each step of a protocol, from the channel."""

from typing import NamedTuple

from ..net import Channel, Counts


class Step(NamedTuple):
    """A party's counts in one phase, for one layer or, as layer 0, for the whole network.

    Phases of `prepare`: "agreement", "keys", "products", "tables", "places". Those of an inference:
    "agreement", "input", "lookups" of each layer, "outputs" of the last one.
    """

    phase: str
    layer: int
    counts: Counts


class Steps:
    """Splits the counts of a channel into steps; steps of one name are added up."""

    def __init__(self, channel: Channel) -> None:
        self._channel, self._before = channel, channel.counts
        self._found: dict[tuple[str, int], Counts] = {}

    def end(self, phase: str, layer: int = 0) -> None:
        """Ends a step: it has everything since the last one."""
        now = self._channel.counts
        name = phase, layer
        self._found[name] = self._found.get(name, Counts()).plus(now.since(self._before))
        self._before = now

    @property
    def found(self) -> list[Step]:
        """The steps, in the order of their first ends."""
        return [Step(*name, counts) for name, counts in self._found.items()]
