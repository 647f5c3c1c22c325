"""Audit of secure aggregation: what a server that sees only sums of updates learns about users.

    disaggregate   the attack: columns, updates and certificates from sums and counts
    solve          the same for a Log
    Log            a checked record of sums and counts; reads and writes .npz files
    Options        the options of the attack
    Result         the recovered columns and updates
    Certificate    the evidence for one user's column
    Recorder       records a training run as a Log; `flower.recorded` wraps a Flower strategy
    audit_log      the whole audit of a Log, with control and grade, as Findings
    as_json        the report of Findings as JSON; `as_html` as one HTML page (needs matplotlib)
    simulate       a simulated run of a Setting; `sweep` attacks many
    leakage        what one recovered update reveals about its user's data (needs PyTorch)

The attack is that of thesis chapter 6 (Lam et al., "Gradient Disaggregation", ICML 2021).
"""

import importlib
from typing import TYPE_CHECKING, Any

from .._extras import installed

if TYPE_CHECKING:
    from . import flower as flower
    from . import leakage as leakage
    from ._attack.options import Options
    from ._audit_log import audit_log
    from ._certify.result import Certificate, Result
    from ._certify.verdict import Verdict
    from ._disaggregate import disaggregate, solve
    from ._log.record import Log
    from ._recording.recorder import Recorder
    from ._report.facts import Findings, as_json
    from ._report.html import as_html
    from ._simulate.defenses import DEFENSES, Defense
    from ._simulate.runs import Outcome, Run, Setting, attack_simulated, simulate
    from ._simulate.sweep import Sweep, sweep
    from ._thresholds import Thresholds

__all__ = [
    "DEFENSES",
    "Certificate",
    "Defense",
    "Findings",
    "Log",
    "Options",
    "Outcome",
    "Recorder",
    "Result",
    "Run",
    "Setting",
    "Sweep",
    "Thresholds",
    "Verdict",
    "as_html",
    "as_json",
    "attack_simulated",
    "audit_log",
    "disaggregate",
    "simulate",
    "solve",
    "sweep",
]

_MODULES = {
    "DEFENSES": "_simulate.defenses",
    "Certificate": "_certify.result",
    "Defense": "_simulate.defenses",
    "Findings": "_report.facts",
    "Log": "_log.record",
    "Options": "_attack.options",
    "Outcome": "_simulate.runs",
    "Recorder": "_recording.recorder",
    "Result": "_certify.result",
    "Run": "_simulate.runs",
    "Setting": "_simulate.runs",
    "Sweep": "_simulate.sweep",
    "Thresholds": "_thresholds",
    "Verdict": "_certify.verdict",
    "as_html": "_report.html",
    "as_json": "_report.facts",
    "attack_simulated": "_simulate.runs",
    "audit_log": "_audit_log",
    "disaggregate": "_disaggregate",
    "simulate": "_simulate.runs",
    "solve": "_disaggregate",
    "sweep": "_simulate.sweep",
}


# Not in __all__: they need Flower and PyTorch.
_SUBMODULES = ("flower", "leakage")
_NEEDS = {"as_html": "matplotlib", "flower": "flwr", "leakage": "torch"}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module, a class or a function
    if name in _SUBMODULES:
        return importlib.import_module(f".{name}", __name__)
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    missing = {name for name, needs in _NEEDS.items() if not installed(needs)}
    return sorted({*globals(), *__all__, *_SUBMODULES} - missing)
