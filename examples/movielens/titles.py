"""Lookups of films by title: the device has titles, and no list of the films."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from examples.common.measured import MeasuredTable
from examples.common.servers import two_servers
from examples.movielens.data import Integers
from examples.movielens.model import Recommender
from examples.movielens.task import Task
from nescio.pir import KeyedClient

UNKNOWN = "Nescio: the Film (2026)"


def look_up_titles(
    task: Task, model: Recommender, folder: Path, numbers: Integers
) -> dict[str, Any]:
    """Scores films after histories of titles, with a lookup for each title; returns the facts.

    Every inference looks up as many titles: an empty place repeats the title that is scored. A
    title that the table lacks is left out of its history, and the servers do not learn that.
    """
    folder.mkdir()
    rows, titles = folder / "films.npy", folder / "titles.txt"
    np.save(rows, model.films.weight.detach().numpy())
    titles.write_text("".join(f"{title}\n" for title in task.ratings.titles), encoding="utf-8")
    with (
        two_servers([rows], f"--keys=films={titles}", "--max-keys=2048") as servers,
        closing(MeasuredTable(servers, "films")) as table,
    ):
        client = KeyedClient(table)
        equal = all(_is_equal(task, model, client, number) for number in numbers)
        unknown = client.lookup([UNKNOWN] * task.lookups).found
        requests, (up, down) = table.requests, table.sizes
    return {
        "inferences": len(numbers),
        "equal": equal,
        "unknown_title_found": bool(unknown.any()),
        "bytes_up": up,
        "bytes_down": down,
        "servers": _milliseconds([r.servers for r in requests]),
        "lookup": _milliseconds([r.keys + r.servers + r.network + r.decode for r in requests]),
    }


def _is_equal(task: Task, model: Recommender, client: KeyedClient, number: int) -> bool:
    """Tests if the score from the rows of titles is that of the plain model, bit for bit."""
    rows, _ = task.examples(np.array([number]))
    values, found = client.lookup([task.ratings.titles[row] for row in rows[0]])
    present = (rows[:, 1:] != rows[:, :1]) & torch.from_numpy(found[1:])
    with torch.no_grad():
        score = model.score(torch.from_numpy(values)[None], present)
        return bool(torch.equal(score, model(rows)))


def _milliseconds(seconds: Sequence[float]) -> float:
    return 1000 * median(seconds)
