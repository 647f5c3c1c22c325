"""Real lookups beside the counting: the rows that arrive, the quality, and a server's time."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from examples.common.application import Application
from examples.common.measured import Request
from examples.common.private import at_once, export, private_model
from nescio._report import Case, Report
from nescio.bench.timing import WrongResultError
from nescio.pir.batch._tune.cost import Setup
from nescio.pir.batch._tune.score import Scorer

from .designs import Point, layout_of

__all__ = ["Checks"]

_COLUMNS = [
    ("application", "application", ">11"),
    ("inferences", "inferences", ">10,d"),
    ("alike", "same rows", ">9"),
    ("retrieved", "rows", ">6.1%"),
    ("counted_quality", "counted", ">8.5f"),
    ("quality", "real", ">8.5f"),
    ("measured_milliseconds", "ms", ">7.2f"),
    ("server_milliseconds", "server's ms", ">11.2f"),
    ("ratio", "ratio", ">5.2f"),
    ("layout", "layout", ""),
]
_NOTES = """\
Held-out inferences with private lookups on two processes of nescio serve. same rows: those
inferences that got exactly the rows that were counted, bit for bit. counted, real: the quality. ms:
a server's answer to all clients together, measured in the sweep; server's ms: the same, as the
slower server reports it, while both and the client share this machine."""


class Checks:
    """Runs held-out inferences of an application with real lookups.

    `scorer` counts on the same inferences. `folder` gets the exported models.
    """

    def __init__(
        self, application: Application, setup: Setup, scorer: Scorer, folder: Path
    ) -> None:
        self._app, self._setup, self._scorer = application, setup, scorer
        self._folder = folder

    def cases(self, points: Sequence[Point], count: int | None) -> Iterator[Case]:
        """Runs `count` inferences with each layout (None: all); prints and yields its case."""
        report = Report(_COLUMNS)
        for number, point in enumerate(points):
            run = _Run(self._app, point, self._setup, self._folder / str(number))
            case = {"application": self._app.name, "what": "check", **run.case(self._scorer, count)}
            report.add(case)
            yield case
        print(_NOTES)


class _Run:
    """The private model with one layout."""

    def __init__(self, application: Application, point: Point, setup: Setup, folder: Path) -> None:
        self._app, self._point, self._setup, self._folder = application, point, setup, folder
        self._found: Counter[tuple[bytes, bytes]] = Counter()
        self._sizes: list[int] = []  # inferences of each request

    def case(self, scorer: Scorer, count: int | None) -> Case:
        """Runs inferences, and compares them with the counting."""
        app, part, point = self._app, self._app.held_out, self._point
        layout = layout_of(point.design, app.log, self._setup)
        export(app, self._folder, layout)
        together = at_once(layout.slots, self._setup.clients)
        generator = f"--generator={self._setup.generator}"
        with private_model(app.make, self._folder, generator, seconds=3600) as private:
            embedding = private.model.get_submodule(app.table)
            embedding.register_forward_hook(self._note)
            with torch.no_grad():
                outputs = list(part.run(private, together, count))
            requests = private.tables[app.table].requests
        return {
            "layout": point.design.describe(),
            "design": point.design.to_dict(),
            **self._counted(scorer),
            "quality": abs(part.rate(outputs)),
            **self._times(requests),
            "bytes_up": requests[0].bytes_up,
            "bytes_down": requests[0].bytes_down,
        }

    def _counted(self, scorer: Scorer) -> Case:
        """Compares the rows with those counted; the quality counts if all inferences were run."""
        design, ran = self._point.design, self._found.total()
        score = scorer.score(design)
        return {
            "inferences": ran,
            "alike": (self._found & self._expected(scorer.retrieved(design))).total(),
            "retrieved": score.retrieved,
            "counted_quality": abs(score.quality) if ran == len(self._app.held_out) else None,
        }

    def _times(self, requests: Sequence[Request]) -> Case:
        """Compares a server's time for a request of most inferences with that of the sweep."""
        most = max(self._sizes)
        whole = [
            one.servers for one, size in zip(requests, self._sizes, strict=True) if size == most
        ]
        served = 1e3 * median(whole)
        measured = 1e3 * self._point.cost.seconds * most / self._setup.clients
        return {
            "measured_milliseconds": measured,
            "server_milliseconds": served,
            "ratio": served / measured,
        }

    def _note(self, module: Any, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:  # noqa: ANN401
        """Notes the rows of each inference, and those of them that are missing.

        Raises WrongResultError unless the others are those of the table, bit for bit.
        """
        rows, missing = inputs[0], module.last_missing
        if not torch.equal(output[~missing], self._app.weight[rows[~missing]]):
            raise WrongResultError("private lookups did not get the rows of the table")
        self._sizes.append(len(rows))
        for own, lost in zip(rows.numpy(), missing.numpy(), strict=True):
            self._found[_key(own, own[lost])] += 1

    def _expected(self, flags: np.ndarray[Any, Any]) -> Counter[tuple[bytes, bytes]]:
        """Returns the same by counting, for all held-out inferences."""
        log = self._app.held_out.log
        arrived = np.split(flags, log.offsets[1:-1])
        return Counter(_key(rows, rows[~own]) for rows, own in zip(log, arrived, strict=True))


def _key(rows: np.ndarray[Any, Any], missing: np.ndarray[Any, Any]) -> tuple[bytes, bytes]:
    return np.unique(rows).tobytes(), np.unique(missing).tobytes()
