"""Figure 12 of the paper: the time of one inference by step, with a network of 60 Mbit/s."""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch

from examples.common.application import Application, Effort, Model
from examples.common.layouts import find_layouts
from examples.common.measured import TimedModel, milliseconds
from examples.common.private import at_once, export, private_model
from examples.common.report import Report as Messages
from nescio._report import Case, Report, check_writable
from nescio.bench.results import Results
from nescio.net import Channel, Link
from nescio.pir.batch import Layout

from .limits import check_counts
from .prepared import prepared

_EXCHANGES = 5  # over the emulated link
_STEPS = ("plan", "keys", "servers", "http", "link", "decode", "model")
_LAYERS = (torch.nn.Linear, torch.nn.LSTM, torch.nn.GRU)
_COLUMNS = [
    ("application", "application", ">11"),
    ("way", "way", ">9"),
    ("weights", "weights", ">7"),
    *((step, step, ">7.2f") for step in _STEPS),
    ("total", "all", ">7.1f"),
    ("emulated", "emulated", ">8.2f"),
    ("kilobytes", "KB", ">6.1f"),
    ("quality", "quality", ">8.4f"),
]
_NOTES = """\
Medians in ms of inferences one by one. plan: a place for each row; keys: both servers' queries;
servers: the slower of two servers with one thread each; http: the rest of the requests, on this
machine; link: all bytes to and from both servers at the rate of the device's link, by arithmetic;
emulated: the same bytes over the emulated link of nescio.net; decode: decoding and the check of the
rows; model: the rest of the model on the device. all: the sum of these steps, emulated left out.
KB: to and from both servers. quality: of held-out inferences, if measured. device: no private
lookups, the rows are in the model."""


def run(arguments: argparse.Namespace) -> int:
    """Measures the steps of inferences of each application, and writes JSON and a plot."""
    check_counts(arguments, "timed", "layouts", "inferences")
    link = Link.parse(rtt=arguments.rtt, rate=arguments.rate)
    if arguments.plot:
        from .plot_latency import plot_latency  # noqa: PLC0415 - matplotlib is needed only here

        check_writable(arguments.plot)
    with Results(arguments.json) as results:
        for application in prepared(arguments):
            report = Report(_COLUMNS)
            for case in _cases(application, arguments, link):
                report.add(case)
                results.add(case)
    print(f"{_NOTES}\nlink: {link}")
    if arguments.plot:
        plot_latency(Path(arguments.plot), results.cases)
    return 0


def _cases(application: Application, arguments: argparse.Namespace, link: Link) -> Iterator[Case]:
    """Yields the steps of each way to get the rows, with float and with low-bit layers."""
    effort = Effort(arguments.layouts, 0.1, arguments.timed)
    layouts = find_layouts(application, effort, Messages())
    ways: dict[str, Layout | None] = {
        "separate": None,
        "exact": layouts.exact,
        "relaxed": layouts.relaxed,
    }
    bits: tuple[int, int] = arguments.bits
    with TemporaryDirectory(prefix="nescio-") as folder:
        bench = _Latency(application, arguments, link, Path(folder))
        yield bench.device()
        for way, layout in ways.items():
            yield bench.case(way, layout, None)
        yield bench.case("exact", layouts.exact, bits)


class _Latency:
    """The steps of one application's inferences."""

    def __init__(
        self, application: Application, arguments: argparse.Namespace, link: Link, folder: Path
    ) -> None:
        self._app, self._arguments, self._link, self._folder = application, arguments, link, folder

    def device(self) -> Case:
        """Measures the plain model, whose rows are on the device."""
        app, calls = self._app, []

        def timed(*inputs: torch.Tensor) -> Any:  # noqa: ANN401 - the model's own
            begin = time.perf_counter()
            output = app.model(*inputs)
            calls.append(time.perf_counter() - begin)
            return output

        with torch.no_grad():
            for _ in app.held_out.run(timed, 1, self._arguments.timed):
                pass
            outputs = self._outputs(app.model)
        model = 1e3 * median(calls)
        quality = abs(app.held_out.rate(outputs))
        return self._facts("device", None) | {"model": model, "total": model, "quality": quality}

    def case(self, way: str, layout: Layout | None, bits: tuple[int, int] | None) -> Case:
        """Measures the steps with private lookups; `bits` are those of weights and activations."""
        app, folder = self._app, self._folder / f"{way}-{bits}"
        export(app, folder, layout, _plan(app.model, bits) if bits else None)
        with private_model(app.make, folder, seconds=3600) as private:
            return self._facts(way, bits) | self._measured(private, rated=bits is not None)

    def _measured(self, private: TimedModel, *, rated: bool) -> Case:
        part = self._app.held_out
        for _ in part.run(private, 1, self._arguments.timed):
            pass
        up, down = private.tables[self._app.table].sizes
        times = milliseconds(private.calls)
        link = self._link
        network = link.rtt_seconds + link.transfer_seconds(2 * up) + link.transfer_seconds(2 * down)
        steps = {
            **{step: times[step] for step in ("plan", "keys", "servers", "decode", "model")},
            "http": times["network"],
            "link": 1e3 * network,
        }
        facts: Case = {
            **steps,
            "total": sum(steps.values()),
            "emulated": 1e3 * emulated_seconds(link, up, down),
            "bytes_up": up,
            "bytes_down": down,
            "kilobytes": 2 * (up + down) / 1e3,
        }
        if rated:
            facts["quality"] = abs(part.rate(self._outputs(private)))
        return facts

    def _outputs(self, model: Model) -> list[torch.Tensor]:
        """Returns the outputs of the inferences whose quality counts."""
        app = self._app
        return list(app.held_out.run(model, at_once(app.lookups), self._arguments.inferences))

    def _facts(self, way: str, bits: tuple[int, int] | None) -> Case:
        weights = "float" if bits is None else f"{bits[0]} bits"
        return {
            "application": self._app.name,
            "way": way,
            "weights": weights,
            "activation_bits": None if bits is None else bits[1],
            "rtt_milliseconds": 1e3 * self._link.rtt_seconds,
            "bits_per_second": self._link.bits_per_second,
        }


def _plan(model: torch.nn.Module, bits: tuple[int, int]) -> dict[str, tuple[int, int] | None]:
    """Returns the plan that quantizes every layer of a model that can be."""
    return {name: bits for name, module in model.named_modules() if isinstance(module, _LAYERS)}


def emulated_seconds(link: Link, up: int, down: int) -> float:
    """Measures an exchange with both servers over an emulated link, which their messages share.

    Returns the median of some exchanges of `up` bytes to each server, and `down` from each.
    """
    asks, rows = bytes(up), bytes(down)
    device, servers = Channel.pair(link=link)
    times = []
    with device, servers:
        for _ in range(_EXCHANGES):
            begin = time.perf_counter()
            for _ in range(2):
                device.send("ASKS", asks)
            for _ in range(2):
                servers.receive("ASKS", up)
            for _ in range(2):
                servers.send("ROWS", rows)
            for _ in range(2):
                device.receive("ROWS", down)
            times.append(time.perf_counter() - begin)
    return median(times)
