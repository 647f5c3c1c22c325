"""The report of an audit as one HTML page that loads no other files."""

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
"""Maximum users in the table of the page; the JSON has all."""

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
    "broken": "In this log, secure aggregation does not hide the updates of single users.",
    "at risk": "The log reveals some information about participation or updates.",
    "safe": "This attack recovered nothing above the thresholds.",
}


def as_html(findings: Findings) -> str:
    """Returns the report as one page, also well-formed XML, with its plots inside."""
    verdict = findings.verdict
    grade = verdict.grade
    title = f"Audit of secure aggregation: {findings.source}"
    parts = [
        f"{_HEAD}<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        f'<p class="verdict {grade.replace(" ", "-")}"><strong id="verdict">{grade}</strong>: '
        f"{_MEANING[grade]} {_sentences(verdict.reasons)}</p>",
        *([] if grade == "broken" else [f"<p><strong>{escape(CAUTION)}</strong></p>"]),
        "<h2>The log</h2>",
        _table({**_about_log(findings.log), "rows": findings.rows}),
        *_readings(findings),
        "<h2>Recovered participation and updates</h2>",
        *_recovered(findings),
        "<h2>Confidence</h2>",
        *_confidence(findings),
        "<h2>Drift of the updates</h2>",
        *_drift(findings),
        "<h2>Recommended changes</h2><ol>",
        *(f"<li>{escape(line)}</li>" for line in advice(findings.log, verdict, findings.quality)),
        "</ol>",
        "<h2>Method</h2>",
        *_method(findings),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def _sentences(reasons: tuple[str, ...]) -> str:
    return " ".join(f"{escape(reason[:1].upper() + reason[1:])}." for reason in reasons)


def _about_log(log: Log) -> dict[str, object]:
    """Returns the facts about the log, with fractions as percentages."""
    facts = about(log)
    known = facts["counts_known"]
    return {**facts, "counts_known": f"{known:.0%} of them" if isinstance(known, float) else known}


def _table(rows: dict[str, object]) -> str:
    cells = (
        f'<tr><td>{escape(name.replace("_", " "))}</td><td class="n">{_shown(value)}</td></tr>'
        for name, value in rows.items()
    )
    return f"<table>{''.join(cells)}</table>"


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
        "<p>A user's participation is the rounds in which the user took part. <em>Unique</em>: a "
        "proof shows that no other participation agrees with the sums and the user's counts. "
        "<em>Ambiguous</em>: the recovered one agrees, but others could not be excluded. <em>Not "
        "found</em>: none agrees.</p>",
    ]
    errors = findings.quality.errors[np.isfinite(findings.quality.errors)]
    if len(errors):
        ranks = list(range(1, len(errors) + 1))
        drawn = [Series("users, best first", ranks, np.sort(errors).tolist(), dots=True)]
        limit = findings.thresholds.usable
        drawn.append(Series("threshold: usable", [1, len(errors)], [limit, limit], dashed=True))
        parts.append(
            "<h3>Updates</h3><p>Estimated relative error of the updates of users whose "
            "participation is known, if necessary without that of others: 0 is exact, 1 is as much "
            "noise as signal.</p>"
        )
        parts.append(
            lines("Errors of updates", drawn, "users", "estimated relative error", log_y=True)
        )
    return parts


def _confidence(findings: Findings) -> list[str]:
    active = ~findings.best.remedy.log.idle
    some = [c for c in findings.result.certificates if active[c.user]]
    some.sort(key=lambda c: c.distance)
    ranks = [float(i) for i in range(1, len(some) + 1)]
    drawn = [
        Series("recovered participation", ranks, [c.distance for c in some]),
        Series("expected of true participation", ranks, [c.expected for c in some], dots=True),
    ]
    control = findings.control
    parts = []
    if control is not None:
        chance = np.sort(control.chance).tolist()
        drawn.append(Series("control: shuffled rounds", ranks, chance, dashed=True))
        parts.append(
            "<p>At distance 0, participation and sums agree exactly. The control is the same "
            "attack on the same sums in shuffled order, where there is nothing to find. The "
            f"participation recovered for {int(control.clear.sum())} users is at most half as far "
            "from agreement with the sums as any of the control. If the sums did not depend on "
            "participation, distances as small as these would have the probability "
            f"{control.probability:.2g}.</p>"
        )
    title = "Distances of participation from agreement with the sums"
    parts.insert(0, lines(title, drawn, "users, nearest first", "distance"))
    return parts


def _drift(findings: Findings) -> list[str]:
    drift = findings.drift
    lags = [float(lag) for lag in range(1, len(drift.similarity) + 1)]
    drawn = [Series("mean cosine similarity", lags, drift.similarity.tolist())]
    parts = [
        f"<p>{_sentences((drift.words, findings.remedies))} Drift is measured from "
        "the sums alone.</p>",
        lines("Similarity of two sums by their distance", drawn, "rounds apart", "cosine"),
    ]
    if findings.tried:
        parts.append(_attempts("remedies", findings.tried, findings.best.remedy.name))
        first = len(findings.tries.readings)
        parts.append(
            "<p>With more attempts, one is more likely to succeed by chance. So "
            f"{f'the first probability is multiplied by {first}, and ' if first else ''}"
            f"all probabilities but the first are multiplied by {findings.tries.number}.</p>"
        )
    return parts


def _readings(findings: Findings) -> list[str]:
    readings = findings.tries.readings
    if not readings:
        return []
    best = max(readings, key=lambda one: one.remedy == findings.best.remedy.name)
    return [
        "<p>The log does not show if it has sums or averages, so it was attacked as both. "
        "Probabilities are multiplied by 2.</p>",
        _attempts("readings", readings, best.remedy),
    ]


_ATTEMPTS = (
    *("attack on", "rounds", "users", "found", "unique", "clear of chance"),
    *("distance, of chance", "probability", "grade", "seconds"),
)


def _attempts(name: str, tried: tuple[Tried, ...], best: str) -> str:
    """Returns the table of attempts, the best in bold."""
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
        f'<div class="wide"><table id="{name}"><tr>{head}</tr>{rows}</table></div><p>Distances '
        "are medians over the users: of recovered participation from agreement with the sums, then "
        "of that of the control.</p>"
    )


def _method(findings: Findings) -> list[str]:
    result = findings.result
    seconds = {f"{name}, seconds": value for name, value in result.seconds.items()}
    facts: dict[str, object] = {
        "method": result.method,
        "parameters standardized": "yes" if result.standardized else "no",
        "common changes allowed for": result.drift,
        "noise of an update between rounds, relative to its size": findings.quality.noise,
        "dimensions used to estimate errors": findings.quality.sampled,
        **{f"threshold {name}": value for name, value in asdict(findings.thresholds).items()},
        **seconds,
        "total, seconds": findings.seconds,
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
