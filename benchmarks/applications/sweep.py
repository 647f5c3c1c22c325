"""Figures 11 and 16 to 20 of the paper: quality against throughput, computation and bytes."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks._main import make_folder
from benchmarks.batch.gains import measured_in_turns
from examples.common.application import Application, least_quality, plain_quality
from nescio._report import Case, Report
from nescio.bench.results import Results
from nescio.bench.timing import check_duration
from nescio.dpf import Generator
from nescio.errors import ArgumentError
from nescio.pir.batch import Budgets
from nescio.pir.batch._tune.cost import Machine, Setup
from nescio.pir.batch._tune.design import Design, exact
from nescio.pir.batch._tune.score import Score, Scorer

from .check import Checks
from .columns import CACHE, NOTES, PICKS, SAVINGS
from .designs import (
    FAMILIES,
    MIN_COUNT,
    Point,
    Pool,
    fastest,
    front,
    logs_of,
    of_family,
    scanned_rows,
    uncharged,
)
from .limits import check_counts, check_positive
from .prepared import prepared
from .savings import savings

_FRONT = 6  # layouts of a family's front that are measured
_TIES = 2  # layouts that are measured for a level: the model errs by some percent


def run(arguments: argparse.Namespace) -> int:
    """Sweeps the layouts of each application, checks some with real lookups, and writes JSON."""
    check_duration(arguments.seconds)
    check_positive(arguments, "max_bytes", "max_ms")
    check_counts(arguments, "layouts", "clients", "cache_rows", "checks", "inferences")
    if arguments.plot:
        from .plot import plot_sweep  # noqa: PLC0415 - matplotlib is needed only here

        make_folder(arguments.plot, "--plot")
    with Results(arguments.json) as results:
        for application in prepared(arguments):
            for case in Sweep(application, arguments).cases():
                results.add({"application": application.name, **case})
    if arguments.plot:
        plot_sweep(Path(arguments.plot), results.cases)
    return 0


class Sweep:
    """The layouts of one application, scored by counting and measured."""

    def __init__(self, application: Application, arguments: argparse.Namespace) -> None:
        self._app, self._arguments = application, arguments
        self._training = plain_quality(application.rated)
        self._test = plain_quality(application.held_out)
        held_out = application.held_out
        self._tester = Scorer(
            logs_of(application, held_out), application.rows, MIN_COUNT, 1, held_out.quality
        )
        self._tested: dict[Design, Score] = {}
        self._setups = {name: self._setup(name) for name in arguments.generator}
        self._machines = {
            name: Machine.measured(setup, arguments.seconds) for name, setup in self._setups.items()
        }

    def cases(self) -> Iterator[Case]:
        """Yields the facts of the model, all layouts tried, those measured, picks, and checks."""
        yield self._model()
        pool = self._searched()
        yield from self._tried(pool)
        yield from self._savings(pool)
        measured = {name: self._measured(name, pool) for name in self._setups}
        for name, points in measured.items():
            for point in points:
                yield {"what": "measured", **self._fields(name, point)}
        yield from self._picks(measured)
        yield from self._cached(pool)
        yield from self._checked(measured)

    def _setup(self, generator: Generator) -> Setup:
        app, arguments = self._app, self._arguments
        return Setup(
            app.rows,
            app.row_bytes,
            generator=generator,
            verify=arguments.verify,
            clients=arguments.clients,
            threads=1,
        )

    @property
    def _first(self) -> Generator:
        """The generator whose times the search goes by."""
        return next(iter(self._setups))

    def _budgets(self, max_bytes: float) -> Budgets:
        return Budgets(max_bytes=max_bytes, max_ms=self._arguments.max_ms)

    def _levels(self, budgets: Budgets) -> dict[str, Budgets]:
        """Returns the budgets with the least quality, or share of the rows, of each level."""
        relaxed = least_quality(self._training, self._app.loss)
        return {
            "full": replace(budgets, min_retrieved=1.0),
            "eco": replace(budgets, min_quality=self._training),
            "relaxed": replace(budgets, min_quality=relaxed),
        }

    @property
    def _widest(self) -> Budgets:
        """The budgets of the table."""
        return self._budgets(max(self._arguments.max_bytes))

    def _model(self) -> Case:
        app = self._app
        return {
            "what": "model",
            "metric": app.metric,
            "rows": app.rows,
            "row_bytes": app.row_bytes,
            "lookups": app.lookups,
            "clients": self._arguments.clients,
            "verified": self._arguments.verify,
            "inferences": {
                "log": len(app.log),
                "training": len(app.rated),
                "test": len(app.held_out),
            },
            "training": abs(self._training),
            "quality": abs(self._test),
            "published": app.published,
            "loss": app.loss,
        }

    def _searched(self) -> Pool:
        """Searches every family within each of the budgets, and for few bytes."""
        pool = Pool(self._app, logs_of(self._app, self._app.rated))
        setup, machine = self._setups[self._first], self._machines[self._first]
        for most in self._arguments.max_bytes:
            for family in FAMILIES:
                layouts = self._arguments.layouts
                pool.search(family, setup, machine, self._budgets(most), layouts)
        for family in ("partial", "paper", "co-design"):
            layouts = self._arguments.layouts
            pool.search(family, setup, machine, self._widest, layouts, for_bytes=True)
        pool.add(_references(self._app))
        return pool

    def _tried(self, pool: Pool) -> Iterator[Case]:
        for point in pool.points(self._setups[self._first], self._machines[self._first]):
            yield {"what": "tried", **self._numbers(self._first, point)}

    def _savings(self, pool: Pool) -> Iterator[Case]:
        """Yields and prints the least computation and bytes of a relaxed layout, by the model."""
        setup = self._setups[self._first]
        points = pool.points(setup, self._machines[self._first])
        budgets = self._levels(self._widest)["relaxed"]
        report = Report(SAVINGS)
        for case in savings(self._app.name, points, setup, budgets):
            report.add(case)
            yield case

    def _measured(self, generator: Generator, pool: Pool) -> list[Point]:
        """Measures the fronts of all families within each of the budgets, all in turns."""
        setup = self._setups[generator]
        points = pool.points(setup, self._machines[generator])
        always = _references(self._app)
        wanted = {point.design: point for point in points if point.design in always}
        for most in self._arguments.max_bytes:
            budgets = self._budgets(most)
            for family in FAMILIES:
                own = of_family(points, family)
                found = front(own, budgets, _FRONT)
                for level in self._levels(budgets).values():
                    found += fastest(own, level, _TIES)
                wanted |= {point.design: point for point in found}
        times = measured_in_turns(setup, wanted, self._arguments.seconds)
        return [
            replace(point, cost=point.cost._replace(seconds=times[design]))
            for design, point in wanted.items()
        ]

    def _tested_score(self, design: Design) -> Score:
        if design not in self._tested:
            self._tested[design] = self._tester.score(design)
        return self._tested[design]

    def _fields(self, generator: Generator, point: Point) -> Case:
        """Returns the fields of a layout with its score on the test."""
        score = self._tested_score(point.design)
        return {
            **self._numbers(generator, point),
            "quality": abs(score.quality),
            "lost_percent": 100 * (self._test - score.quality) / abs(self._test),
            "retrieved": score.retrieved,
            "complete": score.complete,
        }

    def _numbers(self, generator: Generator, point: Point) -> Case:
        setup, design, cost = self._setups[generator], point.design, point.cost
        return {
            "generator": generator,
            "kind": design.kind,
            "families": [name for name, allowed in FAMILIES.items() if allowed(design)],
            "design": design.to_dict(),
            "layout": design.describe(),
            "training": abs(point.score.quality),
            "training_lost_percent": 100
            * (self._training - point.score.quality)
            / abs(self._training),
            "milliseconds": cost.seconds * 1e3,
            "inferences_per_second": setup.clients / cost.seconds,
            "bytes": cost.bytes,
            "kilobytes": cost.bytes / 1e3,
            "uncharged_bytes": uncharged(design, setup),
            "key_bytes": cost.key_bytes,
            "answer_bytes": cost.answer_bytes,
            "scanned_rows": scanned_rows(design, setup.rows),
        }

    # ---- Picks -----------------------------------------------------------------------------------

    def _picks(self, measured: dict[Generator, list[Point]]) -> Iterator[Case]:
        """Yields and prints the fastest measured layout of each family at each level."""
        report = Report(PICKS)
        for generator, points in measured.items():
            for level, budgets in self._levels(self._widest).items():
                picked = {
                    family: found[0]
                    for family in FAMILIES
                    if (found := fastest(of_family(points, family), budgets, 1))
                }
                for family, point in picked.items():
                    case = {
                        "application": self._app.name,
                        "what": "pick",
                        "level": level,
                        "family": family,
                        **self._fields(generator, point),
                        "times_plain": _times(picked, "plain", point),
                        "times_partial": _times(picked, "partial", point),
                    }
                    report.add(case)
                    yield case
        print(NOTES)

    # ---- A cache on the client -------------------------------------------------------------------

    def _cached(self, pool: Pool) -> Iterator[Case]:
        """Yields the fastest layout of each level with a cache on the client, beside without."""
        cache_rows = self._arguments.cache_rows
        if not cache_rows:
            return
        try:
            logs = logs_of(self._app, self._app.rated, cache_rows)
        except ArgumentError as error:
            print(f"no cache: {error}")
            return
        setup, machine = self._setups[self._first], self._machines[self._first]
        own = Pool(self._app, logs)
        own.search("co-design", setup, machine, self._widest, 2 * self._arguments.layouts)
        fetched = len(logs.held.rows) / len(logs.wanted.rows)
        for level, budgets in self._levels(self._widest).items():
            found = [fastest(one.points(setup, machine), budgets, 1) for one in (pool, own)]
            if all(found):
                (without,), (with_cache,) = found
                facts = {"what": "cache", "level": level, "cache_rows": cache_rows}
                case = {**facts, "fetched": fetched, **self._gain(without, with_cache)}
                print(CACHE.format(**case))
                yield case

    def _gain(self, without: Point, with_cache: Point) -> Case:
        """Measures the layout for what a cache leaves, and the one for all rows, in turns."""
        setup, designs = self._setups[self._first], {without.design, with_cache.design}
        times = measured_in_turns(setup, designs, self._arguments.seconds)
        return {
            "inferences_per_second": setup.clients / times[with_cache.design],
            "times_without": times[without.design] / times[with_cache.design],
            "bytes": with_cache.cost.bytes,
            "bytes_without": without.cost.bytes,
            "times_bytes": with_cache.cost.bytes / without.cost.bytes,
            "training": abs(with_cache.score.quality),
            "layout": with_cache.design.describe(),
        }

    # ---- Real lookups ----------------------------------------------------------------------------

    def _checked(self, measured: dict[Generator, list[Point]]) -> Iterator[Case]:
        """Runs held-out inferences with real lookups, for some of the layouts measured."""
        points = _spread(measured[self._first], self._arguments.checks)
        if not points:
            return
        with TemporaryDirectory(prefix="nescio-") as folder:
            setup = self._setups[self._first]
            checks = Checks(self._app, setup, self._tester, Path(folder))
            yield from checks.cases(points, self._arguments.inferences)


def _references(application: Application) -> list[Design]:
    """Returns layouts that get every row: whole lookups, and exact mode."""
    lookups = application.lookups
    return [Design(1, lookups), *(exact(lookups, hashes) for hashes in (4, 5))]


def _times(picked: dict[str, Point], family: str, point: Point) -> float | None:
    """Returns how many times as fast a point is as the pick of a family."""
    return picked[family].cost.seconds / point.cost.seconds if family in picked else None


def _spread(points: Sequence[Point], count: int) -> list[Point]:
    """Returns up to `count` of the points, of all kinds in turns."""
    kinds: dict[str, list[Point]] = {}
    for point in sorted(points, key=lambda one: one.cost.seconds):
        kinds.setdefault(point.design.kind, []).append(point)
    turns = [own[len(own) // 2 :] + own[: len(own) // 2] for own in kinds.values()]
    found: list[Point] = []
    while len(found) < count and any(turns):
        found += [own.pop(0) for own in turns if own]
    return found[:count]
