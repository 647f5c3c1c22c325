"""Texts and facts about the data and the plain model."""

from examples.common.report import Report
from examples.wikitext2.data import UNKNOWN
from examples.wikitext2.model import COLUMNS, LanguageModel
from examples.wikitext2.ngrams import bigram, unigram
from examples.wikitext2.part import WINDOW
from examples.wikitext2.task import STREAMS, Task

PUBLISHED = 92.0
"""The perplexity of the paper's model."""


def describe_data(task: Task, report: Report) -> None:
    """Reports the sizes of the texts, and how they are cut."""
    texts = task.texts
    windows = task.held_out.shape[1] // WINDOW
    report.facts["data"] = {
        "words": task.words,
        "train": len(task.train),
        "valid": len(texts.valid),
        "test": len(texts.test),
        "held_out": {"streams": STREAMS, "windows": windows},
    }
    report.say(
        f"{len(task.train):,} words to train with, a vocabulary of {task.words:,}; "
        f"{len(texts.valid):,} to rate layouts with, {len(texts.test):,} to test with"
    )
    report.say(
        f"an inference is a window of {WINDOW} words of one user's text; held out: {STREAMS} "
        f"streams of {windows} windows, {STREAMS * windows * WINDOW:,} words; the state of the "
        "LSTM stays on the device from window to window"
    )


def describe_model(model: LanguageModel, report: Report) -> None:
    """Reports the sizes of what the servers get, and of what the device gets."""
    every = 4 * sum(value.numel() for value in model.parameters())
    table = 4 * model.words.weight.numel()
    output = 4 * sum(value.numel() for value in model.output.parameters())
    report.facts["model"] = {"table": table, "device": every - table, "output": output}
    report.say(
        f"{model.shape.layers} LSTM layer(s) of {model.shape.hidden} over rows of "
        f"{4 * COLUMNS} bytes; the table has {table / 1e6:.1f} MB, the device's half "
        f"{(every - table) / 1e6:.1f} MB, of which the output layer {output / 1e6:.1f} MB"
    )


def describe_quality(task: Task, perplexity: float, report: Report) -> None:
    """Reports the perplexity of the plain model beside those of counting, and of the paper."""
    train, test, words = task.train, task.held_out, task.words
    counted = {"unigram": unigram(train, test, words), "bigram": bigram(train, test, words)}
    unknown = task.texts.words.index(UNKNOWN)
    share = float((test[:, 1:] == unknown).mean())
    facts = {"perplexity": perplexity, **counted, "published": PUBLISHED}
    report.facts["plain"] = facts | {"unknown_share": share}
    report.say(
        f"perplexity {perplexity:.1f} of the words held out; by counting words "
        f"{counted['unigram']:.0f}, by counting pairs {counted['bigram']:.0f} (Kneser-Ney)"
    )
    report.say(
        f"published: {PUBLISHED:.0f}, after the training setup of Merity et al. (2016): larger "
        "models, and longer training, as with --full"
    )
    report.say(f"{share:.1%} of the words are {UNKNOWN}, which makes them easier to predict")
