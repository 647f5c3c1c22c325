"""The settings of Figures 6.2 to 6.6 of the thesis, small and full.

A scan goes from the easiest setting of a curve to the hardest and ends with the first that fails;
its result is the hardest setting at which every trial recovers the whole matrix. Rounds are
multiples of the number of users and include the chapter's own grid, powers of two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nescio.audit import Setting

__all__ = ["ALIASES", "FIGURES", "Curve", "Figure", "rounds_of"]

_MAX_ROUNDS = 2048
_EASY_TO_HARD = (4.0, 3.0, 2.0, 1.75, 1.5, 1.25, 1.125)
_HARDER = (16.0, 12.0, 8.0, 6.0, *_EASY_TO_HARD)
_DIMENSIONS = tuple(1 << bits for bits in range(16, 6, -1))


class Curve(NamedTuple):
    """Settings from easy to hard, and the name of what they share."""

    name: str
    settings: tuple[Setting, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of settings; `x` is the field that a scan minimizes, or the horizontal axis."""

    name: str
    title: str
    small: tuple[Curve, ...]
    full: tuple[Curve, ...]
    x: str
    series: str
    scan: bool = True
    certify: bool = False
    trials: tuple[int, int] = (3, 30)

    def curves(self, *, full: bool) -> tuple[Curve, ...]:
        """Returns the curves of the small or of the full figure."""
        return self.full if full else self.small


def rounds_of(setting: Setting, times: Sequence[float], most: int = _MAX_ROUNDS) -> Curve:
    """Returns the curve of a setting with rounds from many to few, as multiples of the users."""
    found = dict.fromkeys(round(factor * setting.users) for factor in times)
    settings = [_with(setting, rounds=rounds) for rounds in found if rounds <= most]
    return Curve("", tuple(settings))


def _with(setting: Setting, **changes: object) -> Setting:
    fields = ("users", "rounds", "participation", "granularity", "noise", "dimensions")
    known = {name: getattr(setting, name) for name in fields}
    return Setting(**{**known, **changes})


def _by_users(users: Sequence[int]) -> tuple[Curve, ...]:
    return tuple(rounds_of(Setting(u), _EASY_TO_HARD)._replace(name=f"{u} users") for u in users)


def _by_participation(users: Sequence[int], rates: Sequence[float]) -> tuple[Curve, ...]:
    return tuple(
        rounds_of(Setting(u, participation=rate), _HARDER)._replace(name=f"{u} users, {rate}")
        for u in users
        for rate in rates
    )


def _by_granularity(users: Sequence[int], lengths: Sequence[int]) -> tuple[Curve, ...]:
    return tuple(
        rounds_of(Setting(u, granularity=length), _HARDER)._replace(name=f"{u} users, {length}")
        for u in users
        for length in lengths
    )


def _by_noise(levels: Sequence[float], dimensions: Sequence[int]) -> tuple[Curve, ...]:
    return tuple(
        Curve(
            f"noise {level}",
            tuple(Setting(100, 200, noise=level, dimensions=d) for d in dimensions if d >= 128),
        )
        for level in levels
    )


_TARGETS = (
    Curve("256 users", (Setting(256, 512),)),
    Curve("1,024 users", (Setting(1024, 2048),)),
)

FIGURES = (
    Figure(
        "targets",
        "The targets: all of the attack, certificates included",
        *(_TARGETS, _TARGETS),
        x="rounds",
        series="users",
        scan=False,
        certify=True,
        trials=(3, 3),
    ),
    Figure(
        "figure-6.2a",
        "Figure 6.2a: rounds needed to recover every user, against users",
        small=_by_users((16, 32, 64, 128)),
        full=_by_users((16, 32, 64, 128, 256, 512, 1024)),
        x="rounds",
        series="users",
    ),
    Figure(
        "figure-6.2b",
        "Figures 6.2b and 6.3: share of users recovered, and times, against rounds",
        small=_by_users((64, 128)),
        full=_by_users((256, 512, 1024)),
        x="rounds",
        series="users",
        scan=False,
    ),
    Figure(
        "figure-6.4",
        "Figure 6.4: rounds needed, and times, against participation",
        small=_by_participation((32, 64), (0.1, 0.3, 0.5)),
        full=_by_participation((32, 64, 128, 256), (0.1, 0.2, 0.3, 0.4, 0.5)),
        x="rounds",
        series="participation",
    ),
    Figure(
        "figure-6.5",
        "Figure 6.5: rounds needed against the granularity of counts",
        small=_by_granularity((32, 64), (10, 30, 50)),
        full=_by_granularity((32, 64, 128, 256), (10, 20, 30, 40, 50)),
        x="rounds",
        series="granularity",
    ),
    Figure(
        "figure-6.6a",
        "Figure 6.6a: dimensions needed against noise; 100 users, 200 rounds",
        small=_by_noise((0.1, 0.5, 1.0), _DIMENSIONS[2:]),
        full=_by_noise((0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0), _DIMENSIONS),
        x="dimensions",
        series="noise",
        trials=(2, 30),
    ),
)

ALIASES = {
    "figure-6.2": ("figure-6.2a", "figure-6.2b"),
    "figure-6.3": ("figure-6.2b",),
    "figure-6.6": ("figure-6.6a", "table-6.1"),
    "figure-6.6b": ("table-6.1",),
}
"""Other names of figures; Figure 6.6b is of the runs of Table 6.1."""
