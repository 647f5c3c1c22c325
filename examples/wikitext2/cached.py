"""Streams of text on a device that keeps the rows of the words it met last."""

from collections import OrderedDict
from pathlib import Path
from typing import Any

import torch

import nescio.torch
from examples.common.application import Application, Effort, plain_quality
from examples.common.layouts import tuned
from examples.common.measured import TimedModel, milliseconds
from examples.common.private import export, private_model
from examples.common.report import Report
from examples.wikitext2.data import Integers
from examples.wikitext2.model import LanguageModel
from examples.wikitext2.part import WINDOW, TextPart
from examples.wikitext2.task import Task
from nescio.pir.batch import BatchClient, Layout

_STREAMS = 8


def run_with_cache(
    task: Task,
    application: Application,
    effort: Effort,
    report: Report,
    *,
    cache_rows: int,
    folder: Path,
) -> dict[str, Any]:
    """Runs some held-out streams, each on a device of its own with a cache, and reports them.

    The layout is the fastest one whose perplexity is good enough with such a cache. `folder` gets
    what is exported for it.
    """
    model = application.model
    assert isinstance(model, LanguageModel)
    plain_rated = plain_quality(application.rated)
    layout = tuned(application, effort, plain_rated, cache_rows).layout()
    streams = task.held_out[:_STREAMS]
    part = TextPart(model, streams)
    with torch.no_grad():
        plain = -part.rate(list(part.run(model, len(streams))))
    whole, new = new_rows(streams, 0), new_rows(streams, cache_rows)
    facts = {"layout": layout.describe(), "keys": layout.slots, "plain": plain}
    facts |= {"rows_a_window": whole, "new_rows_a_window": new, "cache_rows": cache_rows}
    facts |= _run(application, layout, part, cache_rows, folder)
    report.facts["cache"] = facts
    report.say(f"relaxed, with a cache: {layout.describe()}")
    report.say(
        f"{len(part):,} windows of {len(streams)} streams need {whole:.1f} different rows each, "
        f"and {new:.1f} with a cache of {cache_rows:,} rows"
    )
    report.say(
        f"perplexity {facts['quality']:.1f} instead of {plain:.1f}; "
        f"{facts['missing_percent']:.1f} % of the words missing; {layout.slots} keys; "
        f"{facts['bytes_up']:,} bytes up and {facts['bytes_down']:,} down for each server; "
        f"{facts['total']:.1f} ms, of which {facts['servers']:.1f} ms of the slower server"
    )
    return facts


def new_rows(streams: Integers, cache_rows: int) -> float:
    """Returns the mean number of different rows of a window that a cache does not have.

    The cache of a stream begins empty, and keeps the rows used last.
    """
    total = 0
    for stream in streams:
        cache: OrderedDict[int, None] = OrderedDict()
        for window in stream[:-1].reshape(-1, WINDOW).tolist():
            total += sum(row not in cache for row in set(window))
            for row in window:
                cache[row] = None
                cache.move_to_end(row)
            while len(cache) > cache_rows:
                cache.popitem(last=False)
    windows: int = len(streams) * (streams.shape[1] // WINDOW)
    return total / windows


def _run(
    application: Application, layout: Layout, part: TextPart, cache_rows: int, folder: Path
) -> dict[str, Any]:
    """Runs streams one after the other; returns the perplexity, bytes and phases of a window."""
    table, outputs, calls, missing = application.table, [], [], 0
    export(application, folder, layout)
    with private_model(application.make, folder) as served:
        for stream in part.split():
            client = BatchClient(served.tables[table], cache_rows=cache_rows)
            device = nescio.torch.load(application.make(), folder / "device", {table: client})
            timed = TimedModel(device, served.tables)
            for scores in stream.run(timed, 1):
                outputs.append(scores)
                missing += int(device.get_submodule(table).last_missing.sum())
            calls += timed.calls
        up, down = served.tables[table].sizes
    times = milliseconds(calls)
    facts: dict[str, Any] = {"bytes_up": up, "bytes_down": down, "make_keys": times.pop("keys")}
    share = missing / (WINDOW * len(part))
    return facts | times | {"quality": abs(part.rate(outputs)), "missing_percent": 100 * share}
