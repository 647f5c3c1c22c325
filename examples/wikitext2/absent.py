"""Rows that may stand for a word whose own row did not fit a layout."""

import numpy as np
import torch

from examples.common.application import Application, plain_quality
from examples.common.report import Report
from examples.wikitext2.data import UNKNOWN
from examples.wikitext2.model import LanguageModel
from examples.wikitext2.task import Task
from nescio.pir import LocalTable
from nescio.pir.batch import BatchClient, Layout, build


def compare_rows(task: Task, application: Application, layout: Layout, report: Report) -> None:
    """Reports the perplexity with a layout, by the row that stands for a missing word.

    The one of the model is learned: in training it takes the place of words at random. The others
    are zeros, the mean row of the table, the mean row of the text, and the row of <unk>.
    """
    model, rated = application.model, application.rated
    assert isinstance(model, LanguageModel)
    sets = list(rated.log)
    places = build(np.zeros((application.rows, 1), np.float32), layout)
    found = BatchClient(LocalTable(places.table)).lookup(sets).found  # as with the real rows
    learned = model.absent.detach().clone()
    facts = {"plain": -plain_quality(rated)}
    for name, row in {"learned": learned, **_rows(task, model)}.items():
        with torch.no_grad():
            model.absent.copy_(row)
        facts[name] = -rated.quality(sets, found)
    with torch.no_grad():
        model.absent.copy_(learned)
    report.facts["missing_words"] = facts
    report.say(
        "the relaxed layout, by the row that stands for a missing word: perplexity "
        + ", ".join(f"{value:.1f} ({name})" for name, value in facts.items())
    )


def _rows(task: Task, model: LanguageModel) -> dict[str, torch.Tensor]:
    weight = model.words.weight.detach()
    counts = torch.from_numpy(task.texts.counts()).to(weight.dtype)
    return {
        "zeros": torch.zeros_like(weight[0]),
        "mean of the table": weight.mean(0),
        "mean of the text": counts @ weight / counts.sum(),
        UNKNOWN: weight[task.texts.words.index(UNKNOWN)],
    }
