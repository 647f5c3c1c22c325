"""Plots of bit-serial products. Needs matplotlib: pip install 'nescio[bench]'."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._report import Case
from ..errors import FileError
from .quant_limits import intensity, standard_intensity


def plot_products(path: Path, cases: Sequence[Case]) -> None:
    """Plots the speedup over float32 by size (Table 3.1) and operations per byte (Figure 3.2).

    Uses the cases with the batch, threads and tier of the first. Raises FileError if the file
    cannot be written.
    """
    same = ("batch", "threads", "tier")
    own = [case for case in cases if all(case[key] == cases[0][key] for key in same)]
    widths = list(dict.fromkeys(case["activation_bits"] for case in own))
    figure = Figure(figsize=(1.5 + 3.6 * (len(widths) + 1), 4.2), layout="constrained")
    grid = figure.subplots(1, len(widths) + 1, squeeze=False)[0]
    for axes, width in zip(grid, widths, strict=False):
        _speedups(axes, [case for case in own if case["activation_bits"] == width])
        axes.set_title(f"{width}-bit activations", fontsize="medium")
    grid[0].set_ylabel("speedup over fp32")
    grid[0].legend(fontsize="x-small")
    _intensities(grid[-1], own)
    figure.suptitle(
        f"Products with weights of few bits, {cases[0]['tier']}, {cases[0]['baseline']}"
    )
    save(figure, path)


def save(figure: Figure, path: Path) -> None:
    """Writes a figure as PNG. Raises FileError if it cannot be written."""
    try:
        figure.savefig(path, dpi=130, format="png")
    except OSError as error:
        raise FileError(f"the plot cannot be written: {error}") from error


def _speedups(axes: Axes, own: Sequence[Case]) -> None:
    for bits in dict.fromkeys(case["weight_bits"] for case in own):
        points = [case for case in own if case["weight_bits"] == bits]
        axes.plot(
            [_number(case, "size") for case in points],
            [_number(case, "speedup_fp32") for case in points],
            "o-",
            label=f"{bits}-bit weights",
        )
    if all(case["int8_microseconds"] for case in own):
        by_size = {_number(case, "size"): case for case in own}
        ratios = [
            _number(case, "fp32_microseconds") / _number(case, "int8_microseconds")
            for case in by_size.values()
        ]
        axes.plot(list(by_size), ratios, "k--", label="int8 of the same")
    axes.axhline(1, color="k", alpha=0.4)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
    axes.set_xlabel("rows and columns")
    axes.grid(alpha=0.25)


def _intensities(axes: Axes, own: Sequence[Case]) -> None:
    """Plots Figure 3.2 for the largest size: standard types, then each measured width."""
    size = max(int(str(case["size"])) for case in own)
    bars = {f"int{bits}": standard_intensity(size, bits) for bits in (1, 4, 8)}
    bars |= {f"fp{bits}": standard_intensity(size, bits) for bits in (16, 32)}
    for case in own:
        w, a = int(str(case["weight_bits"])), int(str(case["activation_bits"]))
        bars[f"{w} bits, a={a}"] = intensity(size, w, a)
    axes.barh(list(bars), list(bars.values()))
    axes.set_xscale("log")
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=6)
    axes.set_xlabel("operations per byte")
    axes.set_title(f"intensity, {size:,} x {size:,}", fontsize="medium")


def _number(case: Case, field: str) -> float:
    value = case[field]
    assert isinstance(value, int | float)
    return float(value)
