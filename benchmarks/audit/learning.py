"""Table 6.1 and Figure 6.6b: disaggregation of FedAvg updates of LeNet on CIFAR-10.

The model stays the same from round to round, as the thesis assumes (section 6.3.1). A user's
updates differ by the order of the data and, with a fraction below one, by the data.
"""

import argparse
import time
from collections.abc import Iterator, Mapping
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from nescio._report import Case, Column, Report
from nescio.audit import Log, Result, Setting, simulate, solve
from nescio.audit._leakage import data, networks
from nescio.audit._leakage.updates import LocalTraining, Rounds, rounds_of_updates

__all__ = ["Planted", "Recovered", "Row", "fedavg_cases", "planted", "recovered"]

_CHAPTERS: Mapping[tuple[int, float, float, int], tuple[float, ...]] = {
    (64, 0.9, 1.0, 8): (0.99, 1, 1, 1, 1, 1, 1),
    (128, 0.9, 1.0, 8): (1, 1, 1, 1, 1, 1, 0.96),
    (64, 0.0, 0.9, 8): (0.06, 0.66, 0.97, 0.99, 0.98, 0.99, 0.85),
    (64, 0.0, 0.9, 16): (1, 1, 1, 1, 1, 1, 0.99),
    (128, 0.0, 0.9, 8): (1, 1, 1, 1, 1, 1, 0.90),
    (128, 0.0, 0.9, 16): (0.59, 0.96, 1, 1, 1, 1, 0.99),
}
"""The rows of Table 6.1 that are not all ones, by data size, momentum, fraction and batch."""

_SIZE = (100, 200)
"""Users and rounds."""

_EPOCHS = (1, 2, 4, 8, 16, 32, 64)
_COLUMNS: list[Column] = [
    ("data", "data", ">4d"),
    ("batch", "batch", ">5d"),
    ("momentum", "mom.", ">4.1f"),
    ("fraction", "frac.", ">5.1f"),
    ("epochs", "epochs", ">6d"),
    ("relative_noise", "noise", ">6.3f"),
    ("right", "right", ">6.3f"),
    ("chapter", "thesis", ">6.2f"),
    ("found", "found", ">6.3f"),
    ("unique", "unique", ">6.3f"),
    ("wrong", "wrong", ">5.3f"),
    ("update_error", "upd. error", ">10.3f"),
    ("seconds", "s", ">7,.1f"),
    ("training_seconds", "training s", ">10,.1f"),
]


class Row(NamedTuple):
    """A row of the table: pictures per user, local training, and epochs to stop at."""

    data: int
    batch: int
    momentum: float
    fraction: float
    epochs: tuple[int, ...] = _EPOCHS


_SMALL = (
    Row(64, 16, 0.0, 1.0, (1, 2)),
    Row(64, 16, 0.9, 1.0, (1, 2)),
    Row(64, 8, 0.0, 0.9, (1, 2)),
    Row(128, 16, 0.0, 0.9, (1, 2)),
)
_FULL = tuple(
    Row(size, batch, momentum, fraction)
    for (momentum, fraction), size, batch in product(
        ((0.0, 1.0), (0.9, 1.0), (0.0, 0.9)), (64, 128), (8, 16, 32)
    )
)


class Planted(NamedTuple):
    """A simulated run: users, rounds and participation, for sums that are made elsewhere."""

    present: npt.NDArray[np.uint8]
    windows: tuple[tuple[int, int], ...]
    counts: npt.NDArray[np.int64]

    def log(self, sums: torch.Tensor) -> Log:
        """Returns the server's log if the sums of the rounds are these."""
        together = self.present.sum(axis=1, dtype=np.int64)
        users = self.present.shape[1]
        return Log(sums.numpy(), users, self.windows, self.counts, together)


def planted(setting: Setting, seed: int) -> Planted:
    """Returns the participation of a simulated run."""
    run = simulate(setting, seed)
    assert run.log.counts is not None
    return Planted(run.participation, run.log.windows, run.log.counts)


class Recovered(NamedTuple):
    """The outcome of an attack on sums: result, right columns, updates (users, d), seconds."""

    result: Result
    right: npt.NDArray[np.bool_]
    updates: npt.NDArray[np.float32]
    seconds: float

    @property
    def share(self) -> float:
        """The fraction of columns that are the planted ones."""
        return float(self.right.mean())


def recovered(plan: Planted, sums: torch.Tensor, seed: int) -> Recovered:
    """Attacks the sums.

    Uses the best columns found, whatever their certificates, and least squares over all of them for
    the updates, as an attacker would.
    """
    begun = time.monotonic()
    result = solve(plan.log(sums), seed=seed, updates=False)
    inverse = np.linalg.pinv(result.participation.astype(np.float64)).astype(np.float32)
    updates = inverse @ sums.numpy()
    seconds = time.monotonic() - begun
    right = (result.participation == plan.present).all(axis=0)
    return Recovered(result, right, updates, seconds)


def fedavg_cases(arguments: argparse.Namespace) -> Iterator[Case]:
    """Yields the cases of Table 6.1, each compared with true participation and mean updates."""
    rows = _FULL if arguments.full else _SMALL
    seed = arguments.seed
    users, rounds = _SIZE
    most = max(row.data for row in rows)
    pictures, labels = (torch.from_numpy(a) for a in data.cifar10(arguments.data, users * most))
    pictures -= 0.5
    plan = planted(Setting(users, rounds), seed)
    model = networks.lenet(seed=seed)
    report = Report(_COLUMNS)
    for row in rows:
        own = list(zip(pictures.split(row.data), labels.split(row.data), strict=True))[:users]
        training = LocalTraining(row.batch, row.epochs[-1], 0.01, row.momentum, row.fraction)
        begun = time.monotonic()
        present = torch.from_numpy(plan.present.astype(np.bool_))
        made = rounds_of_updates(model, own, present, training, epochs=row.epochs, seed=seed)
        trained = time.monotonic() - begun
        for epochs, of_epochs in zip(row.epochs, made, strict=True):
            case = _case(row, epochs, plan, of_epochs, seed)
            report.add({**case, "training_seconds": trained})
            yield {**case, "training_seconds": trained}


def _case(row: Row, epochs: int, plan: Planted, made: Rounds, seed: int) -> Case:
    found = recovered(plan, made.sums, seed)
    result, right = found.result, found.right
    name = (row.data, row.momentum, row.fraction, row.batch)
    chapter = _CHAPTERS.get(name, (1.0,) * len(_EPOCHS))[_EPOCHS.index(epochs)]
    momentum = f", m {row.momentum}" if row.momentum else ""
    fraction = f", f {row.fraction}" if row.fraction < 1 else ""
    return {
        "users": plan.present.shape[1],
        "rounds": plan.present.shape[0],
        "dimensions": made.sums.shape[1],
        "data": row.data,
        "batch": row.batch,
        "momentum": row.momentum,
        "fraction": row.fraction,
        "epochs": epochs,
        "relative_noise": float(made.noise.nanmedian()),
        "right": found.share,
        "chapter": chapter,
        "found": float(result.found.mean()),
        "unique": float(result.unique.mean()),
        "evened": result.standardized,
        "drift": result.drift,
        "wrong": float((result.unique & ~right).mean()),
        "update_error": _error(found, made.means),
        "seconds": found.seconds,
        "verified": True,
        "series": f"D {row.data}, b {row.batch}{momentum}{fraction}",
        "x": "epochs",
        "y": "relative_noise",
    }


def _error(found: Recovered, means: torch.Tensor) -> float | None:
    """Returns the median relative error of the updates of users with right columns."""
    if not found.right.any():
        return None
    true = means.numpy()[found.right]
    away = np.linalg.norm(found.updates[found.right] - true, axis=1)
    return float(np.median(away / np.linalg.norm(true, axis=1)))
