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


def wire_case() -> dict[str, object]:
    """Build wire.json."""
    rows = [stream(f"row {i}", 6) for i in range(700)]
    params = pir.params(rows, [3], "<u2", "bit", "chacha20", "vector")
    indices = [0, 699, 42]
    roots = [(stream(f"root0 {i}", 16), stream(f"root1 {i}", 16)) for i in indices]
    queries = pir.queries(params, indices, roots)
    answers = [pir.answer(params, rows, query) for query in queries]
    assert pir.decode(params, *answers) == [rows[i] for i in indices]
    return {
        "params": pir.canonical_json(params),
        "id": pir.params_id(params).hex(),
        "rows": [row.hex() for row in rows],
        "indices": indices,
        "roots": [[root.hex() for root in pair] for pair in roots],
        "queries": [query.hex() for query in queries],
        "answers": [answer.hex() for answer in answers],
    }


def main() -> None:
    """Write all files."""
    nodes = (bytes(16), bytes(range(16)), stream("node", 16))
    contents = {
        "prg": [prg_case(g, node) for g in prg.GENERATORS.values() for node in nodes],
        "dpf": [dpf_case(shape) for shape in dpf_shapes()],
        "wire": wire_case(),
    }
    for name, content in contents.items():
        (FOLDER / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
