"""Rows of tables that combine cases: ours beside the chapter, SPU and the targets."""

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.infer.protocol import LINKS
from benchmarks.infer.published import CHAPTER
from nescio._report import Case

__all__ = ["beside_chapter", "beside_spu", "select", "targets"]

_LOCAL, _LAN, _WAN = (name for name, _ in LINKS)
_COMPILE_SECONDS, _LAN_SECONDS, _POINTS, _TIMES = 60.0, 0.15, 0.3, 20.0
_OUR_NETWORK = "ResNet-32"


def select(cases: Sequence[Case], table: str, **fields: object) -> list[dict[str, Any]]:
    """Returns the cases of a table whose fields have some values."""
    wanted = {"table": table, **fields}
    return [one for one in cases if all(one.get(key) == own for key, own in wanted.items())]


def beside_chapter(cases: Sequence[Case]) -> Iterator[Case]:
    """Yields a row for each network: its sums, and what the chapter publishes."""
    for sums in select(cases, "sums"):
        name = sums["network"]
        (made,), chapter = select(cases, "networks", network=name), CHAPTER[name]
        yield {
            **sums,
            "lookups": made["lookups"],
            "chapter_relus": chapter.relus,
            "lookup_bytes": 1e6 * sums["online_mb"] / made["lookups"],
            "chapter_online_mb": chapter.online_mb,
            "online_ratio": chapter.online_mb / sums["online_mb"],
            "chapter_s": chapter.runtime_s,
            "local_s": sums[f"online_s, {_LOCAL}"],
            "lan_s": sums[f"online_s, {_LAN}"],
            "wan_s": sums[f"online_s, {_WAN}"],
            "chapter_tables_mb": float(chapter.tables_mb),
            "tables_ratio": chapter.tables_mb / sums["tables_mb"],
            "local_offline_s": sums[f"offline_s, {_LOCAL}"],
            "lan_offline_s": sums[f"offline_s, {_LAN}"],
            "wan_offline_s": sums[f"offline_s, {_WAN}"],
            "chapter_stored_mb": made["lookups"] * 2048 / 1e6,
        }


def beside_spu(cases: Sequence[Case]) -> Iterator[Case]:
    """Yields rows of SPU and of ours in the same run, over loopback, and their ratios."""
    for found in select(cases, "spu"):
        name = found["network"]
        sums = select(cases, "sums", network=name)
        if sums:
            yield _ours(name, sums[-1])
        if "failed" in found:
            yield {"network": name, "program": f"{found['program']}: {found['failed']}"}
            continue
        warm = found["calls"][-1] if len(found["calls"]) > 1 else None
        row: Case = {"network": name, "program": found["program"]}
        row |= {"first_s": found["calls"][0]["seconds"], "error": found["error"]}
        if warm is not None:
            row |= {"warm_s": warm["seconds"], "mb": warm["bytes"] / 1e6}
            row |= {"cpu_s": warm["cpu_seconds"]}
        if sums:
            row |= _ratios(row, _ours(name, sums[-1]))
        yield row


def _ours(name: str, sums: dict[str, Any]) -> Case:
    """Returns the row of ours: both phases of one inference, and the start of a session."""
    offline, online = sums[f"offline_s, {_LOCAL}"], sums[f"online_s, {_LOCAL}"]
    once = sums[f"offline_once_s, {_LOCAL}"]
    return {
        "network": name,
        "program": "nescio, both phases",
        "first_s": once + offline + online,
        "warm_s": offline + online,
        "online_s": online,
        "mb": sums["tables_mb"] + sums["linear_mb"] + sums["online_mb"],
        "cpu_s": sums["tables_cpu_s"] + sums["linear_cpu_s"],
    }


def _ratios(row: dict[str, Any], ours: dict[str, Any]) -> Case:
    found: Case = {"first_ratio": row["first_s"] / ours["first_s"]}
    if "warm_s" in row:
        found |= {"warm_ratio": row["warm_s"] / ours["warm_s"]}
        found |= {"online_ratio": row["warm_s"] / ours["online_s"]}
    return found


def targets(cases: Sequence[Case]) -> Iterator[Case]:
    """Yields the targets of this project for these networks, with what was found."""
    for sums in select(cases, "sums"):
        name = sums["network"]
        yield _target(f"{name}: online MB", CHAPTER[name].target_online_mb, sums["online_mb"])
        yield _target(
            f"{name}: table MB offline", CHAPTER[name].target_tables_mb, sums["tables_mb"]
        )
        if name == _OUR_NETWORK:
            lan = sums[f"online_s, {_LAN}"]
            yield _target(f"{name}: online s at {_LAN}", _LAN_SECONDS, lan)
    for made in select(cases, "networks", network=_OUR_NETWORK):
        compiled = made["compile_seconds"]
        yield _target(f"{_OUR_NETWORK}: compile and calibrate, s", _COMPILE_SECONDS, compiled)
    for own in select(cases, "quality", network=_OUR_NETWORK, table_bits=8):
        if own["right"] is not None:
            lost = 100 * (own["float_right"] - own["right"])
            yield _target(f"{_OUR_NETWORK}: points of accuracy lost at 8 bits", _POINTS, lost)
    for row in beside_spu(cases):
        if "warm_ratio" in row:
            what = f"{row['network']}: times as fast as SPU, both phases"
            yield _target(what, _TIMES, float(str(row["warm_ratio"])), least=True)


def _target(what: str, limit: float, found: float, *, least: bool = False) -> Case:
    met = found >= limit if least else found <= limit
    bound = f"at least {limit:g}" if least else f"at most {limit:g}"
    return {"target": what, "bound": bound, "found": found, "met": "yes" if met else "no"}
