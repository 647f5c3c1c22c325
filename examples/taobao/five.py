"""The five tables looked up one after the other, to compare with one lookup of all."""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import nescio.torch
from examples.common.application import Application, Effort, Part
from examples.common.measured import TimedModel, milliseconds
from examples.common.private import private_model
from examples.common.report import Report
from examples.taobao.model import ClickModel, with_five_tables
from examples.taobao.tables import TABLES, Places
from nescio.pir.batch import AccessLog, Layout, make_layout

_TOGETHER = 64
_CALLS = 16
_FEW = 8  # lookups: so few do without a layout

_LINES = {
    "requests of an inference": "requests",
    "outputs equal bit for bit": "equal",
    "keys to each server": "keys",
    "bytes up, to each server": "bytes_up",
    "bytes down, from each server": "bytes_down",
    "ms of the slower server": "servers",
    "ms of HTTP": "network",
    "ms of an inference": "total",
    "ms of a server, of many, at least": "servers_together",
}


def separated(model: ClickModel, firsts: Sequence[int]) -> ClickModel:
    """Returns the same model with five tables."""
    five = with_five_tables(firsts, model.places.history)
    weights = model.features.weight.detach()
    for number, table in enumerate(five.features.tables.values()):
        table.weight.data.copy_(weights[firsts[number] : firsts[number + 1]])
    five.head.load_state_dict(model.head.state_dict())
    return five


def layouts_of(log: AccessLog, firsts: Sequence[int], places: Places) -> dict[str, Layout]:
    """Makes a layout in exact mode for each of the tables with more than a few lookups."""
    found = {}
    for number, name in enumerate(TABLES):
        begin, end = firsts[number], firsts[number + 1]
        lookups = min(len(places.of_table(number)), end - begin)
        if lookups > _FEW:
            sets = [rows[(rows >= begin) & (rows < end)] - begin for rows in log]
            found[name] = make_layout(end - begin, AccessLog(sets), lookups=lookups)
    return found


def compare_five(
    application: Application,
    firsts: Sequence[int],
    *,
    folder: Path,
    effort: Effort,
    report: Report,
) -> None:
    """Compares one lookup of the joined table with a lookup of each table, and prints the facts.

    `folder` has the model of `Comparison` exported for `separate` and `exact`, and gets both with
    five tables. The ways take turns, so they are measured under the same load.
    """
    model = application.model
    assert isinstance(model, ClickModel)
    exact = layouts_of(application.log, firsts, model.places)
    _export(model, firsts, folder / "five_separate", None)
    _export(model, firsts, folder / "five_exact", exact)
    five = partial(with_five_tables, firsts, model.places.history, "meta")
    with ExitStack() as opened:
        ways = {
            name: opened.enter_context(private_model(make, folder / name))
            for name, make in (
                ("separate", application.make),
                ("exact", application.make),
                ("five_separate", five),
                ("five_exact", five),
            )
        }
        facts = _measured(ways, application.held_out, model, effort.timed)
    joined = Layout.load(folder / "exact" / "servers" / f"{application.table}.layout")
    facts["separate"]["keys"], facts["exact"]["keys"] = application.lookups, joined.slots
    facts["five_separate"]["keys"] = _keys({}, model.places)
    facts["five_exact"]["keys"] = _keys(exact, model.places)
    report.facts["five_tables"] = facts
    columns = [name.replace("_", " ") for name in facts]
    report.table(
        columns, {line: [one[key] for one in facts.values()] for line, key in _LINES.items()}
    )


def _export(
    model: ClickModel, firsts: Sequence[int], folder: Path, layouts: dict[str, Layout] | None
) -> None:
    names = {f"features.tables.{name}": name for name in TABLES}
    nescio.torch.export(separated(model, firsts), folder, tables=names, layouts=layouts)


def _measured(
    ways: dict[str, TimedModel], part: Part, model: torch.nn.Module, timed: int
) -> dict[str, dict[str, Any]]:
    """Runs inferences one by one, then many in a call; returns the facts of each way.

    Bytes and times are sums over all requests of an inference. Of many together, the fastest call
    counts: other programs interrupt one long request more than five short ones.
    """
    for _ in zip(*(part.run(way, 1, timed) for way in ways.values()), strict=True):
        pass
    facts = {name: _alone(way) for name, way in ways.items()}
    count = min(len(part) // _TOGETHER, _CALLS) * _TOGETHER
    runs = [part.run(one, _TOGETHER, count) for one in (model, *ways.values())]
    with torch.no_grad():
        plain, *found = (list(outputs) for outputs in zip(*zip(*runs, strict=True), strict=True))
    for (name, way), outputs in zip(ways.items(), found, strict=True):
        least = 1000 * min(call.servers for call in way.calls[timed:]) / _TOGETHER
        equal = all(map(torch.equal, plain, outputs))
        facts[name] |= {"equal": equal, "servers_together": least}
    return facts


def _alone(way: TimedModel) -> dict[str, Any]:
    up, down = np.sum([table.sizes for table in way.tables.values()], axis=0).tolist()
    times = milliseconds(way.calls)
    return {
        "requests": len(way.tables),
        "bytes_up": up,
        "bytes_down": down,
        "make_keys": times.pop("keys"),
    } | times


def _keys(layouts: dict[str, Layout], places: Places) -> int:
    numbers = {name: len(places.of_table(number)) for number, name in enumerate(TABLES)}
    return sum(layouts[name].slots if name in layouts else numbers[name] for name in TABLES)
