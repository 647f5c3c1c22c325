"""The device's half of the model, with lookups on two servers, beside the plain model."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import nescio.torch
from examples.common.layouts import Layouts
from examples.common.measured import TimedModel, milliseconds
from examples.common.private import private_model
from examples.common.quality import roc_auc
from examples.common.report import Report
from examples.movielens.data import Integers
from examples.movielens.model import Recommender, scores_of
from examples.movielens.task import Task
from nescio.pir.batch import Layout

TOGETHER = 64
"""Inferences of a call where outputs are compared; fewer where histories are very long."""
_SEPARATE = 8  # calls with a lookup for each film
_MAX_KEYS = 16384  # of a request
_MAX_BODY = 64 << 20

_LINES = {
    "ROC-AUC": "auc",
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

    A way is a layout of the table, or None: a lookup for each film by itself. `folder` gets a
    folder for each way, with the tables for the servers and the device's half of the model.
    """

    def __init__(self, task: Task, model: Recommender, folder: Path, report: Report) -> None:
        self._task, self._model, self._folder, self._report = task, model, folder, report
        self._numbers = task.sample(task.split.test, task.size.private)
        self._at_once = max(1, min(TOGETHER, _MAX_KEYS // task.lookups))
        plain = scores_of(model, task.examples, self._numbers, self._at_once)
        auc = roc_auc(task.inferences.liked[self._numbers], plain)
        self.results: dict[str, dict[str, Any]] = {"plain": {"auc": auc}}

    def run(self, layouts: Layouts) -> None:
        """Runs inferences with separate lookups and with both layouts, and prints a table."""
        self._run("separate", None, self._numbers[: _SEPARATE * self._at_once])
        self.results["separate"].pop("auc")  # of other inferences
        self._run("exact", layouts.exact, self._numbers)
        self._run("relaxed", layouts.relaxed, self._numbers)
        lines = {line: [r.get(key) for r in self.results.values()] for line, key in _LINES.items()}
        self._report.table(list(self.results), lines)

    def _run(self, way: str, layout: Layout | None, numbers: Integers) -> None:
        """Exports the model for a layout, and runs inferences with it on two servers."""
        self._report.say(f"{way}: {len(numbers):,} held-out inferences")
        folder, task = self._folder / way, self._task
        nescio.torch.export(self._model, folder, layouts={"films": layout} if layout else None)
        make = partial(Recommender, task.films, device="meta")
        options = f"--max-keys={_MAX_KEYS}", f"--max-body={_MAX_BODY}"
        limit = 900 + len(numbers) / 10
        with private_model(make, folder, *options, seconds=limit) as private:
            facts = {"keys": layout.slots if layout else task.lookups}
            facts |= self._one_by_one(private, numbers[: task.size.timed])
            if way == "exact":
                self._report.seen(private.tables["films"].seen)
            self.results[way] = facts | self._together(private, numbers)

    def _one_by_one(self, private: TimedModel, numbers: Integers) -> dict[str, Any]:
        """Runs inferences one by one; returns the bytes of one, and the median of each phase."""
        for number in numbers:
            private(self._task.examples(np.array([number]))[0])
        requests = private.tables["films"].requests
        ((up, down),) = {(r.bytes_up, r.bytes_down) for r in requests}  # all alike
        times = milliseconds(private.calls)
        return {"bytes_up": up, "bytes_down": down, "make_keys": times.pop("keys")} | times

    def _together(self, private: TimedModel, numbers: Integers) -> dict[str, Any]:
        """Runs inferences, some in a call; returns their quality, and if outputs are equal."""
        begun, size, scores, equal = len(private.calls), self._at_once, [], True
        wanted = missing = 0
        for own in np.split(numbers, range(size, len(numbers), size)):
            rows, _ = self._task.examples(own)
            scores.append(private(rows))
            with torch.no_grad():
                equal &= torch.equal(scores[-1], self._model(rows))
            used = rows != rows[:, :1]
            used[:, 0] = True
            wanted += int(used.sum())
            missing += int((used & private.model.films.last_missing).sum())
        calls = private.calls[begun:][: max(1, len(numbers) // size)]  # without a shorter one
        times = milliseconds(calls, min(size, len(numbers)))
        return {
            "auc": roc_auc(self._task.inferences.liked[numbers], torch.cat(scores).numpy()),
            "equal": equal,
            "missing_percent": 100 * missing / wanted,
            "servers_together": times["servers"],
        }
