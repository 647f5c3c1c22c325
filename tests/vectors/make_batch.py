"""The test vectors of batch layouts, which make.py writes to batch.json."""

import hashlib

from spec import batch


def drawn(label: str, count: int, limit: int) -> list[int]:
    """Return different reproducible numbers below a limit, ascending."""
    noise = hashlib.shake_128(f"nescio test vector {label}".encode()).digest(16 * count)
    words = [int.from_bytes(noise[8 * i : 8 * i + 8], "little") for i in range(2 * count)]
    return sorted(list(dict.fromkeys(word % limit for word in words))[:count])


def layouts() -> list[batch.Layout]:
    """Return layouts of all kinds."""
    hot = drawn("hot", 300, 5000)
    owners = drawn("owners", 40, 5000)
    near = {
        row: [other for other in drawn(f"near {row}", 1 + row % 3, 5000) if other != row]
        for row in owners
    }
    full = batch.Part(16)
    return [
        batch.Layout(1, batch.Part(1)),
        batch.Layout(100, batch.Part(1, 3), lookups=3),
        batch.Layout(5000, batch.Part(14), hashes=4, seed=2**32 - 1, lookups=32),
        batch.Layout(5000, full, seed=7, hot=batch.Part(4, 2), hot_rows=hot),
        batch.Layout(
            5000,
            full,
            hot=batch.Part(3),
            hot_rows=hot,
            together=3,
            neighbors={row: own for row, own in near.items() if own},
        ),
        batch.Layout(2**40, batch.Part(4096), seed=1),
    ]


def case(layout: batch.Layout) -> dict[str, object]:
    """Build the case of a layout."""
    text = batch.to_bytes(layout)
    rows = sorted(
        {
            *drawn(f"rows of {len(text)}", 8, layout.rows),
            *(0, layout.rows - 1),
            *layout.hot_rows[:3],
            *list(layout.neighbors)[:3],
        }
    )
    return {
        "layout": text.decode(),
        "digest": hashlib.sha256(text).hexdigest(),
        "bins": batch.bins(layout),
        "rows": rows,
        "places": [batch.places(layout, row) for row in rows],
        "neighbors": [layout.neighbors.get(row, []) for row in rows],
    }


def content() -> list[dict[str, object]]:
    """Build batch.json."""
    return [case(layout) for layout in layouts()]
