"""The plots of `python -m benchmarks.infer figures`. Needs matplotlib: pip install 'nescio[bench]'.

Figures 4.4 and 4.6 of the thesis set communication and storage against accuracy, Figure 4.7 the
time; Figure 4.8 splits the time by kind of layer.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.infer.figures_rows import beside_chapter, select
from nescio._report import Case
from nescio.errors import ArgumentError

__all__ = ["draw"]

_STORED_OF_TABULA = 8  # bytes of an entry


def draw(folder: Path, cases: Sequence[Case]) -> Iterator[Path]:
    """Draws the plots that have cases; yields their paths. Raises ArgumentError."""
    plots = {
        "quality.png": ("quality", _quality),
        "costs.png": ("sums", _costs),
        "phases.png": ("shares", _shares),
    }
    for name, (table, plot) in plots.items():
        if select(cases, table):
            canvas = Figure(figsize=(11, 4), layout="constrained")
            plot(canvas, cases)
            try:
                canvas.savefig(folder / name, dpi=110)
            except (OSError, ValueError) as error:
                raise ArgumentError(f"the plot cannot be written: {error}") from error
            yield folder / name


def _quality(canvas: Figure, cases: Sequence[Case]) -> None:
    """Agreement against bits, and accuracy against the storage of a party."""
    left, right = canvas.subplots(1, 2)
    for name in dict.fromkeys(one["network"] for one in select(cases, "quality")):
        own = select(cases, "quality", network=name)
        bits = [one["table_bits"] for one in own]
        left.plot(bits, [100 * one["agree"] for one in own], marker="o", label=name)
        if own[0]["right"] is None:
            continue
        lookups = [one["lookups"] / one["images"] for one in own]
        accuracy = [100 * one["right"] for one in own]
        pairs = list(zip(lookups, bits, strict=True))
        line = right.plot(
            [count * _stored(b) / 1e6 for count, b in pairs], accuracy, marker="o", label=name
        )
        theirs = [count * _STORED_OF_TABULA * 2**b / 1e6 for count, b in pairs]
        color = line[0].get_color()
        right.plot(theirs, accuracy, ":", marker="x", color=color, label=f"{name}, Tabula's tables")
        right.axhline(100 * own[0]["float_right"], color=color, linewidth=0.5)
    _named(left, "bits of a table", "% of images: the float model's class")
    right.set_xscale("log")
    _named(right, "MB stored by a party for an inference", "% right")
    canvas.suptitle("Quality against tables of 4 to 12 bits (the thesis: Figures 4.4 and 4.6)")


def _stored(bits: int) -> float:
    """Returns the client's bytes of a lookup: one-hot vector, daBits, places and masks, and 8."""
    return max(8, (1 << bits) / 8) + 4 * bits + (2 if bits <= 8 else 4) + 8


def _costs(canvas: Figure, cases: Sequence[Case]) -> None:
    """Online bytes, time and preprocessing, ours beside the chapter's."""
    rows = [dict(row) for row in beside_chapter(cases)]
    panels = (
        ("online MB", (("ours", "online_mb"), ("the chapter", "chapter_online_mb"))),
        ("table MB offline", (("ours", "tables_mb"), ("the chapter", "chapter_tables_mb"))),
        (
            "online s",
            (
                ("ours, loopback", "local_s"),
                ("1 ms, 1 Gbit/s", "lan_s"),
                ("40 ms, 100 Mbit/s", "wan_s"),
                ("the chapter", "chapter_s"),
            ),
        ),
    )
    for axes, (title, bars) in zip(canvas.subplots(1, len(panels)), panels, strict=True):
        width = 0.8 / len(bars)
        for number, (label, field) in enumerate(bars):
            places = [k + number * width for k in range(len(rows))]
            axes.bar(places, [float(str(row[field])) for row in rows], width, label=label)
        axes.set_xticks([k + 0.4 - width / 2 for k in range(len(rows))])
        axes.set_xticklabels([str(row["network"]) for row in rows], fontsize="small")
        axes.set_yscale("log")
        _named(axes, "", title)
    canvas.suptitle("Ours beside the chapter's (Tables 4.5, 4.8 and 4.10)")


def _shares(canvas: Figure, cases: Sequence[Case]) -> None:
    """Bytes and CPU time of the offline phase by kind."""
    shares = select(cases, "shares")
    names = list(dict.fromkeys(one["network"] for one in shares))
    panels = (("byte_share", "% of offline bytes"), ("cpu_share", "% of offline CPU time"))
    for axes, (field, title) in zip(canvas.subplots(1, 2), panels, strict=True):
        below = [0.0] * len(names)
        for kind in dict.fromkeys(one["kind"] for one in shares):
            own = [100 * one[field] for one in shares if one["kind"] == kind]
            axes.bar(names, own, 0.6, bottom=below, label=kind)
            below = [a + b for a, b in zip(below, own, strict=True)]
        _named(axes, "", title)
    canvas.suptitle("Oblivious transfer inside the offline phase")


def _named(axes: Axes, across: str, up: str) -> None:
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(visible=True, alpha=0.25)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="x-small")
