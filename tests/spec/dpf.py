"""Distributed point functions in plain Python: the executable specification of `nescio.dpf`.

Boyle, Gilboa and Ishai, "Function Secret Sharing: Improvements and Extensions" (2016), Figure 1 and
section 3.2.1, with leaves of 64 bytes and trees of the generator's arity. Every function follows
its definition, without optimization; the engine must agree bit for bit.
"""

from dataclasses import dataclass

from .prg import GENERATORS, Generator, control_bit, xor

OUTPUT_BITS = {"bit": 1, "u8": 8, "u32": 32, "u64": 64, "u128": 128}
OUTPUT_NUMBERS = {name: number for number, name in enumerate(OUTPUT_BITS)}
LEAF_BITS = 512


@dataclass(frozen=True)
class Shape:
    """The public parameters of both keys."""

    domain: int
    output: str
    generator: str

    @property
    def prg(self) -> Generator:
        """The generator itself."""
        return GENERATORS[self.generator]

    @property
    def elements(self) -> int:
        """Shares in a leaf."""
        return LEAF_BITS // OUTPUT_BITS[self.output]

    @property
    def depth(self) -> int:
        """The smallest depth whose leaves hold the domain."""
        depth = 0
        while self.prg.arity**depth * self.elements < self.domain:
            depth += 1
        return depth

    @property
    def key_bytes(self) -> int:
        """The length of a serialized key."""
        return 32 + 16 * (self.prg.arity - 1) * self.depth + -(-self.depth // 8) + 64

    def path(self, point: int) -> list[int]:
        """Return the index of the child at each level of the path from the root to the leaf."""
        leaf, digits = point // self.elements, []
        for _ in range(self.depth):
            leaf, digit = divmod(leaf, self.prg.arity)
            digits.append(digit)
        return digits[::-1]


@dataclass(frozen=True)
class Key:
    """One party's key: a root seed, and corrections that both keys share."""

    shape: Shape
    party: int
    root: bytes
    corrections: list[list[bytes]]
    leaf_correction: list[int]


def with_control_bit(node: bytes, bit: int) -> bytes:
    """Return the node with its control bit set to `bit`."""
    return bytes([node[0] & 0xFE | bit]) + node[1:]


def elements_of(leaf: bytes, output: str) -> list[int]:
    """Convert a leaf to integers: little-endian words, or bits from the lowest."""
    bits = OUTPUT_BITS[output]
    value = int.from_bytes(leaf, "little")
    return [value >> i & (1 << bits) - 1 for i in range(0, LEAF_BITS, bits)]


def bytes_of(elements: list[int], output: str) -> bytes:
    """Convert integers to a leaf: the inverse of `elements_of`."""
    bits = OUTPUT_BITS[output]
    return sum(e << i * bits for i, e in enumerate(elements)).to_bytes(LEAF_BITS // 8, "little")


def generate(shape: Shape, alpha: int, payload: int, roots: tuple[bytes, bytes]) -> tuple[Key, Key]:
    """Gen: return keys whose outputs sum to `payload` at `alpha` and to 0 elsewhere."""
    prg = shape.prg
    own = [with_control_bit(root, party) for party, root in enumerate(roots)]
    first = tuple(own)
    corrections = []
    for digit in shape.path(alpha):
        children = [prg.children(node) for node in own]
        difference = [xor(a, b) for a, b in zip(*children, strict=True)]
        total = bytes(16)
        for d in difference:
            total = xor(total, d)
        # Correct the children so that both parties have equal nodes except for the child on the
        # path, which differs by `total` and has different control bits.
        level = [
            xor(d, with_control_bit(total, 1)) if j == digit else d
            for j, d in enumerate(difference)
        ]
        corrections.append(level)
        own = [corrected(children[b][digit], own[b], level[digit]) for b in range(2)]
    leaves = [elements_of(prg.leaf(node), shape.output) for node in own]
    target = [payload if i == alpha % shape.elements else 0 for i in range(shape.elements)]
    modulus = 1 << OUTPUT_BITS[shape.output]
    sign = -1 if control_bit(own[1]) else 1
    leaf_correction = [
        sign * (y - a + b) % modulus for y, a, b in zip(target, *leaves, strict=True)
    ]
    keys = [Key(shape, b, first[b], corrections, leaf_correction) for b in range(2)]
    return keys[0], keys[1]


def corrected(child: bytes, parent: bytes, correction: bytes) -> bytes:
    """Return the child, corrected if the control bit of the parent is set."""
    return xor(child, correction) if control_bit(parent) else child


def evaluate_leaf(key: Key, node: bytes) -> list[int]:
    """Convert a node of the lowest level to its shares."""
    modulus = 1 << OUTPUT_BITS[key.shape.output]
    own = elements_of(key.shape.prg.leaf(node), key.shape.output)
    sign = -1 if key.party else 1
    return [
        sign * (x + control_bit(node) * c) % modulus
        for x, c in zip(own, key.leaf_correction, strict=True)
    ]


def evaluate(key: Key, point: int) -> int:
    """Eval: return the key's share at one point."""
    node = key.root
    for digit, correction in zip(key.shape.path(point), key.corrections, strict=True):
        node = corrected(key.shape.prg.children(node)[digit], node, correction[digit])
    return evaluate_leaf(key, node)[point % key.shape.elements]


def evaluate_all(key: Key) -> list[int]:
    """EvalAll: return the key's share at every point, level by level."""
    nodes = [key.root]
    for level, correction in enumerate(key.corrections):
        wanted = -(-key.shape.domain // key.shape.elements)
        wanted = -(-wanted // key.shape.prg.arity ** (key.shape.depth - level - 1))
        nodes = [
            corrected(child, node, c)
            for node in nodes
            for child, c in zip(key.shape.prg.children(node), correction, strict=True)
        ][:wanted]
    shares = [share for node in nodes for share in evaluate_leaf(key, node)]
    return shares[: key.shape.domain]


def combine(output: str, a: int, b: int) -> int:
    """Return the sum of two shares; for bits (mod 2) it is their XOR."""
    return (a + b) % (1 << OUTPUT_BITS[output])


def serialize(key: Key) -> bytes:
    """Serialize a key; see docs/wire-format.md."""
    shape = key.shape
    header = (
        b"NK\x01"
        + bytes([shape.prg.number, OUTPUT_NUMBERS[shape.output], key.party, 0, 0])
        + shape.domain.to_bytes(8, "little")
    )
    blocks = b"".join(c for level in key.corrections for c in level[:-1])
    bits = sum(control_bit(level[-1]) << i for i, level in enumerate(key.corrections))
    packed = bits.to_bytes(-(-shape.depth // 8), "little")
    return header + key.root + blocks + packed + bytes_of(key.leaf_correction, shape.output)


def parse(data: bytes) -> Key:
    """Parse a key: the inverse of `serialize`."""
    names = {g.number: g.name for g in GENERATORS.values()}
    outputs = {number: name for name, number in OUTPUT_NUMBERS.items()}
    shape = Shape(int.from_bytes(data[8:16], "little"), outputs[data[4]], names[data[3]])
    sent = shape.prg.arity - 1
    end = 32 + 16 * sent * shape.depth
    bits = int.from_bytes(data[end : end + -(-shape.depth // 8)], "little")
    corrections = []
    for level in range(shape.depth):
        start = 32 + 16 * sent * level
        blocks = [data[start + 16 * j : start + 16 * (j + 1)] for j in range(sent)]
        last = bytes(16)
        for block in blocks:
            last = xor(last, block)
        corrections.append([*blocks, with_control_bit(last, bits >> level & 1)])
    leaf_correction = elements_of(data[-64:], shape.output)
    return Key(shape, data[5], data[16:32], corrections, leaf_correction)
