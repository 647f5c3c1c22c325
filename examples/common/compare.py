"""The device's half of a model, with lookups on two servers, beside the plain model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from examples.common.application import Application, Effort
from examples.common.layouts import Layouts
from examples.common.measured import TimedModel, milliseconds
from examples.common.private import at_once, export, private_model
from examples.common.report import Report
from nescio.pir.batch import Layout

_SEPARATE = 8  # calls with a lookup for each row

_LINES = {
    "outputs equal bit for bit": "equal",
    "rows missing, %": "missing_percent",
    "keys to each server": "keys",
    "bytes up, to each server": "bytes_up",
    "bytes down, from each server": "bytes_down",
    "ms to plan": "plan",
    "ms to make keys": "make_keys",
    "ms of the slower server": "servers",
    "ms of HTTP": "network",
    "ms to decode and check": "decode",
    "ms of the model": "model",
    "ms of an inference": "total",
    "ms of a server, of many together": "servers_together",
}


class Comparison:
    """Runs held-out inferences privately; `results` has the facts of each way by its name.

    A way is a layout of the table, or None: a lookup for each row by itself. `folder` gets a folder
    for each way, with the tables for the servers and the device's half of the model.
    """

    def __init__(
        self, application: Application, effort: Effort, folder: Path, report: Report
    ) -> None:
        self._application, self._effort = application, effort
        self._folder, self._report = folder, report
        self._part = application.held_out
        self._at_once = at_once(application.lookups)
        self._plain = self._outputs(application.model, effort.private)
        quality = abs(self._part.rate(self._plain))
        self.results: dict[str, dict[str, Any]] = {"plain": {"quality": quality}}

    def run(self, layouts: Layouts) -> None:
        """Runs inferences with separate lookups and with both layouts, and prints a table."""
        private = self._effort.private
        few = _SEPARATE * self._at_once
        self.run_one("separate", None, few if private is None else min(few, private))
        self.results["separate"].pop("quality")  # of other inferences
        self.run_one("exact", layouts.exact, private)
        self.run_one("relaxed", layouts.relaxed, private)
        lines = {self._application.metric: "quality"} | _LINES
        self._report.table(
            list(self.results),
            {line: [one.get(key) for one in self.results.values()] for line, key in lines.items()},
        )
        self._report.facts["private"] = self.results

    def run_one(self, way: str, layout: Layout | None, count: int | None) -> dict[str, Any]:
        """Exports the model for a layout, and runs `count` inferences with it on two servers."""
        application, folder = self._application, self._folder / way
        count = min(count or len(self._part), len(self._part))
        self._report.say(f"{way}: {count:,} held-out inferences")
        export(application, folder, layout)
        with private_model(application.make, folder, seconds=900 + count / 10) as private:
            facts = {"keys": layout.slots if layout else application.lookups}
            facts |= self._one_by_one(private)
            if way == "exact":
                self._report.seen(private.tables[application.table].seen)
            facts |= self._together(private, count)
        self.results[way] = facts
        return facts

    def _outputs(self, model: Any, count: int | None) -> list[torch.Tensor]:  # noqa: ANN401
        with torch.no_grad():
            return list(self._part.run(model, self._at_once, count))

    def _one_by_one(self, private: TimedModel) -> dict[str, Any]:
        """Runs inferences one by one; returns the bytes of one, and the median of each phase."""
        for _ in self._part.run(private, 1, self._effort.timed):
            pass
        up, down = private.tables[self._application.table].sizes
        times = milliseconds(private.calls)
        return {"bytes_up": up, "bytes_down": down, "make_keys": times.pop("keys")} | times

    def _together(self, private: TimedModel, count: int) -> dict[str, Any]:
        """Runs inferences, some in a call; returns their quality, and if outputs are equal."""
        begun = len(private.calls)
        rows = _Rows(private.model.get_submodule(self._application.table))
        outputs = self._outputs(private, count)
        whole = private.calls[begun:][: max(1, count // self._at_once)]  # without a shorter one
        times = milliseconds(whole, min(self._at_once, count))
        return {
            "inferences": count,
            "quality": abs(self._part.rate(outputs)),
            "equal": _are_equal(outputs, self._plain),
            "missing_percent": 100 * rows.missing / rows.wanted,
            "servers_together": times["servers"],
        }


def _are_equal(some: Sequence[torch.Tensor], plain: Sequence[torch.Tensor]) -> bool:
    """Tests if outputs are those of the plain model, which may have been run further."""
    pairs = zip(some, plain, strict=False)
    return all(torch.equal(found, expected[: len(found)]) for found, expected in pairs)


class _Rows:
    """Counts the different rows of each inference, and those of them that are missing."""

    def __init__(self, embedding: torch.nn.Module) -> None:
        self.wanted = self.missing = 0
        embedding.register_forward_hook(self._count)

    def _count(
        self, module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], _output: object
    ) -> None:
        rows, places = torch.sort(inputs[0], dim=1, stable=True)
        first = torch.ones_like(rows, dtype=torch.bool)
        first[:, 1:] = rows[:, 1:] != rows[:, :-1]
        missing: torch.Tensor = module.last_missing.gather(1, places)
        self.wanted += int(first.sum())
        self.missing += int((first & missing).sum())
