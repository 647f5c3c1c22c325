"""The report of an audit as one HTML file that loads nothing else."""

import math
from dataclasses import asdict
from html import escape

import numpy as np

from ... import __version__
from .._attempt import Tried
from .._log.record import Log
from .advice import CAUTION, advice
from .charts import Series, bars, lines
from .facts import Findings, about, users

__all__ = ["as_html"]

MAX_ROWS = 2000
"""Users in the table of the HTML; the JSON has all."""

_STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;margin:1rem 0}
td,th{padding:.2rem .8rem .2rem 0;text-align:left;vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
svg{max-width:100%;height:auto}
.verdict{padding:.8rem 1rem;border-left:.5rem solid;font-size:1.15rem}
.broken{border-color:#b91c1c}.at-risk{border-color:#b45309}.safe{border-color:#15803d}
details{margin:1rem 0}
tr.best{font-weight:bold}
.wide{overflow-x:auto;font-size:.85rem}
"""

_HEAD = (
    '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; style-src 'unsafe-inline'\"/>"
    '<meta name="viewport" content="width=device-width"/>'
)

_MEANING = {
    "broken": "Secure aggregation does not hide single users' updates in this log.",
    "at risk": "The log tells something of who took part, or of updates, but not all of it.",
    "safe": "This attack recovered nothing that the thresholds count.",
}


def as_html(findings: Findings) -> str:
    """One page, well-formed as XML too, with its plots inside; it loads nothing."""
    verdict = findings.verdict
    grade = verdict.grade
    title = f"Audit of secure aggregation: {findings.source}"
    parts = [
        f"{_HEAD}<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        f'<p class="verdict {grade.replace(" ", "-")}"><strong id="verdict">{grade}</strong>: '
        f"{_MEANING[grade]} {_sentences(verdict.reasons)}</p>",
        f"<p><strong>{escape(CAUTION)}</strong></p>",
        "<h2>What the server saw</h2>",
        _table(_seen(findings.log)),
        "<h2>What was recovered</h2>",
        *_recovered(findings),
        "<h2>How sure that is</h2>",
        *_how_sure(findings),
        "<h2>How updates change</h2>",
        *_how_updates_change(findings),
        "<h2>What to change</h2><ol>",
        *(f"<li>{escape(line)}</li>" for line in advice(findings.log, verdict, findings.quality)),
        "</ol>",
        "<h2>How it was done</h2>",
        *_how(findings),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def _sentences(reasons: tuple[str, ...]) -> str:
    return " ".join(f"{escape(reason[:1].upper() + reason[1:])}." for reason in reasons)


def _seen(log: Log) -> dict[str, object]:
    """What the server saw, with shares in words."""
    facts = about(log)
    known = facts["counts_known"]
    return {**facts, "counts_known": f"{known:.0%} of them" if isinstance(known, float) else known}


def _table(rows: dict[str, object]) -> str:
    lines_of = (
        f'<tr><td>{escape(name.replace("_", " "))}</td><td class="n">{_shown(value)}</td></tr>'
        for name, value in rows.items()
    )
    return f"<table>{''.join(lines_of)}</table>"


def _shown(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}" if math.isfinite(value) else "-"
    return f"{value:,}" if isinstance(value, int) else escape(str(value))


def _recovered(findings: Findings) -> list[str]:
    verdict = findings.verdict
    rest = verdict.users - verdict.unique - verdict.ambiguous
    kinds = [
        ("unique", verdict.unique, "#b91c1c"),
        ("ambiguous", verdict.ambiguous, "#b45309"),
        ("not found", rest, "#737373"),
    ]
    parts = [
        bars(f"Users by certificate, of {verdict.users}", kinds),
        "<p><em>Unique</em>: the column of rounds that a user took part in is proven to be the "
        "only one with the user's counts that the sums allow. <em>Ambiguous</em>: it fits, and "
        "others could not be excluded. <em>Not found</em>: no column met fits.</p>",
    ]
    errors = findings.quality.errors[np.isfinite(findings.quality.errors)]
    if len(errors):
        ranks = list(range(1, len(errors) + 1))
        drawn = [Series("users, best first", ranks, np.sort(errors).tolist(), dots=True)]
        limit = findings.thresholds.usable
        drawn.append(Series("usable up to here", [1, len(errors)], [limit, limit], dashed=True))
        parts.append(
            "<h3>Updates</h3><p>The error of each, if the columns are right: 0 is exact, 1 as much "
            "noise as update.</p>"
        )
        parts.append(
            lines("Errors of updates", drawn, "users", "relative error, estimated", log_y=True)
        )
    return parts


def _how_sure(findings: Findings) -> list[str]:
    active = ~findings.best.remedy.log.idle
    some = [c for c in findings.result.certificates if active[c.user]]
    some.sort(key=lambda c: c.distance)
    ranks = [float(i) for i in range(1, len(some) + 1)]
    drawn = [
        Series("the column's distance from the sums' span", ranks, [c.distance for c in some]),
        Series("expected of a true column", ranks, [c.expected for c in some], dots=True),
    ]
    control = findings.control
    parts = []
    if control is not None:
        chance = np.sort(control.chance).tolist()
        drawn.append(Series("the same attack on shuffled rounds", ranks, chance, dashed=True))
        parts.append(
            "<p>The control is the same attack on the same sums in shuffled order, where there is "
            f"nothing to find. {int(control.clear.sum())} users' columns are at most half as "
            "far as any of its. If the sums told nothing of who took part, distances as small as "
            f"these would have the probability {control.probability:.2g}.</p>"
        )
    parts.insert(0, lines("Distances of columns", drawn, "users, nearest first", "distance"))
    return parts


def _how_updates_change(findings: Findings) -> list[str]:
    drift = findings.drift
    lags = [float(lag) for lag in range(1, len(drift.similarity) + 1)]
    drawn = [Series("similarity of two sums", lags, drift.similarity.tolist())]
    parts = [
        f"<p>{_sentences((drift.words, findings.remedies))} All of this is measured from the sums "
        "alone.</p>",
        lines("Similarity of sums over the rounds between them", drawn, "rounds between", "cosine"),
    ]
    if findings.tried:
        parts.append(_attempts(findings.tried, findings.best.remedy.name))
    return parts


_ATTEMPTS = (
    *("attack on", "rounds", "users", "found", "unique", "clear of chance"),
    *("distance, of chance", "probability", "grade", "seconds"),
)


def _attempts(tried: tuple[Tried, ...], best: str) -> str:
    """A table, the best in bold."""
    rows = ""
    for one in tried:
        chance = "" if one.chance is None else f", {one.chance:.3g}"
        cells = (
            *(one.remedy, one.rounds, one.users, one.found, one.unique, one.clear),
            *(f"{one.distance:.3g}{chance}", one.probability, one.grade, one.seconds),
        )
        kind = ' class="best"' if one.remedy == best else ""
        rows += f"<tr{kind}>{''.join(f'<td>{_shown(cell)}</td>' for cell in cells)}</tr>"
    head = "".join(f"<th>{title}</th>" for title in _ATTEMPTS)
    return (
        f'<div class="wide"><table id="remedies"><tr>{head}</tr>{rows}</table></div><p>Distances '
        "are medians, of columns from the span of the sums, and of columns of chance, from "
        "shuffled rounds. The more attempts there are, the sooner one does well by chance: "
        f"probabilities are those of chance times {len(tried)}, but for the first attempt.</p>"
    )


def _how(findings: Findings) -> list[str]:
    result = findings.result
    seconds = {f"{name}, seconds": value for name, value in result.seconds.items()}
    facts: dict[str, object] = {
        "method": result.method,
        "parameters evened out": "yes" if result.standardized else "no",
        "common changes allowed for": result.drift,
        "noise of an update between rounds, of its size": findings.quality.noise,
        "dimensions looked at for errors": findings.quality.sampled,
        **{f"threshold {name}": value for name, value in asdict(findings.thresholds).items()},
        **seconds,
        "all, seconds": findings.seconds,
        "nescio": __version__,
    }
    return [_table(facts), _every_user(findings)]


def _every_user(findings: Findings) -> str:
    everybody = users(findings)
    names = ("user", "status", "distance", "limit", "margin", "relative_error", "reason")
    head = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in names)
    rows = "".join(
        "<tr>" + "".join(f"<td>{_shown(user[name])}</td>" for name in names) + "</tr>"
        for user in everybody[:MAX_ROWS]
    )
    more = "" if len(everybody) <= MAX_ROWS else f"<p>The JSON has all {len(everybody):,}.</p>"
    table = f"<table><tr>{head}</tr>{rows}</table>"
    return f"<details><summary>Every user</summary>{table}{more}</details>"
