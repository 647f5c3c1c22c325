"""All benchmarks of the applications, into one folder."""

import argparse
from collections.abc import Sequence

from benchmarks._main import make_folder

__all__ = ["run"]

_INTERRUPTED = 130


def run(arguments: argparse.Namespace) -> int:
    """Runs table3, latency and sweep, each of which writes its cases and figures.

    Goes on after one that failed; stops after one that was interrupted.
    """
    from .__main__ import main  # noqa: PLC0415 - which imports this module's name alone

    out = make_folder(arguments.out)
    names = ("--applications", ",".join(arguments.applications))
    models = ("--data", arguments.data, "--size", arguments.size, "--seed", str(arguments.seed))
    few: Sequence[str] = ("--layouts", "18", "--timed", "5") if arguments.quick else ()
    runs: dict[str, Sequence[str]] = {
        "table3": ("--scale", "0.01", "--seconds", "0.01") if arguments.quick else (),
        "latency": (*models, "--plot", str(out / "applications-latency.png"), *few),
        "sweep": (*models, "--plot", str(out), *_sweep(quick=arguments.quick)),
    }
    codes = []
    for name, options in runs.items():
        print(f"\n== {name}", flush=True)
        codes.append(main([name, *names, "--json", str(out / f"{name}.json"), *options]))
        if codes[-1] == _INTERRUPTED:
            break
    return max(codes)


def _sweep(*, quick: bool) -> Sequence[str]:
    if not quick:
        return ()
    return ("--layouts", "18", "--seconds", "0.01", "--checks", "2", "--inferences", "128")
