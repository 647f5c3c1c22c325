"""Plots of the experiments. Needs matplotlib: pip install 'nescio[bench]'."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from nescio._report import Case
from nescio.bench.quant_plot import save


def plot_histograms(path: Path, cases: Sequence[Case]) -> None:
    """Plots Figure 3.3: a column for each layer, its weights above its inputs."""
    layers = list(dict.fromkeys(case["layer"] for case in cases))
    figure = Figure(figsize=(1 + 3.2 * len(layers), 5), layout="constrained")
    grid = figure.subplots(2, len(layers), squeeze=False)
    for case in cases:
        row = 0 if case["what"] == "weights" else 1
        axes = grid[row][layers.index(case["layer"])]
        axes.stairs(case["counts"], case["edges"], fill=True)
        axes.set_yscale("log")
        axes.set_title(f"{case['layer']}, {case['what']}", fontsize="medium")
    figure.suptitle("MNIST: values of weights and activations")
    save(figure, path)


def plot_search(path: Path, cases: Sequence[Case]) -> None:
    """Plots Figure 3.4: quality against speedup of every plan, with lines through the best.

    Solid: layers may differ. Dashed: the same bits in all layers. Crosses: PyTorch. Qualities are
    those of the images used in the search.
    """
    figure = Figure(figsize=(7.5, 5), layout="constrained")
    axes = figure.add_subplot()
    plans = [case for case in cases if case["way"] == "engine"]
    for own, style, label in (
        (plans, ".", "plans"),
        (_best(plans), "o-", "best plans"),
        (_best([case for case in plans if case["uniform"]]), "s--", "all layers alike"),
        ([case for case in cases if case["way"] == "PyTorch"], "kx", "PyTorch: fp32, int8"),
    ):
        speeds, qualities = _numbers(own, "speedup_fp32"), _numbers(own, "searched_quality")
        axes.plot(speeds, qualities, style, label=label, alpha=0.3 if style == "." else 1)
    axes.set(xlabel="speedup of the products over float32 (PyTorch)", ylabel="accuracy")
    axes.set_title("MNIST: bits for each layer")
    axes.grid(alpha=0.25)
    axes.legend(fontsize="small")
    save(figure, path)


def _best(cases: Sequence[Case]) -> list[Case]:
    """Returns the cases whose quality no faster case reaches, fastest first."""
    best, most = [], -1.0
    for case in sorted(cases, key=lambda case: -float(str(case["speedup_fp32"]))):
        quality = float(str(case["searched_quality"]))
        if quality > most:
            best.append(case)
            most = quality
    return best


def _numbers(cases: Sequence[Case], field: str) -> list[float]:
    return [float(str(case[field])) for case in cases]
