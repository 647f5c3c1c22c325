"""Tables 6.2 and 6.3 and Figure 6.9: leakage of an update alone, in a sum, and recovered."""

import argparse
import time
from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor, nn

from nescio._report import Case, Column, Report
from nescio.audit import Setting
from nescio.audit._leakage import data, networks
from nescio.audit._leakage.inversion import best_psnr, invert_gradient, invert_update
from nescio.audit._leakage.properties import auc, property_scores, summed
from nescio.audit._leakage.updates import LocalTraining, gradient, local_update, rounds_of_updates

from .learning import Planted, planted, recovered

__all__ = ["gradient_cases", "property_cases", "update_cases"]

_SHAPE = (3, 32, 32)
_INPUTS = 3 * 32 * 32
_CLASSES = 10
_FOR_USERS = 8_000
_NONE: Mapping[int, float] = {}
_SUMMED, _RECOVERED = "in a sum", "disaggregated"
_COLUMNS: list[Column] = [
    ("series", "update", "13"),
    ("users", "users", ">5d"),
    ("right", "right", ">6.3f"),
    ("psnr", "PSNR", ">6.1f"),
    ("grey", "grey", ">6.1f"),
    ("chapter", "thesis", ">6.1f"),
    ("seconds", "s", ">7,.1f"),
]
_AUC_COLUMNS: list[Column] = [
    ("series", "updates", "13"),
    ("users", "users", ">5d"),
    ("right", "right", ">6.3f"),
    ("auc", "AUC", ">5.3f"),
    ("tested", "tested", ">6d"),
]


def gradient_cases(arguments: argparse.Namespace) -> Iterator[Case]:
    """Yields Table 6.2: one picture per user, exact gradients, two sigmoid layers (Zhu et al.)."""
    full, seed = arguments.full, arguments.seed
    many = 32
    pictures, labels = _pictures(arguments, many)
    model = networks.perceptron(_INPUTS, 64, _CLASSES, smooth=True, seed=seed)
    steps = 1000 if full else 200
    own = torch.stack(
        [gradient(model, pictures[i : i + 1], labels[i : i + 1]) for i in range(many)]
    )
    report = Report(_COLUMNS)
    thesis = {1: 36.5, 2: 18.8, 4: 13.9, 32: 6.1}
    for users in (1, 2, 4, 8, 16, 32) if full else (1, 2, 4, 32):
        begun = time.monotonic()
        found = invert_gradient(
            model, own[:users].sum(0), (users, *_SHAPE), _CLASSES, steps=steps, seed=seed
        )
        true = pictures[:users]
        case = _psnr_case(_SUMMED, found, true, users=users, begun=begun, thesis=thesis)
        report.add(case)
        yield case
    plan = planted(Setting(many, 4 * many), seed)
    sums = torch.from_numpy(plan.present.astype(np.float32)) @ own
    begun = time.monotonic()
    seen, right = _first_recovered(plan, sums, seed)
    found = invert_gradient(model, seen, (1, *_SHAPE), _CLASSES, steps=steps, seed=seed)
    case = _psnr_case(_RECOVERED, found, pictures[:1], users=many, begun=begun, right=right)
    report.add(case)
    yield case


def update_cases(arguments: argparse.Namespace) -> Iterator[Case]:
    """Yields Table 6.3: FedAvg updates of two layers (Geiping et al.)."""
    full, seed = arguments.full, arguments.seed
    size, several, many = (64, 10, 100) if full else (16, 4, 32)
    training = LocalTraining(16, 4) if full else LocalTraining(8, 2)
    steps = 1000 if full else 150
    pictures, labels = _pictures(arguments, size * many)
    model = networks.perceptron(_INPUTS, 64, _CLASSES, smooth=False, seed=seed)
    x, y = pictures.view(many, size, *_SHAPE), labels.view(many, size)
    plan = planted(Setting(many, 4 * many if many < 100 else 2 * many), seed)
    present = torch.from_numpy(plan.present.astype(np.bool_))
    report = Report(_COLUMNS)
    generator = torch.Generator().manual_seed(seed)
    thesis = {1: 16.0, 10: 13.3, 100: 18.6}
    for users in (1, several):
        begun = time.monotonic()
        sent = [local_update(model, x[k], y[k], training, generator) for k in range(users)]
        seen = torch.stack(sent).sum(0)
        found = _inverted(model, seen, y[:users], training, steps=steps, seed=seed)
        true = x[:users].flatten(0, 1)
        case = _psnr_case(_SUMMED, found, true, users=users, begun=begun, thesis=thesis)
        report.add(case)
        yield case
    begun = time.monotonic()
    (made,) = rounds_of_updates(model, list(zip(x, y, strict=True)), present, training, seed=seed)
    seen, right = _first_recovered(plan, made.sums, seed)
    found = _inverted(model, seen, y[:1], training, steps=steps, seed=seed)
    case = _psnr_case(_RECOVERED, found, x[0], users=many, begun=begun, thesis=thesis, right=right)
    report.add(case)
    yield case


def property_cases(arguments: argparse.Namespace) -> Iterator[Case]:
    """Yields Figure 6.9: LeNet classifies animals and vehicles; the property is many ships.

    A user with the property has ships as half of the data. The chapter's task is gender and its
    property race, on pictures that are not available.
    """
    full, seed = arguments.full, arguments.seed
    known, tested, many = (200, 200, (10, 25, 50)) if full else (60, 40, (40,))
    users_of = _Users(arguments, 2 * (known + tested) + 2 * sum(many))
    model, training = networks.lenet(2, seed), LocalTraining(8, 4)
    generator = torch.Generator().manual_seed(seed)

    def sent(count: int, *, has: bool) -> Tensor:
        own = [users_of.user(has=has) for _ in range(count)]
        return torch.stack([local_update(model, *one, training, generator) for one in own])

    learn, test = ([sent(n, has=True), sent(n, has=False)] for n in (known, tested))
    report = Report(_AUC_COLUMNS)
    for users in (1, 2, 5, 10, 25) if not full else (1, 2, 5, 10, 25, 50, 100):
        rows = [_with_and_without(pool, users, generator) for pool in (learn, test)]
        scores = property_scores(*rows[0], rows[1][0])
        case = _auc_case(_SUMMED, users, auc(scores, rows[1][1]), len(scores), None)
        report.add(case)
        yield case
    for users in many:
        has = torch.arange(users) % 2 == 0
        own = [users_of.user(has=bool(one)) for one in has]
        plan = planted(Setting(users, 2 * users if users > 50 else 3 * users), seed)
        present = torch.from_numpy(plan.present.astype(np.bool_))
        (made,) = rounds_of_updates(model, own, present, training, seed=seed)
        found = recovered(plan, made.sums, seed)
        known_pool = _with_and_without(learn, 1, generator)
        scores = property_scores(*known_pool, torch.from_numpy(found.updates))
        case = _auc_case(_RECOVERED, users, auc(scores, has), users, found.share)
        report.add(case)
        yield case


class _Users:
    """Users with 32 pictures each from CIFAR-10, with and without ships."""

    _SHIP = 8
    _VEHICLES = (0, 1, 8, 9)
    _PICTURES = 32

    def __init__(self, arguments: argparse.Namespace, most: int) -> None:
        count = min(50_000, max(_FOR_USERS, most * self._PICTURES))
        pictures, labels = data.cifar10(arguments.data, count)
        self._pictures, self._labels = torch.from_numpy(pictures) - 0.5, torch.from_numpy(labels)
        self._vehicle = torch.isin(self._labels, torch.tensor(self._VEHICLES)).long()
        ships = self._labels == self._SHIP
        self._ships, self._others = ships.nonzero().flatten(), (~ships).nonzero().flatten()
        self._generator = torch.Generator().manual_seed(arguments.seed)

    def user(self, *, has: bool) -> tuple[Tensor, Tensor]:
        """Returns the pictures and labels of a user; with the property, half of them are ships."""
        ships = self._PICTURES // 2 if has else 0
        chosen = torch.cat(
            [self._draw(self._ships, ships), self._draw(self._others, self._PICTURES - ships)]
        )
        return self._pictures[chosen], self._vehicle[chosen]

    def _draw(self, places: Tensor, count: int) -> Tensor:
        return places[torch.randint(len(places), (count,), generator=self._generator)]


def _with_and_without(
    pool: list[Tensor], users: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Returns sums with a target that has the property or not, and which is which."""
    having, others = pool
    several = 3 if users > 1 else 1
    rows = [
        summed(having, others, users, generator, several),
        summed(others, others, users, generator, several),
    ]
    return torch.cat(rows), torch.arange(sum(map(len, rows))) < len(rows[0])


def _pictures(arguments: argparse.Namespace, count: int) -> tuple[Tensor, Tensor]:
    pictures, labels = data.cifar10(arguments.data, count)
    return torch.from_numpy(pictures), torch.from_numpy(labels)


def _first_recovered(plan: Planted, sums: Tensor, seed: int) -> tuple[Tensor, float]:
    """Returns the first user's update from sums, and the fraction of right columns."""
    found = recovered(plan, sums, seed)
    return torch.from_numpy(found.updates[0]), found.share


def _inverted(
    model: nn.Module,
    seen: Tensor,
    labels: Tensor,
    training: LocalTraining,
    *,
    steps: int,
    seed: int,
) -> Tensor:
    shape = (*labels.shape, *_SHAPE)
    found = invert_update(model, seen, shape, labels, training, steps=steps, seed=seed)
    return found.flatten(0, 1)


def _psnr_case(
    series: str,
    found: Tensor,
    true: Tensor,
    *,
    users: int,
    begun: float,
    thesis: Mapping[int, float] = _NONE,
    right: float | None = None,
) -> Case:
    return {
        "series": series,
        "users": users,
        "psnr": best_psnr(found, true),
        "grey": best_psnr(torch.full((1, *_SHAPE), 0.5), true),
        "chapter": thesis.get(users),
        "right": right,
        "seconds": time.monotonic() - begun,
        "x": "users",
        "y": "psnr",
    }


def _auc_case(series: str, users: int, value: float, tested: int, right: float | None) -> Case:
    known = {"series": series, "users": users, "auc": value, "tested": tested, "right": right}
    return {**known, "x": "users", "y": "auc"}
