"""OT kernels on one device and on several: the same results, bit for bit."""

import numpy as np
import pytest

import devices
from nescio.errors import ArgumentError, ResourceError
from nescio.ot.device import DeviceBlocks, DeviceKernels
from ot.device_cases import SEED, grown, integers, random_blocks

CARD = pytest.param([devices.CARD or "cuda"], marks=(pytest.mark.gpu, devices.no_card))
SEVERAL = [["emulated"], ["emulated:1", "emulated"], list(devices.EMULATED), CARD]


@pytest.fixture(scope="module", params=SEVERAL, ids=["one", "two", "three", "card"])
def kernels(request):
    """Kernels on one, two and three devices, and on a GPU."""
    return DeviceKernels(request.param)


@pytest.fixture(scope="module")
def one():
    """Kernels on one device, for comparison."""
    return DeviceKernels(["emulated"])


@pytest.mark.parametrize("trees", [0, 1, 2, 7])
def test_trees_are_divided(kernels, trees, rng):
    seeds, delta, leaves, sums = grown(rng, trees, 4)
    found, found_sums = kernels.grow_trees(seeds, 4, delta, SEED)
    assert found.shape == (16 * trees, 2)
    assert (integers(found.to_host()), integers(found_sums)) == (leaves, sums)
    assert len(found.parts) == min(trees, len(kernels.devices))
    choices = rng.integers(0, 2, 4 * trees, dtype=np.uint8)
    sides = found_sums ^ delta * choices[:, np.newaxis]
    punctured = integers(kernels.puncture_trees(sides, choices, 4, SEED).to_host())
    differences = [v ^ w for v, w in zip(leaves, punctured, strict=True)]
    assert sorted(differences) == [0] * (15 * trees) + integers(delta) * trees


def test_what_follows_trees_works_on_what_each_device_holds(kernels, one, rng):
    seeds, delta, _, _ = grown(rng, 5, 5)
    short = random_blocks(rng, 100)
    results = []
    for some in (one, kernels):
        noise = some.grow_trees(seeds, 5, delta, SEED)[0][3:150]
        encoded = some.encode_primal(noise, some.upload(short), SEED, 17)
        hashed = some.hash_blocks(encoded, 1000, 3, SEED, delta)
        assert len(hashed.parts) == min(5, len(some.devices))
        results.append(
            [
                encoded.to_host(),
                hashed.to_host(),
                some.chi_sum(hashed, SEED),
                some.low_bits(hashed),
                some.chi_at(np.arange(5, dtype=np.uint64), SEED),
                some.transpose_bits(hashed.to_host().view(np.uint8)[:128]).to_host(),
                some.encode_ec(hashed[1:147], SEED).to_host(),  # overwrites them
            ]
        )
    for expected, found in zip(*results, strict=True):
        assert np.array_equal(found, expected)
    assert len(results[0][-1]) == 73


def test_parts_of_divided_blocks(kernels, rng):
    blocks = random_blocks(rng, 20)
    placed = kernels.upload(blocks)
    for part in (slice(None), slice(3, 18), slice(7, 8), slice(19, 30), slice(5, 5), slice(-4, -1)):
        assert np.array_equal(placed[part].to_host(), blocks[part])
    joined = kernels.join([placed[15:], placed[:2], placed[:0]])
    expected = np.concatenate([blocks[15:], blocks[:2]])
    assert np.array_equal(joined.to_host(), expected)
    gathered = kernels.gather(joined)
    assert [part.device for part in gathered.parts] == [kernels.devices[0].number]
    if gathered.__dlpack_device__()[0] == 1:  # NumPy reads host memory
        assert np.array_equal(np.from_dlpack(gathered), expected)
    assert len(kernels.join([])) == 0
    with pytest.raises(ArgumentError, match="found step 2, expected 1"):
        placed[::2]


def test_blocks_in_parts_are_gathered_before_other_libraries_take_them(rng):
    placed = DeviceKernels(["emulated", "emulated:1"]).upload(random_blocks(rng, 4))
    with pytest.raises(BufferError, match="in 2 parts, expected 1: call DeviceKernels.gather"):
        np.from_dlpack(placed)


def test_no_quasi_cyclic_codes(one):
    with pytest.raises(
        ArgumentError, match=r"'qc'\) do not run on emulated:0: use expand-convolute"
    ):
        one.encode_qc(DeviceBlocks([]), SEED, 1)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "found none, expected one or more of one kind"),
        (["cuda", "emulated"], "found cuda:0, emulated:0, expected one or more of one kind"),
        (["emulated", "emulated:0"], "expected each once"),
        (["cpu"], "expected a GPU"),
    ],
)
def test_invalid_names(names, message):
    with pytest.raises(ArgumentError, match=message):
        DeviceKernels(names)


def test_a_device_that_is_not_there():
    with pytest.raises(ResourceError, match="emulated:4 does not exist"):
        DeviceKernels(["emulated:4"])


def test_more_than_a_device_holds(one):
    with pytest.raises(ResourceError, match="out of memory"):
        one.grow_trees(np.zeros((64, 2), np.uint64), 25, np.array([1, 0], np.uint64), SEED)
    with pytest.raises(ResourceError, match="out of memory"):
        one.grow_trees(np.zeros((1 << 20, 2), np.uint64), 32, np.array([1, 0], np.uint64), SEED)


def test_sizes_that_do_not_go_together(one, rng):
    for sides, choices, depth in ((6, 6, 4), (6, 5, 3), (6, 6, 0)):
        with pytest.raises(ArgumentError, match=f"at depth {depth}, expected equal numbers"):
            one.puncture_trees(random_blocks(rng, sides), np.zeros(choices, np.uint8), depth, SEED)


def test_blocks_of_other_devices(one, rng):
    away = DeviceKernels(["emulated:1"]).upload(random_blocks(rng, 3))
    with pytest.raises(
        ArgumentError, match="blocks: found some on emulated:1, expected emulated:0"
    ):
        one.hash_blocks(away, 0, 0, SEED)
