"""Write the test vectors from the executable specification.

python tests/vectors/make.py
"""

import hashlib
import itertools
import json
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent))

import make_batch  # noqa: E402 - found next to this file
import make_keyed  # noqa: E402
import make_lut  # noqa: E402
import make_rlwe  # noqa: E402

from spec import dpf, pir, prg  # noqa: E402 - found next to this file

DOMAINS = (1, 2, 100, 512, 513, 5000)

# Generators for serving tables are tested with all outputs and domains. The others are tested with
# domains whose trees have no level, one level and several levels.
COMMON = ("aes128", "chacha20")
OTHERS_OUTPUTS = ("bit", "u32")
OTHERS_DOMAINS = (2, 513, 5000)


def stream(label: str, count: int) -> bytes:
    """Return reproducible bytes."""
    return hashlib.shake_128(f"nescio test vector {label}".encode()).digest(count)


def prg_case(generator: prg.Generator, node: bytes) -> dict[str, object]:
    """Build one case of prg.json."""
    return {
        "generator": generator.name,
        "number": generator.number,
        "node": node.hex(),
        "children": [child.hex() for child in generator.children(node)],
        "leaf": generator.leaf(node).hex(),
    }


def dpf_shapes() -> list[dpf.Shape]:
    """List the shapes of dpf.json."""
    common = itertools.product(COMMON, dpf.OUTPUT_BITS, DOMAINS)
    others = [g for g in prg.GENERATORS if g not in COMMON]
    more = itertools.product(others, OTHERS_OUTPUTS, OTHERS_DOMAINS)
    return [dpf.Shape(domain, output, name) for name, output, domain in (*common, *more)]


def dpf_case(shape: dpf.Shape) -> dict[str, object]:
    """Build one case of dpf.json."""
    label = f"{shape.domain} {shape.output} {shape.generator}"
    noise = stream(label, 64)
    alpha = int.from_bytes(noise[:8], "little") % shape.domain
    bits = dpf.OUTPUT_BITS[shape.output]
    payload = int.from_bytes(noise[8:24], "little") % (1 << bits) if bits > 1 else 1
    roots = (noise[24:40], noise[40:56])
    keys = dpf.generate(shape, alpha, payload, roots)
    points = sorted({0, alpha, shape.domain - 1, shape.domain // 3})
    shares = [dpf.evaluate_all(key) for key in keys]
    return {
        "domain": shape.domain,
        "output": shape.output,
        "generator": shape.generator,
        "alpha": str(alpha),
        "payload": str(payload),
        "roots": [root.hex() for root in roots],
        "keys": [dpf.serialize(key).hex() for key in keys],
        "points": points,
        "shares": [[str(party[point]) for point in points] for party in shares],
        "digests": [hashlib.sha256(packed(party, bits)).hexdigest() for party in shares],
    }


def packed(shares: list[int], bits: int) -> bytes:
    """Pack shares contiguously, the lowest bit first."""
    value = sum(share << i * bits for i, share in enumerate(shares))
    return value.to_bytes(-(-len(shares) * bits // 8), "little")


# Records of 32 rows, and of one; no hash table, one and two. The last is also looked up unchecked.
WIRE_CASES = (
    (700, "<u2", [3], "bit", [0, 699, 42]),
    (5000, "<f4", [33], "u32", [4999, 17]),
    (66000, "|u1", [129], "bit", [0, 65999]),
)

# Two bins of one size with a key each, one of another size with two keys; one hash table.
BINS = [[2, 8000, 1], [1, 1600, 2]]
BIN_LOOKUPS = [[0, 7999, 1599, 0], [17, 256, 5, 5]]


def wire_case(
    count: int,
    dtype: str,
    shape: list[int],
    output: str,
    lookups: list[int] | list[list[int]],
    *,
    checked: bool,
    bins: pir.Bins | None = None,
    layout: bytes = b"",
) -> dict[str, object]:
    """Build one case of wire.json."""
    row_bytes = int(dtype[2:]) * shape[0]
    rows = [stream(f"row {i}", row_bytes) for i in range(count)]
    record_rows = pir.usual_record_rows(row_bytes)
    params = pir.params(rows, shape, dtype, output, "chacha20", "vector", record_rows, bins, layout)
    places = [own if isinstance(own, list) else [own] for own in lookups]
    tables = pir.shapes(params, checked)
    roots = [
        [
            [
                (stream(f"root0 {i} {t} {k}", 16), stream(f"root1 {i} {t} {k}", 16))
                for k in range(len(own))
            ]
            for t, own in enumerate(tables)
        ]
        for i in range(len(places))
    ]
    queries = pir.queries(params, places, roots)
    answers = [pir.answer(params, rows, query) for query in queries]
    records, above = pir.decode(params, row_bytes, *answers)
    flat = [place for own in places for place in own]
    found = [pir.row_of(params, r, i) for r, i in zip(records, flat, strict=True)]
    contents = pir.cut(rows, params["bins"])
    expected = [contents[b] for _ in places for b in pir.slot_bins(params["bins"])]
    assert found == [content[i] for content, i in zip(expected, flat, strict=True)]
    tops = pir.hash_tables(rows, params)[1]
    assert not checked or pir.check(pir.numbers_of(params, places), records, above, tops)
    return {
        "params": pir.canonical_json(params),
        "id": pir.params_id(params).hex(),
        "checked": checked,
        "tops": hashlib.sha256(pir.tops_message(params, tops)).hexdigest(),
        "layout": layout.decode(),
        "lookups": lookups,
        "found": [row.hex() for row in found],
        "roots": [
            [[[root.hex() for root in pair] for pair in table] for table in own] for own in roots
        ],
        "queries": [query.hex() for query in queries],
        "answers": [answer.hex() for answer in answers],
    }


def tops_case() -> dict[str, object]:
    """Build the case of a difference: row 4,321 of 5,000 changes."""
    rows = [stream(f"row {i}", 6) for i in range(5000)]
    before = pir.params(rows, [3], "<u2", "bit", "chacha20", "vector", 1)
    old = pir.hash_tables(rows, before)[1]
    rows[4321] = stream("another row", 6)
    params = pir.params(rows, [3], "<u2", "bit", "chacha20", "vector+1", 1)
    new = pir.hash_tables(rows, params)[1]
    return {
        "row": 4321,
        "bytes": rows[4321].hex(),
        "params": pir.canonical_json(params),
        "change": pir.tops_change(params, old, new).hex(),
    }


def main() -> None:
    """Write all files."""
    nodes = (bytes(16), bytes(range(16)), stream("node", 16))
    contents = {
        "prg": [prg_case(g, node) for g in prg.GENERATORS.values() for node in nodes],
        "dpf": [dpf_case(shape) for shape in dpf_shapes()],
        "batch": make_batch.content(),
        "keyed": make_keyed.content(),
        "lut": make_lut.content(),
        "rlwe": make_rlwe.content(),
        "wire": {
            "lookups": [
                *(wire_case(*case, checked=True) for case in WIRE_CASES),
                wire_case(*WIRE_CASES[-1], checked=False),
                *(
                    wire_case(
                        17600,
                        "|u1",
                        [129],
                        "u8",
                        BIN_LOOKUPS,
                        checked=checked,
                        bins=BINS,
                        layout=b"a layout",
                    )
                    for checked in (True, False)
                ),
            ],
            "tops": tops_case(),
        },
    }
    for name, content in contents.items():
        (FOLDER / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
