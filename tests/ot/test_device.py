"""The OT kernels of a device, compared bit for bit with the specifications.

The kernels run on the emulated devices everywhere, and on a card where there is one.
"""

import numpy as np
import pytest

import devices
from nescio import _core
from nescio._device import Device
from nescio.errors import ArgumentError
from ot.device_cases import (
    SEED,
    grown,
    integers,
    odd,
    random_blocks,
    specified_chi_sum,
    specified_ec,
    specified_primal,
)
from spec import ot_check, ot_hash, ot_trees


@pytest.fixture(scope="module", params=devices.ALL)
def device(request):
    """Each device."""
    named = Device.parse(request.param)
    return named.engine().OtDevice(named.number)


# Narrower than a warp, as wide as a tile, and wide enough for several nodes of a tree per thread.
TREES = [(1, 1), (3, 1), (5, 2), (40, 4), (3, 7), (2, 11), (1, 13)]


@pytest.mark.parametrize(("trees", "depth"), TREES)
def test_grown_trees(device, trees, depth, rng):
    seeds, delta, leaves, sums = grown(rng, trees, depth)
    found, found_sums = device.grow_trees(seeds, depth, delta, SEED)
    assert integers(found.to_host()) == leaves
    assert integers(found_sums) == sums


@pytest.mark.parametrize(("trees", "depth"), TREES)
def test_punctured_trees(device, trees, depth, rng):
    _, delta, leaves, sums = grown(rng, trees, depth)
    choices = rng.integers(0, 2, trees * depth, dtype=np.uint8)
    sides = [k ^ c * integers(delta)[0] for k, c in zip(sums, choices.tolist(), strict=True)]
    packed = np.array([[s & (1 << 64) - 1, s >> 64] for s in sides], np.uint64)
    found = integers(device.puncture_trees(packed, choices, depth, SEED).to_host())
    expected = []
    for tree in range(trees):
        own = slice(tree * depth, (tree + 1) * depth)
        expected += ot_trees.puncture(sides[own], choices[own].tolist(), SEED, tree)
    assert found == expected
    differences = [v ^ w for v, w in zip(leaves, found, strict=True)]
    assert sorted(differences) == [0] * (len(leaves) - trees) + integers(delta) * trees


@pytest.mark.parametrize("way", ["fused", "separate", "single"])
@pytest.mark.parametrize(("trees", "depth"), [(1, 1), (3, 1), (5, 2), (9, 4), (3, 7)])
def test_variants_of_growing_trees(device, way, trees, depth, rng):
    seeds, delta, leaves, sums = grown(rng, trees, depth)
    found, found_sums = device.grow_trees(seeds, depth, delta, SEED, way=way)
    assert (integers(found.to_host()), integers(found_sums)) == (leaves, sums)


@pytest.mark.parametrize("way", ["fused", "words", "separate"])
@pytest.mark.parametrize(("rows", "k", "first"), [(1, 1, 0), (57, 64, 3), (1100, 1001, 10**9)])
def test_primal_encoding(device, way, rows, k, first, rng):
    noise, seeds = random_blocks(rng, rows), random_blocks(rng, k)
    placed = device.upload(noise)
    device.encode_primal(placed, device.upload(seeds), SEED, first, way)
    expected = specified_primal(tuple(integers(noise)), tuple(integers(seeds)), first)
    assert integers(placed.to_host()) == expected


# One segment; one that ends within a step; a short last segment; several groups of segments.
CONVOLUTIONS = [(64, 200), (199, 200), (201, 200), (700, 25), (1003, 75), (2600, 50)]


@pytest.mark.parametrize(("outputs", "segment"), CONVOLUTIONS)
def test_expand_convolute_encoding(device, outputs, segment, rng):
    noise = random_blocks(rng, 2 * outputs)
    placed = device.upload(noise)
    device.encode_ec(placed, SEED, segment)
    expected = specified_ec(tuple(integers(noise)))
    assert integers(placed[:outputs].to_host()) == expected


@pytest.mark.parametrize("count", [1, 600])
@pytest.mark.parametrize("shift", [False, True])
def test_hash(device, count, shift, rng):
    blocks, delta = random_blocks(rng, count), random_blocks(rng, 1)[0]
    found = device.hash_blocks(
        device.upload(blocks), (1 << 40) + 7, 5, SEED, delta if shift else None
    )
    moved = integers(blocks ^ delta if shift else blocks)
    assert integers(found.to_host()) == [
        ot_hash.tccr(x, (1 << 40) + 7 + i, 5, SEED) for i, x in enumerate(moved)
    ]


@pytest.mark.parametrize("count", [0, 1, 31, 1200])
def test_the_sum_of_leaves_times_coefficients(device, count, rng):
    leaves = random_blocks(rng, count)
    placed = device.upload(leaves)
    expected = specified_chi_sum(tuple(integers(leaves)))
    assert integers(device.chi_sum(placed, SEED)) == [expected]
    parts = [device.chi_sum(placed[: count // 3], SEED)]
    parts.append(device.chi_sum(placed[count // 3 :], SEED, count // 3))
    assert integers(parts[0] ^ parts[1]) == [expected]


def test_products_of_every_bit(device):
    """Each power of X times a coefficient: every word, shift and remainder of a product."""
    powers = np.zeros((128, 2), np.uint64)
    for i in range(128):
        powers[i, i // 64] = np.uint64(1) << np.uint64(i % 64)
    placed = device.upload(powers)
    for i in range(0, 128, 5):
        found = integers(device.chi_sum(placed[i : i + 1], SEED, 1000 + i))
        assert found == [ot_check.multiply(ot_check.chi(SEED, 1000 + i), 1 << i)]


def test_coefficients_at_positions(device):
    positions = np.array([0, 5, 1 << 40, 5], np.uint64)
    found = device.chi_at(positions, SEED)
    assert integers(found) == [ot_check.chi(SEED, int(position)) for position in positions]
    assert device.chi_at(positions[:0], SEED).shape == (0, 2)


def test_lowest_bits(device, rng):
    blocks = random_blocks(rng, 777)
    assert np.array_equal(device.low_bits(device.upload(blocks)), blocks[:, 0] & 1)


@pytest.mark.parametrize("row_bytes", [0, 1, 5, 160])
def test_transposed_bits(device, row_bytes, rng):
    rows = rng.integers(0, 256, (128, row_bytes), dtype=np.uint8)
    found = device.transpose_bits(rows).to_host()
    bits = np.unpackbits(rows, axis=1, bitorder="little")
    columns = np.packbits(np.ascontiguousarray(bits.T), axis=1, bitorder="little")
    assert np.array_equal(found, columns.view(np.uint64))


def test_parts_of_blocks(device, rng):
    blocks = random_blocks(rng, 100)
    placed = device.upload(blocks)
    assert placed.shape == (100, 2)
    part = placed[10:60][5:]
    del placed
    assert len(part) == 45
    assert np.array_equal(part.to_host(), blocks[15:60])
    both = device.join([part, device.empty(3), part[:0], part[:2]])
    assert np.array_equal(
        both.to_host(), np.concatenate([blocks[15:60], np.zeros((3, 2), np.uint64), blocks[15:17]])
    )


def test_memory_is_used_again_but_not_under_a_reader(device, rng):
    first = random_blocks(rng, 1000)
    shared = np.from_dlpack(device.upload(first)) if is_emulated(device) else None
    copied = device.upload(first).to_host()
    for _ in range(3):
        device.upload(random_blocks(rng, 1000))
    assert np.array_equal(copied, first)
    assert shared is None or np.array_equal(shared, first)


def is_emulated(device):
    return type(device).__module__.endswith("_emulated")


def test_other_libraries_take_blocks_as_they_are(device, rng):
    torch = pytest.importorskip("torch")
    blocks = random_blocks(rng, 10)
    placed = device.upload(blocks)
    if not is_emulated(device) and not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    tensor = torch.from_dlpack(placed[2:7])
    assert tensor.shape == (5, 2)
    assert np.array_equal(tensor.cpu().view(torch.int64).numpy().view(np.uint64), blocks[2:7])
    tensor.zero_()
    assert not placed[2:7].to_host().any()
    assert np.array_equal(placed[:2].to_host(), blocks[:2])
    del placed
    assert not tensor.cpu().view(torch.int64).any()  # PyTorch has no `any` of uint64 on a card


def test_copies_for_the_host(device, rng):
    blocks = random_blocks(rng, 10)
    placed = device.upload(blocks)
    copy = np.from_dlpack(placed, device="cpu", copy=True)
    assert np.array_equal(copy, blocks)
    with pytest.raises(BufferError, match="only to the host"):
        placed.__dlpack__(dl_device=(2, 99))


def test_sizes_that_cannot_be(device, rng):
    some, delta = device.upload(random_blocks(rng, 200)), odd(random_blocks(rng, 1)[0])
    for depth in (0, 33):
        with pytest.raises(ArgumentError, match=f"a tree: found {depth}, expected 1 to 32"):
            device.grow_trees(random_blocks(rng, 1), depth, delta, SEED)
    with pytest.raises(ArgumentError, match="way: found 'slow'"):
        device.grow_trees(random_blocks(rng, 1), 3, delta, SEED, way="slow")
    for sides, choices in ((7, 7), (6, 5)):
        with pytest.raises(ArgumentError, match="a multiple of the depth"):
            device.puncture_trees(random_blocks(rng, sides), np.zeros(choices, np.uint8), 3, SEED)
    for count in (126, 131):
        with pytest.raises(
            ArgumentError, match=f"found {count}, expected an even number, from 128"
        ):
            device.encode_ec(some[:count], SEED)
    for segment in (0, 26):
        message = f"segment: found {segment}, expected a positive multiple of 25"
        with pytest.raises(ArgumentError, match=message):
            device.encode_ec(some, SEED, segment)
    with pytest.raises(ArgumentError, match=r"short secret: found 0, expected 1 to"):
        device.encode_primal(some, some[:0], SEED)
    with pytest.raises(ArgumentError, match=r"a code has 2\^64 / 10 rows"):
        device.encode_primal(some, some, SEED, (1 << 64) // 10)
    with pytest.raises(ArgumentError, match="a seed: found 15 bytes, expected 16"):
        device.chi_sum(some, SEED[:15])
    with pytest.raises(ArgumentError, match="rows of bits: found 127, expected 128"):
        device.transpose_bits(np.zeros((127, 1), np.uint8))
    with pytest.raises(ArgumentError, match="must have step 1"):
        some[::2]


def test_blocks_of_another_device(rng):
    engine = Device.parse("emulated").engine()
    first, second = engine.OtDevice(0), engine.OtDevice(1)
    away = second.upload(random_blocks(rng, 130))
    for use in (
        lambda: first.encode_ec(away, SEED),
        lambda: first.hash_blocks(away, 0, 0, SEED),
        lambda: first.encode_primal(first.empty(3), away, SEED),
    ):
        with pytest.raises(ArgumentError, match="copy them to that device with join"):
            use()
    first.hash_blocks(first.join([away]), 0, 0, SEED)


@pytest.mark.parametrize("device", devices.FIRST, indirect=True)
def test_sizes_that_the_specification_is_slow_for(device, rng, pool):
    """Both parties' steps, compared with the CPU: many tiles, segments of their usual length."""
    trees, depth, k = (5, 13, 3000) if is_emulated(device) else (1203, 13, 452_000)
    seeds, delta = random_blocks(rng, trees), odd(random_blocks(rng, 1)[0])
    v, sums = _core.grow_trees(seeds, depth, delta, SEED, pool)
    leaves, own_sums = device.grow_trees(seeds, depth, delta, SEED)
    assert np.array_equal(own_sums, sums)
    assert np.array_equal(leaves.to_host(), v)

    choices = rng.integers(0, 2, trees * depth, dtype=np.uint8)
    sides = sums ^ delta * choices[:, np.newaxis]
    w = _core.puncture_trees(sides, choices, depth, SEED, pool)
    punctured = device.puncture_trees(sides, choices, depth, SEED)
    assert np.array_equal(punctured.to_host(), w)
    assert np.array_equal(device.chi_sum(punctured, SEED), _core.chi_sum(w, SEED, pool))

    short = random_blocks(rng, k)
    _core.encode_primal(v, short, SEED, 11, pool)
    device.encode_primal(leaves, device.upload(short), SEED, 11)
    assert np.array_equal(leaves.to_host(), v)
    hashed = device.hash_blocks(leaves, 1 << 33, 0, SEED, delta).to_host()
    assert np.array_equal(hashed, _core.hash_blocks(v, 1 << 33, 0, SEED, pool, delta))

    outputs = len(w) // 2 - 7
    _core.encode_ec(w[: 2 * outputs], SEED, pool)
    device.encode_ec(punctured[: 2 * outputs], SEED)
    assert np.array_equal(punctured[:outputs].to_host(), w[:outputs])
