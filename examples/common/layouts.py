"""The layouts of an application's table: what `nescio tune` finds on its log of lookups."""

from typing import NamedTuple

from examples.common.application import Application, Effort, least_quality, plain_quality
from examples.common.report import Report
from nescio.pir.batch import Budgets, Layout, Trial, Tuning, make_layout, tune


class Layouts(NamedTuple):
    """Two layouts, and the search that found them.

    `exact` gets up to `lookups` rows of every inference. `relaxed` is the fastest layout that loses
    no more quality than the application may, within the budgets of `nescio tune`: 300 KB and 300
    ms. `exact` is the fastest one within them too, or has the fewest keys if none is.
    """

    exact: Layout
    relaxed: Layout
    tuning: Tuning


def find_layouts(application: Application, effort: Effort, report: Report) -> Layouts:
    """Searches layouts for the table of an application, and reports them.

    They are made from its log, and rated by inferences that are not those of the test. Raises the
    errors of `nescio.pir.batch.tune`.
    """
    plain = plain_quality(application.rated)
    tuning = tuned(application, effort, plain)
    found = Layouts(_exact(application, tuning), tuning.layout(), tuning)
    _describe(application, plain, found, report)
    return found


def tuned(application: Application, effort: Effort, plain: float, cache_rows: int = 0) -> Tuning:
    """Searches layouts that lose no more quality than the application may.

    `plain` is the quality of the plain model, `cache_rows` the rows that a device keeps.
    """
    rated = application.rated
    return tune(
        application.log,
        application.rows,
        application.row_bytes,
        held_out=rated.log,
        quality=rated.quality,
        budgets=Budgets(min_quality=least_quality(plain, application.loss)),
        layouts=effort.layouts,
        cache_rows=cache_rows,
        seconds=effort.seconds,
        threads=1,
    )


def _exact(application: Application, tuning: Tuning) -> Layout:
    enough = [
        trial
        for trial in tuning.trials
        if trial.design.lookups >= application.lookups and tuning.budgets.affords(trial.cost)
    ]
    if enough:
        return tuning.layout(min(enough, key=_time))
    layouts = (
        make_layout(application.rows, application.log, lookups=application.lookups, hashes=hashes)
        for hashes in (4, 5)
    )
    return min(layouts, key=lambda layout: layout.slots)


def _time(trial: Trial) -> float:
    return trial.cost.seconds


def _describe(application: Application, plain: float, layouts: Layouts, report: Report) -> None:
    found, metric, tried = layouts.tuning.chosen.score, application.metric, layouts.tuning.trials
    report.facts["layouts"] = {
        "exact": layouts.exact.describe(),
        "relaxed": layouts.relaxed.describe(),
        "quality_of_rating": {"plain": abs(plain), "relaxed": abs(found.quality)},
        "retrieved": found.retrieved,
        "tried": len(tried),
    }
    report.say(f"exact:   {layouts.exact.describe()}")
    report.say(f"relaxed: {layouts.relaxed.describe()}")
    report.say(
        f"of {len(tried)} layouts, relaxed is the fastest whose {metric} is at most "
        f"{application.loss:.1%} worse than {abs(plain):.5g} for the inferences that rate layouts: "
        f"{abs(found.quality):.5g}, with {found.retrieved:.1%} of the rows"
    )
