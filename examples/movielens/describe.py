"""Texts and facts about the data and the plain model."""

from typing import Any

import numpy as np
import torch

from examples.common.quality import auc_interval, roc_auc
from examples.common.report import Report
from examples.movielens.data import Integers
from examples.movielens.model import Recommender, scores_of
from examples.movielens.task import Task
from nescio.errors import ArgumentError
from nescio.pir.batch import bins_for

PUBLISHED = 0.7845
"""The AUC of the paper's model, on MovieLens-20M."""


def describe_data(task: Task, report: Report) -> None:
    """Reports the sizes of the set and of its parts."""
    ratings, parts = task.ratings, task.split
    report.facts["data"] = {
        "set": ratings.name,
        "ratings": len(ratings.users),
        "users": ratings.people,
        "films": task.films,
        "lookups": task.lookups,
        "inferences": {name: len(part) for name, part in parts._asdict().items()},
    }
    report.say(
        f"{ratings.name}: {len(ratings.users):,} ratings of {task.films:,} films by "
        f"{ratings.people:,} users, {ratings.liked.mean():.1%} of them at least 4"
    )
    report.say(
        f"inferences, by user: {len(parts.train):,} to train, {len(parts.valid):,} to validate, "
        f"{len(parts.test):,} held out"
    )


def describe_quality(task: Task, model: Recommender, report: Report) -> None:
    """Reports the AUC of the plain model beside other ones: of the films alone, of the paper."""
    inferences, (train, _, test) = task.inferences, task.split
    liked, scores = inferences.liked[test], scores_of(model, task.examples, test)
    low, high = auc_interval(liked, scores, inferences.users[test])
    means = roc_auc(liked, inferences.film_means(train, task.films)[inferences.films[test]])
    auc, trained = roc_auc(liked, scores), _auc(task, model, task.sample(train, task.size.log))
    report.facts["plain"] = {
        "auc": auc,
        "auc_interval": (low, high),
        "auc_of_film_means": means,
        "auc_of_training": trained,
        "published": PUBLISHED,
    }
    report.say(
        f"ROC-AUC {auc:.4f} for users held out (95 % of other draws: {low:.4f} to {high:.4f}); "
        f"{means:.4f} by the films' mean ratings alone; {trained:.4f} for users of the training"
    )
    report.say(
        f"published: {PUBLISHED} on MovieLens-20M, whose rows of films come from about 110,000 "
        f"users; here from {len(np.unique(inferences.users[train])):,}"
    )


def describe_long_histories(task: Task, model: Recommender, report: Report) -> None:
    """Reports what the fixed count of lookups does to histories that are longer."""
    lengths, test = task.inferences.lengths, task.split.test
    long = test[lengths[test] > task.history]
    median, tail = np.quantile(lengths, (0.5, 0.99))
    facts: dict[str, Any] = {"median": median, "99 %": tail, "longest": int(lengths.max())}
    report.facts["histories"] = facts | {"longer": len(long) / len(test)}
    report.say(
        f"histories: median {median:.0f} films, 99 % at most {tail:.0f}, longest {lengths.max()}; "
        f"{len(long) / len(test):.1%} of those held out have more than {task.history}, of which "
        "the ones liked last count"
    )
    if len(long):
        report.facts["long_histories"] = _cut(task, model, task.sample(long, 4096), report)


def _cut(task: Task, model: Recommender, long: Integers, report: Report) -> dict[str, Any]:
    """Reports the AUC of inferences with long histories, cut and whole, and the keys for both."""
    inferences, whole = task.inferences, int(task.inferences.lengths[long].max())

    def examples(numbers: Integers) -> tuple[torch.Tensor, torch.Tensor]:
        liked = inferences.liked[numbers].astype(np.float32)
        return torch.from_numpy(inferences.rows(numbers, whole)), torch.from_numpy(liked)

    cut = _auc(task, model, long)
    kept = roc_auc(inferences.liked[long], scores_of(model, examples, long, batch=64))
    report.say(
        f"ROC-AUC of those: {cut:.4f} with {task.history} films, {kept:.4f} with all, for which "
        f"exact mode would take {_keys(1 + whole)} keys instead of {_keys(task.lookups)}"
    )
    return {"auc_cut": cut, "auc_whole": kept, "rows": 1 + whole}


def _keys(rows: int) -> str:
    try:
        return f"{min(bins_for(rows, hashes) for hashes in (4, 5)):,}"
    except ArgumentError:
        return "too many"


def _auc(task: Task, model: Recommender, numbers: Integers) -> float:
    return roc_auc(task.inferences.liked[numbers], scores_of(model, task.examples, numbers))
