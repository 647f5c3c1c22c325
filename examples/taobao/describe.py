"""Texts and facts about the data and the plain model, beside simple baselines."""

from typing import Any

import numpy as np
import numpy.typing as npt

from examples.common.quality import auc_interval, roc_auc
from examples.common.report import Report
from examples.taobao.inferences import Inferences
from examples.taobao.model import ClickModel, scores_of
from examples.taobao.tables import AD, BRAND, CATEGORY, Tables
from examples.taobao.task import Task

PUBLISHED = 0.58
"""The AUC of the paper's model, on the log of impressions."""

Scores = npt.NDArray[Any]


def describe_data(task: Task, report: Report) -> None:
    """Reports the sizes of the set, of its parts, and of the tables."""
    events, parts, tables = task.events, task.split, task.tables
    lengths = parts.test.lengths
    middle, tail = np.quantile(lengths, (0.5, 0.99))
    cut = float((lengths > tables.places.history).mean())
    report.facts["data"] = {
        "set": events.name,
        "events": len(events.users),
        "users": len(events.profiles),
        "tables": tables.sizes,
        "rows": len(tables),
        "lookups": task.lookups,
        "inferences": {name: len(part) for name, part in parts._asdict().items()},
        "histories": {"median": middle, "99 %": tail, "longest": int(lengths.max()), "cut": cut},
        "negatives": "sampled" if task.sampled else "real",
    }
    kind = "clicks" if task.sampled else f"impressions, {events.clicked.mean():.1%} of them clicks,"
    report.say(
        f"{events.name}: {len(events.users):,} {kind} of {len(events.categories):,} ads by "
        f"{len(events.profiles):,} users"
    )
    if task.sampled:
        report.say(
            "impressions are missing, so negatives are SAMPLED: to each click, an ad that the user "
            "did not click, drawn from the clicks of the same part; so popular ads are as often "
            "negatives as positives"
        )
    report.say(
        f"inferences: {len(parts.train):,} to train"
        f"{' (and as many negatives in each epoch)' if task.sampled else ''}, "
        f"{len(parts.valid):,} to validate, {len(parts.test):,} held out"
    )
    sizes = ", ".join(f"{size:,} {name}" for name, size in tables.sizes.items())
    report.say(f"five tables in one of {len(tables):,} rows: {sizes}")
    report.say(
        f"an inference is {task.lookups} rows; held-out histories: median {middle:.0f} ads, 99 % "
        f"at most {tail:.0f}, longest {lengths.max()}; {cut:.1%} have more than "
        f"{tables.places.history}, of which so many count"
    )


def describe_quality(
    task: Task, model: ClickModel, without_history: ClickModel, report: Report
) -> None:
    """Reports the AUC of the plain model beside baselines, and beside the published one."""
    test = task.split.test
    scores = scores_of(model, task.tables.rows(test))
    own = Tables(task.events, 0)
    found = {
        "popularity alone": popularity(task, test),
        "histories: the share in the ad's category": in_history(task.tables, test, CATEGORY),
        "histories: the share of the ad's brand": in_history(task.tables, test, BRAND),
        "the model without histories": scores_of(without_history, own.rows(test)),
    }
    baselines = {name: roc_auc(test.clicked, own) for name, own in found.items()}
    low, high = auc_interval(test.clicked, scores, test.users)
    auc = roc_auc(test.clicked, scores)
    report.facts["plain"] = {
        "auc": auc,
        "auc_interval": (low, high),
        "baselines": baselines,
        "published": PUBLISHED,
    }
    report.say(
        f"ROC-AUC {auc:.4f} for clicks held out (95 % of other draws: {low:.4f} to {high:.4f})"
    )
    for name, value in baselines.items():
        report.say(f"ROC-AUC {value:.4f} by {name}")
    report.say(_difference(task))


def _difference(task: Task) -> str:
    published = f"published: {PUBLISHED} on the log of impressions"
    if task.sampled:
        return (
            f"{published}: Taobao had chosen these for the user, so clicked or not they are much "
            "alike; here negatives are drawn from all ads, and the history tells them apart"
        )
    return f"{published}; here on {len(task.events.users):,} of them, divided by time"


def popularity(task: Task, inferences: Inferences) -> Scores:
    """Scores ads by their clicks in the training, or the part of their impressions clicked."""
    train, ads = task.split.train, len(task.events.categories)
    clicks: Scores = np.bincount(train.ads[train.clicked], minlength=ads)
    if task.sampled:
        return clicks[inferences.ads]
    prior = 20 * train.clicked.mean()
    rates: Scores = (clicks + prior) / (np.bincount(train.ads, minlength=ads) + 20)
    return rates[inferences.ads]


def in_history(tables: Tables, inferences: Inferences, kind: int) -> Scores:
    """Scores ads by the share of the history with the same category or brand, by counting."""
    rows = tables.rows(inferences)
    past = rows[:, tables.places.past(AD)] != rows[:, CATEGORY, None]
    same = (rows[:, tables.places.past(kind)] == rows[:, kind, None]) & past
    shares: Scores = same.sum(1) / np.maximum(past.sum(1), 1)
    return shares
