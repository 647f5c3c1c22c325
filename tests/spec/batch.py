"""Batch layouts in plain Python: where rows lie, which slots fetch them, the bytes of a layout.

A layout cuts a table into bins. A *hot part* has the popular rows again, and a *full part* has all
rows once for each of its hashes. A lookup sends a fixed number of keys to each bin: a *slot* is one
of them. See docs/wire-format.md.
"""

import base64
import json
from dataclasses import dataclass, field
from math import isqrt

WORD = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
ROUNDS = 6


@dataclass
class Part:
    """Bins of one size, so many for each hash, and the keys of a lookup for each of them."""

    bins: int
    keys: int = 1


@dataclass
class Layout:
    """A table's layout. `neighbors` lists, for some rows, the rows that arrive with them."""

    rows: int
    full: Part
    hashes: int = 1
    seed: int = 0
    hot: Part | None = None
    hot_rows: list[int] = field(default_factory=list)  # ascending
    together: int = 0
    neighbors: dict[int, list[int]] = field(default_factory=dict)  # at most `together`, ascending
    lookups: int = 0


# ---- Where rows lie ------------------------------------------------------------------------------


def mix(word: int) -> int:
    """Mix a word of 64 bits: the finalizer of SplitMix64 (Steele, Lea and Flood 2014)."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB & WORD
    return word ^ word >> 31


def sides(rows: int) -> tuple[int, int]:
    """Return the sides of the rectangle that is permuted: it has at least `rows` places."""
    a = isqrt(rows - 1) + 1
    return a, -(-rows // a)


def permute(row: int, rows: int, seed: int, number: int) -> int:
    """Return the position of a row: a Feistel network on the rectangle's two coordinates."""
    a, b = sides(rows)
    left, right = divmod(row, b)
    for step in range(ROUNDS):
        key = mix(seed + (number * ROUNDS + step + 1) * GOLDEN & WORD)
        half = right if step % 2 == 0 else left
        high = mix(key + half * GOLDEN & WORD) >> 32
        if step % 2 == 0:
            left = (left + (high * a >> 32)) % a
        else:
            right = (right + (high * b >> 32)) % b
    return left * b + right


def bin_rows(rows: int, bins: int) -> int:
    """Return the rows of each bin into which a permuted part is cut; some stay empty."""
    a, b = sides(rows)
    return -(-a * b // bins)


def bins(layout: Layout) -> list[tuple[int, int, int]]:
    """Return the groups of bins: how many, their rows, and the keys of a lookup for each."""
    groups = []
    if layout.hot:
        rows = bin_rows(len(layout.hot_rows), layout.hot.bins)
        groups.append((layout.hot.bins, rows, layout.hot.keys))
    rows = bin_rows(layout.rows, layout.full.bins)
    groups.append((layout.hashes * layout.full.bins, rows, layout.full.keys))
    return groups


def places(layout: Layout, row: int) -> list[tuple[int, int] | None]:
    """Return the bins and places of a row, the preferred one first; None if it is not hot."""
    found: list[tuple[int, int] | None] = []
    hot_bins = 0
    if layout.hot:
        hot_bins = layout.hot.bins
        if row in layout.hot_rows:
            rank = layout.hot_rows.index(row)
            position = permute(rank, len(layout.hot_rows), layout.seed, 0)
            found.append((position % hot_bins, position // hot_bins))
        else:
            found.append(None)
    for number in range(layout.hashes):
        position = permute(row, layout.rows, layout.seed, number + 1)
        first = hot_bins + number * layout.full.bins
        found.append((first + position % layout.full.bins, position // layout.full.bins))
    return found


def cut(table: list[bytes], layout: Layout) -> list[bytes]:
    """Return the rows of the cut table, bin by bin: each row with the rows that arrive with it."""
    groups, width = bins(layout), len(table[0])
    sizes = [rows for count, rows, _ in groups for _ in range(count)]
    cells = [[bytes(width * (1 + layout.together))] * size for size in sizes]
    for row in range(layout.rows):
        content = [table[row], *(table[near] for near in layout.neighbors.get(row, []))]
        joined = b"".join(content).ljust(width * (1 + layout.together), b"\0")
        for place in places(layout, row):
            if place:
                cells[place[0]][place[1]] = joined
    return [cell for own in cells for cell in own]


# ---- Which slots fetch them ----------------------------------------------------------------------

DROPPED, COVERED = -1, -2


def capacities(layout: Layout) -> list[int]:
    """Return the slots of each bin."""
    return [keys for count, _, keys in bins(layout) for _ in range(count)]


def assign(
    candidates: list[list[int]], capacity: list[int], together: list[list[int]]
) -> list[int]:
    """Assign the accesses of one set to bins.

    Access i may use any bin of `candidates[i]` (-1: none), the first of them by preference, and
    brings the accesses `together[i]` (-1: none). The access that brings the most others which are
    still without a bin and not brought is next; of equal ones, the first. It gets a bin if there is
    an augmenting path, the shortest one, and no access before it loses its own. Return for each
    access the number of the candidate that it uses, DROPPED, or COVERED if it has none and another
    access brings it.
    """
    holders: list[list[int]] = [[] for _ in capacity]  # the accesses that each bin serves
    chosen = [DROPPED] * len(candidates)
    brought: set[int] = set()

    def gain(access: int) -> int:
        wanted = [i for i in together[access] if i >= 0 and i not in brought and chosen[i] < 0]
        return len(wanted)

    left = list(range(len(candidates)))
    while left:
        access = max(left, key=gain)
        left.remove(access)
        if access not in brought and augment(access, candidates, capacity, holders, chosen):
            brought.update(other for other in together[access] if other >= 0)
    return [
        COVERED if choice == DROPPED and access in brought else choice
        for access, choice in enumerate(chosen)
    ]


def augment(
    access: int,
    candidates: list[list[int]],
    capacity: list[int],
    holders: list[list[int]],
    chosen: list[int],
) -> bool:
    """Give an access a bin, and other bins to some accesses that have one (breadth first)."""
    via: dict[int, tuple[int, int]] = {}  # for each bin: the access that would enter it, and how
    waiting = [access]
    for mover in waiting:
        for choice, bin_ in enumerate(candidates[mover]):
            if bin_ < 0 or bin_ in via:
                continue
            via[bin_] = mover, choice
            if len(holders[bin_]) < capacity[bin_]:
                holders[bin_].append(DROPPED)
                move(bin_, via, candidates, holders, chosen)
                return True
            waiting += holders[bin_]
    return False


def move(
    bin_: int,
    via: dict[int, tuple[int, int]],
    candidates: list[list[int]],
    holders: list[list[int]],
    chosen: list[int],
) -> None:
    """Move accesses along a path that ends in a bin, whose last holder is a placeholder."""
    at = len(holders[bin_]) - 1
    while True:
        mover, choice = via[bin_]
        before = chosen[mover]
        holders[bin_][at] = mover
        chosen[mover] = choice
        if before == DROPPED:
            return
        left = candidates[mover][before]
        at = holders[left].index(mover)  # an access holds at most one slot, unless it moves
        bin_ = left


# ---- Which rows occur together -------------------------------------------------------------------


def count_pairs(
    sets: list[list[int]], users: list[int], limit: int, count: int, min_users: int
) -> list[list[int]]:
    """Return, for each row below `limit`, the `count` rows that most sets have together with it.

    Only pairs that sets of at least `min_users` users have count. Ties go to the smaller row; -1
    stands for none.
    """
    pairs = list(zip(sets, users, strict=True))
    found = []
    for row in range(limit):
        having = [(set(rows) - {row}, user) for rows, user in pairs if row in rows]
        owners = {other: {u for rows, u in having if other in rows} for other in range(limit)}
        often = [other for other in range(limit) if len(owners[other]) >= max(1, min_users)]
        often.sort(key=lambda other: (-sum(other in rows for rows, _ in having), other))
        found.append((often + [-1] * count)[:count])
    return found


# ---- The bytes of a layout -----------------------------------------------------------------------


def packed(values: list[int], width: int) -> bytes:
    """Pack numbers of `width` bits, lowest bit first; zeros fill the last byte."""
    bits = sum(value << i * width for i, value in enumerate(values))
    return bits.to_bytes(-(-len(values) * width // 8), "little")


def elias_fano(values: list[int], limit: int) -> bytes:
    """Encode ascending numbers below `limit`: their low bits, then their high bits in unary.

    Peter Elias (1974) and Robert Fano (1971). Bit high[i] + i of the second part is set.
    """
    low = max(0, (limit // len(values)).bit_length() - 1)
    high = [value >> low for value in values]
    size = len(values) + (limit - 1 >> low)
    unary = sum(1 << at + i for i, at in enumerate(high))
    first = packed([value & (1 << low) - 1 for value in values], low)
    return first + unary.to_bytes(-(-size // 8), "little")


def to_bytes(layout: Layout) -> bytes:
    """Return the bytes of a layout: JSON with sorted names, no spaces, ASCII."""
    hot = together = None
    if layout.hot:
        coded = base64.b64encode(elias_fano(layout.hot_rows, layout.rows)).decode()
        hot = {
            "bins": layout.hot.bins,
            "count": len(layout.hot_rows),
            "keys": layout.hot.keys,
            "rows": coded,
        }
    if layout.together:
        owners = sorted(layout.neighbors)
        width = layout.rows.bit_length()
        none = [layout.rows] * layout.together
        near = [n for row in owners for n in (layout.neighbors[row] + none)[: layout.together]]
        together = {
            "count": layout.together,
            "neighbors": base64.b64encode(packed(near, width)).decode(),
            "owners": len(owners),
            "rows": base64.b64encode(elias_fano(owners, layout.rows)).decode(),
        }
    fields = {
        "format": 1,
        "full": {
            "bins": layout.full.bins,
            "hashes": layout.hashes,
            "keys": layout.full.keys,
            "seed": layout.seed,
        },
        "hot": hot,
        "kind": "batch",
        "lookups": layout.lookups,
        "rows": layout.rows,
        "together": together,
    }
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
