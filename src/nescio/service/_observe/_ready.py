"""Readiness: the service answers, and for the version that it should."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check, with a text for the operator."""

    ok: bool
    detail: str = ""


class Readiness:
    """The checks of /readyz, by name.

    The service is ready if all of them are fine and it is not ending. A check is a function without
    arguments that returns at once: what takes time is done in the background before.
    """

    def __init__(self) -> None:
        self._checks: dict[str, Callable[[], Check]] = {}
        self._draining = False
        self.add("draining", lambda: Check(not self._draining, "ending" if self._draining else ""))

    def add(self, name: str, check: Callable[[], Check]) -> None:
        """Adds a check; one of the same name is replaced."""
        self._checks[name] = check

    def drain(self) -> None:
        """Notes that the service ends: it is not ready from now on."""
        self._draining = True

    @property
    def ready(self) -> bool:
        """True if all checks are fine."""
        return all(check().ok for check in self._checks.values())

    def to_dict(self) -> dict[str, object]:
        """Describes all checks, as JSON types."""
        results = {name: check() for name, check in self._checks.items()}
        ready = all(result.ok for result in results.values())
        return {
            "status": "ready" if ready else "not_ready",
            "checks": {
                name: {"ok": result.ok, **({"detail": result.detail} if result.detail else {})}
                for name, result in results.items()
            },
        }
