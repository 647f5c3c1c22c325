"""Products on devices against the executable specification, bit for bit.

The kernels run on the emulated devices everywhere, and on a card where there is one.
"""

import numpy as np
import pytest

import devices
from bitserial.cases import (
    ACTIVATION_BITS,
    BITS,
    apply,
    random_activations,
    random_weights,
    to_planes,
)
from nescio import _core, _emulated
from nescio._devices import Device
from nescio.errors import ArgumentError, ResourceError
from spec import bitserial as spec

KERNELS = ("count", "count-fused", "matrix", "matrix-fused")

# (rows, columns): one of each; what ends within a tile, a word, a chunk; more tiles than warps.
SHAPES = [(1, 1), (5, 63), (17, 300), (16, 256), (33, 257), (3, 2500)]


@pytest.fixture(scope="module", params=devices.ALL)
def device(request):
    """Each device."""
    named = Device.parse(request.param)
    return named.engine().BitSerialDevice(named.number)


def upload(device, q, bits, scale=None, bias=None):
    """A matrix of integers; its scale is 1 unless it is given."""
    if scale is None:
        scale = np.ones(len(q), np.float32)
    return device.upload(to_planes(q, bits), q.shape[1], scale, bias)


def integers(rng, activation_bits, batch, columns):
    """Activations of the whole range, its ends among them."""
    x = random_activations(rng, activation_bits, batch, columns)
    x[0, 0], x[-1, -1] = -(1 << activation_bits - 1), (1 << activation_bits - 1) - 1
    return x


def old(device):
    """Whether it has no matrix instructions for bits."""
    module = _engine_of(device)
    return module.device_info(device.number)["capability"] < 80


def _engine_of(device):
    kind = "emulated" if is_emulated(device) else "cuda"
    return Device(kind, device.number).engine()


def is_emulated(device):
    return type(device).__module__.endswith("_emulated")


def skip_unless_it_has(device, kernel):
    if kernel.startswith("matrix") and old(device):
        pytest.skip("this card has no matrix instructions for bits")


def bits_of(floats):
    """Floats as integers, so that 0 and -0 differ."""
    return np.ascontiguousarray(floats, np.float32).view(np.uint32)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("activation_bits", ACTIVATION_BITS)
@pytest.mark.parametrize("bits", BITS)
def test_integers(device, bits, activation_bits, kernel, rng):
    """Each precision, at shapes and batches that take turns; with the extremes of both."""
    skip_unless_it_has(device, kernel)
    rows, columns = SHAPES[(bits + activation_bits) % len(SHAPES)]
    q = random_weights(rng, bits, rows, columns)
    q[0] = 1 if bits == 1 else -(1 << bits - 1)
    matrix = upload(device, q, bits)
    for batch in (1, (2, 3)[bits % 2]):
        x = integers(rng, activation_bits, batch, columns)
        found = matrix.product(activation_bits, batch, kernel).multiply(x)
        assert found.tolist() == [spec.multiply(q.tolist(), v) for v in x.tolist()]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(device, shape, kernel, rng):
    skip_unless_it_has(device, kernel)
    for bits, activation_bits in ((1, 8), (3, 16), (8, 32)):
        q = random_weights(rng, bits, *shape)
        x = integers(rng, activation_bits, 2, shape[1])
        found = upload(device, q, bits).product(activation_bits, 2, kernel).multiply(x)
        assert found.tolist() == [spec.multiply(q.tolist(), v) for v in x.tolist()]


@pytest.mark.parametrize("batch", [1, 2, 3, 8, 16, 17])
@pytest.mark.parametrize("activation_bits", ACTIVATION_BITS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_floats(device, kernel, activation_bits, batch, rng):
    """Batches that fill slices, and end within them."""
    skip_unless_it_has(device, kernel)
    bits = 1 + (activation_bits + batch) % 8
    q = random_weights(rng, bits, 19, 130)
    scale = rng.random(19, dtype=np.float32)
    bias = rng.standard_normal(19).astype(np.float32) if batch % 2 else None
    x = rng.standard_normal((batch, 130)).astype(np.float32)
    found = upload(device, q, bits, scale, bias).product(activation_bits, batch, kernel).apply(x)
    expected = apply(q, x, activation_bits, scale, bias)
    assert np.array_equal(bits_of(found), bits_of(expected))


def hard_vectors(rng, columns, activation_bits):
    """Where quantising goes wrong first."""
    top = (1 << activation_bits - 1) - 1
    tiny = np.float32(2.0**-149)
    ties = (rng.integers(-top, top, columns) + 0.5).astype(np.float32)
    ties[0] = top  # a step of one, or nearly: halves stay halves, and go to even
    # Quotients that are halves exactly, by divisors whose reciprocals are not.
    odd = 2 * rng.integers(-top, top, columns) + 1
    odd[0] = 2 * top
    others = [odd * np.float32(factor) for factor in (3, 7, 11, 57, 101, 177, 223, 255)]
    spread = (rng.standard_normal(columns) * 2.0 ** rng.integers(-60, 60, columns)).astype("f4")
    largest = np.finfo(np.float32).max * rng.choice([-1, 1, 0.5, 1e-30], columns)
    return [
        np.zeros(columns),
        -np.zeros(columns),
        np.full(columns, tiny),
        rng.integers(-40, 40, columns) * tiny,
        ties,
        ties * np.float32(3e-39),
        spread,
        largest,
        np.nextafter(ties, np.float32(0), dtype=np.float32),
        np.eye(1, columns, columns - 1)[0] * -7,
        *others,
    ]


@pytest.mark.parametrize("kernel", ["count", "matrix-fused"])
@pytest.mark.parametrize("activation_bits", ACTIVATION_BITS)
def test_vectors_that_are_hard_to_quantise(device, activation_bits, kernel, rng):
    """A matrix that is 1 on its diagonal gives each activation away, times its step."""
    skip_unless_it_has(device, kernel)
    columns = 150
    q = np.eye(columns, dtype=np.int64)
    x = np.array(hard_vectors(rng, columns, activation_bits), np.float32)
    found = upload(device, q, 2).product(activation_bits, len(x), kernel).apply(x)
    ones = np.ones(columns, np.float32)
    assert np.array_equal(bits_of(found), bits_of(apply(q, x, activation_bits, ones)))


@pytest.mark.parametrize("activation_bits", ACTIVATION_BITS)
def test_quotients_are_those_of_divisions(device, activation_bits, rng):
    """Many more than the specification has time for, by the processor's division."""
    batch, columns = 16, 2000 if is_emulated(device) else 4096
    x = (rng.standard_normal((batch, columns)) * 2.0 ** rng.integers(-8, 9, (batch, 1))).astype(
        "f4"
    )
    x_integers, _ = _core.quantize_activations(x, activation_bits)
    places = rng.choice(columns, 64, replace=False)
    q = np.zeros((64, columns), np.int64)
    q[np.arange(64), places] = 1
    matrix = upload(device, q, 2)
    product = matrix.product(activation_bits, batch)
    steps = _core.quantize_activations(x, activation_bits)[1]
    expected = (x_integers[:, places] * steps[:, np.newaxis]).astype(np.float32)
    assert np.array_equal(bits_of(product.apply(x)), bits_of(expected))


@pytest.mark.parametrize("scale", [3.4e38, 1e-45, 0.0, -2.5])
def test_scales_that_overflow_and_vanish(device, scale, rng):
    q = random_weights(rng, 4, 9, 70)
    scales = np.full(9, scale, np.float32)
    bias = np.array([0, -0.0, 1e-45, 3.4e38, -3.4e38, 1, -1, 0.5, 7], np.float32)
    x = np.array([rng.standard_normal(70) * size for size in (1, 1e30, 1e-38)], np.float32)
    found = upload(device, q, 4, scales, bias).product(16, 3).apply(x)
    assert np.array_equal(bits_of(found), bits_of(apply(q, x, 16, scales, bias)))


@pytest.mark.parametrize("device", devices.FIRST, indirect=True)
@pytest.mark.parametrize("kernel", [None, *KERNELS])
def test_sizes_that_the_specification_is_slow_for(device, kernel, rng, pool):
    """Many tiles a warp, against the processor's engine; and what the plan would choose."""
    rows, columns = (50, 4100) if is_emulated(device) else (4099, 4100)
    if kernel is not None:
        skip_unless_it_has(device, kernel)
    for bits, activation_bits, batch in ((1, 8, 1), (4, 16, 1), (8, 32, 2), (2, 8, 5)):
        if kernel is not None and kernel.endswith("fused") and batch > 1:
            continue
        words = -(-columns // 64)
        planes = rng.integers(0, 1 << 64, (bits, rows, words), dtype=np.uint64)
        planes[:, :, -1] &= np.uint64((1 << columns % 64) - 1)
        scale = rng.random(rows, dtype=np.float32)
        product = device.upload(planes, columns, scale).product(activation_bits, batch, kernel)
        on_processor = _core.BitMatrix(planes, columns)
        x = integers(rng, activation_bits, batch, columns)
        expected = on_processor.multiply(x, activation_bits, pool)
        assert np.array_equal(product.multiply(x), expected)
        floats = rng.standard_normal((batch, columns)).astype(np.float32)
        expected = on_processor.apply(floats, activation_bits, scale, None, pool)
        assert np.array_equal(bits_of(product.apply(floats)), bits_of(expected))


@pytest.mark.parametrize(
    ("kernel", "activation_bits", "columns"),
    [("count", 8, 1 << 22), ("count", 32, 40_000), ("matrix", 8, 1 << 20), ("matrix", 32, 40_000)],
)
def test_the_largest_sums(kernel, activation_bits, columns):
    """The most columns there can be, and all that is added up of one sign."""
    planes = np.zeros((8, 2, -(-columns // 64)), np.uint64)
    planes[:7, 0] = planes[7, 1] = (1 << 64) - 1  # 127, and -128
    least = -(1 << activation_bits - 1)
    x = np.full((1, columns), least, np.int32)
    matrix = _emulated.BitSerialDevice(0).upload(planes, columns, np.ones(2, np.float32))
    found = matrix.product(activation_bits, 1, kernel).multiply(x)
    assert found.tolist() == [[127 * least * columns, -128 * least * columns]]


def test_plan():
    """Fused for a few vectors where doubles are fast; matrix instructions where they AND."""
    new, turing = _emulated.BitSerialDevice(0), _emulated.BitSerialDevice(2)
    planes, scale = np.zeros((1, 3, 64), np.uint64), np.ones(3, np.float32)
    chosen = [
        d.upload(planes, 4096, scale).product(8, batch).kernel
        for d in (new, turing)
        for batch in (1, 2, 16)
    ]
    assert chosen == ["matrix-fused", "matrix-fused", "matrix", "count", "count", "count"]
    assert _emulated.BITSERIAL_KERNELS == KERNELS


def test_facts_of_a_matrix(device):
    matrix = device.upload(np.zeros((3, 17, 5), np.uint64), 300, np.ones(17, np.float32))
    assert (matrix.rows, matrix.columns, matrix.bits) == (17, 300, 3)
    assert matrix.packed_bytes == 3 * 32 * 512 // 8  # whole tiles
    product = matrix.product(16, 2)
    assert (product.batch, product.activation_bits) == (2, 16)
    assert product.kernel in KERNELS


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_not_finite(kernel, rng):
    """On the host it is refused; on the device it is NaN, and stays in its vector."""
    device = _emulated.BitSerialDevice(1)
    q = random_weights(rng, 3, 4, 40)
    product = upload(device, q, 3).product(8, 4, kernel)
    x = rng.standard_normal((4, 40)).astype(np.float32)
    x[1, 7], x[2, 39], x[2, 38] = np.nan, -np.inf, 0
    with pytest.raises(ArgumentError, match=r"found NaN at \[1, 7\], expected finite"):
        product.apply(x)
    with pytest.raises(ArgumentError, match=r"found -inf at \[0, 39\], expected finite"):
        upload(device, q, 3).product(8).apply(x[2:3])
    out = np.zeros((4, 4), np.float32)
    product.queue(x, out)
    assert np.isnan(out[1:3]).all()
    expected = apply(q, x[[0, 3]], 8, np.ones(4, np.float32))
    assert np.array_equal(bits_of(out[[0, 3]]), bits_of(expected))


def test_arrays_of_the_device(rng):
    """The emulated device's memory is the host's: what is queued there is done at once."""
    device = _emulated.BitSerialDevice(0)
    q = random_weights(rng, 4, 20, 100)
    product = upload(device, q, 4).product(16, 2)
    x = rng.standard_normal((2, 100)).astype(np.float32)
    out = product.empty()
    for stream in (None, 0, 12345):
        np.from_dlpack(out)[:] = 0
        product.queue(x, out, stream)
        assert np.array_equal(np.from_dlpack(out), product.apply(x))
    kept = np.from_dlpack(out)
    del out, product
    assert kept.any()


def test_tensors_of_the_host_are_the_emulated_device_s(rng):
    torch = pytest.importorskip("torch")
    q = random_weights(rng, 2, 20, 100)
    product = upload(_emulated.BitSerialDevice(0), q, 2).product(8, 3)
    x, out = torch.randn((3, 100)), torch.zeros((3, 20))
    product.queue(x, out)
    assert np.array_equal(out.numpy(), product.apply(x.numpy()))
    empty = product.empty()
    product.queue(x, empty)
    assert torch.equal(torch.from_dlpack(empty), out)


def test_a_product_is_one_precision_and_batch(device, rng):
    matrix = upload(device, random_weights(rng, 2, 4, 40), 2)
    for bits in (0, 7, 64):
        with pytest.raises(ArgumentError, match=f"activation_bits: found {bits}, expected 8, 16"):
            matrix.product(bits)
    for batch in (0, 65536):
        with pytest.raises(ArgumentError, match=f"found {batch}, expected 1 to 65535"):
            matrix.product(8, batch)
    with pytest.raises(
        ArgumentError, match=r"there is no kernel 'fast' .* there are: count, count-"
    ):
        matrix.product(8, 1, "fast")
    product = matrix.product(8, 2)
    with pytest.raises(ArgumentError, match="vectors of x: found 3, expected 2"):
        product.apply(np.zeros((3, 40), np.float32))
    with pytest.raises(ArgumentError, match="columns of x: found 41, expected 40"):
        product.apply(np.zeros((2, 41), np.float32))
    with pytest.raises(ArgumentError, match=r"found 128 at \[1, 39\], expected -128 to 127"):
        product.multiply(np.array([[0] * 40, [0] * 39 + [128]], np.int32))
    for wrong in (np.zeros((2, 40)), np.zeros((2, 80), np.float32)[:, ::2], [[0.0] * 40] * 2):
        with pytest.raises(TypeError):
            product.apply(wrong)


def test_kernels_that_a_card_or_a_shape_has_not():
    planes, scale = np.zeros((1, 2, 1025), np.uint64), np.ones(2, np.float32)
    matrix = _emulated.BitSerialDevice(0).upload(planes, 65600, scale)
    with pytest.raises(ArgumentError, match="found 65600 columns, expected at most 32768"):
        matrix.product(8, 1, "matrix-fused")
    turing = _emulated.BitSerialDevice(2).upload(planes, 65600, scale)
    with pytest.raises(ArgumentError, match="there are: count, count-fused$"):
        turing.product(8, 1, "matrix")


def test_matrices_that_cannot_be(device):
    ones = np.ones(2, np.float32)
    for planes, columns, scale, bias, message in (
        (np.zeros((0, 2, 1), np.uint64), 3, ones, None, "planes: found 0, expected 1 to 8"),
        (np.zeros((9, 2, 1), np.uint64), 3, ones, None, "planes: found 9, expected 1 to 8"),
        (np.zeros((1, 2, 1), np.uint64), 65, ones, None, "words of a row: found 1, expected 2"),
        (np.full((1, 2, 1), 8, np.uint64), 3, ones, None, "zeros beyond the 3 columns"),
        (np.zeros((1, 2, 1), np.uint64), 3, ones[:1], None, "scale: found 1, expected 2"),
        (np.zeros((1, 2, 1), np.uint64), 3, ones, ones[:1], "bias: found 1, expected 2"),
    ):
        with pytest.raises(ArgumentError, match=message):
            device.upload(planes, columns, scale, bias)


def test_devices_and_places_that_are_not_there(rng):
    with pytest.raises(ResourceError, match="there is no emulated:3"):
        _emulated.BitSerialDevice(3)
    product = upload(_emulated.BitSerialDevice(0), random_weights(rng, 2, 2, 10), 2).product(8)
    x, out = np.zeros((1, 10), np.float32), np.zeros((1, 2), np.float32)
    with pytest.raises(ArgumentError, match="columns of out: found 3, expected 2"):
        product.queue(x, np.zeros((1, 3), np.float32))
    with pytest.raises(ArgumentError, match="vectors of x: found 2, expected 1"):
        product.queue(np.zeros((2, 10), np.float32), out)
    out.flags.writeable = False
    with pytest.raises(TypeError):
        product.queue(x, out)


def test_times(device, rng):
    product = upload(device, random_weights(rng, 1, 20, 300), 1).product(8)
    assert product.seconds_each(2) > 0


@pytest.mark.gpu
@devices.no_card
def test_a_graph_of_products(rng):
    """Recorded once, replayed on other vectors, without a copy or a wait of its own."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    named = Device.parse(devices.CARD or "cuda")
    place = torch.device("cuda", named.number)
    q = random_weights(rng, 4, 100, 1000)
    matrix = upload(named.engine().BitSerialDevice(named.number), q, 4)
    for kernel in (None, "count"):
        product = matrix.product(8, 1, kernel)
        x = torch.zeros((1, 1000), device=place)
        out = torch.zeros((1, 100), device=place)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            product.queue(x, out, torch.cuda.current_stream(place).cuda_stream)
        for _ in range(3):
            vector = rng.standard_normal((1, 1000)).astype(np.float32)
            x.copy_(torch.from_numpy(vector))
            graph.replay()
            assert np.array_equal(out.cpu().numpy(), product.apply(vector))
