"""Figures that others published or that were measured elsewhere, by network, with their sources.

Chapter 4 of the thesis (Lam, 2024) measured two hosts with 8 cores of 3 GHz each and 5 to 10 Gbit/s
between them, one inference at a time.
"""

from typing import NamedTuple

from nescio._report import Case

__all__ = ["CHAPTER", "GARBLED", "TRANSFERS", "Chapter", "Garbled", "Transfer", "garbled"]


class Chapter(NamedTuple):
    """The chapter's figures of a network, with tables of 8 bits, and this project's targets.

    `relus`, `online_mb` and the megabytes of garbled circuits of 32, 16 and 8 bits are those of
    Table 4.5; `runtime_s` and the seconds of garbled circuits are those of Table 4.8; `tables_mb`
    and the preprocessing of garbled circuits are those of Table 4.10. Tables 4.8 and 4.10 give
    284.7K ReLUs for VGG-16.
    """

    relus: str
    online_mb: float
    runtime_s: float
    tables_mb: float
    garbled_online_mb: tuple[float, float, float]
    garbled_s: tuple[float, float, float]
    garbled_offline_mb: tuple[float, float, float]
    target_online_mb: float
    target_tables_mb: float


CHAPTER = {
    "LeNet": Chapter(
        *("58K", 3.5, 0.29, 906, (124, 62, 31), (11.1, 6.3, 3.9), (991, 496, 248)), 0.42, 5.6
    ),
    "ResNet-32": Chapter(
        *("303K", 14, 0.97, 4_600, (311, 155, 77), (69.7, 43.4, 30.6), (5_050, 2_530, 1_270)),
        *(2.2, 29),
    ),
    "VGG-16": Chapter(
        *("276K", 12.1, 0.67, 4_300, (286, 143, 72), (55.9, 32.1, 19.9), (4_750, 2_370, 1_190)),
        *(2.1, 27),
    ),
    "ResNet-34": Chapter(
        *("1.47M", 59.5, 1.85, 22_400, (1_500, 750, 370), (284.3, 159.9, 95.9)),
        *((24_500, 12_250, 6_130), 7.0, 93),
    ),
}


class Garbled(NamedTuple):
    """Costs of a ReLU by a garbled circuit; both phases in one call, unless there are two."""

    name: str
    source: str
    online_bytes: float
    offline_bytes: float
    microseconds: float


GARBLED = (
    Garbled(
        *("emp-sh2pc 0.3.0, 8 bits", "measured, docs/performance.md, private inference"),
        *(812, 0, 19.2),
    ),
    Garbled(
        *("Delphi's circuits, 8 bits", "the chapter, Tables 4.2, 4.7 and 4.9"),
        *(562, 4_480, 69 + 53),
    ),
)
"""emp-sh2pc's time is the CPU time of both parties, the chapter's is of both phases."""


def garbled(network: str, relus: int) -> list[Case]:
    """Multiplies the costs of a ReLU by the number of a network's ReLUs."""
    return [
        {
            "network": network,
            "circuit": own.name,
            "relus": relus,
            "online_mb": relus * own.online_bytes / 1e6,
            "offline_mb": relus * own.offline_bytes / 1e6,
            "seconds": relus * own.microseconds / 1e6,
            "source": own.source,
        }
        for own in GARBLED
    ]


class Transfer(NamedTuple):
    """An oblivious transfer of an older protocol: CPU time of both parties, and bytes of both."""

    name: str
    source: str
    nanoseconds: float
    bytes: float


TRANSFERS = (
    Transfer(
        "IKNP, emp-ot",
        "published: 73 million a second, a thread each, on two hosts (EPYC 9R45)",
        2e3 / 73,
        16,
    ),
    Transfer(
        "Ferret, emp-ot of 2023 with cuOT's parameters",
        "measured: 13.6 to 15.7 million a second at 2^23 and 2^24, a thread each",
        2e3 / 14.7,
        0.036,
    ),
    Transfer(
        "silent OT of the dual family, libOTe a0871f6",
        "measured: 5.4 to 6.4 million a second at 2^20 to 2^24, a thread each",
        2e3 / 5.9,
        0.0066,
    ),
)
"""Rates that were measured are of another day, on a machine of this kind, over loopback."""
