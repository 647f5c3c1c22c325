"""Products on devices: kernel choice, placement of arrays, and invalid arguments."""

import numpy as np
import pytest

import devices
from bitserial.cases import apply, random_weights
from bitserial.on_devices import KERNELS, bits_of, upload
from nescio import _emulated
from nescio._device import Device
from nescio.errors import ArgumentError, ResourceError


def test_plan():
    """Check the plan: fused for few vectors on GPUs with fast doubles, matrix from compute 8.0."""
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
def test_activations_that_are_not_finite(kernel, rng):
    """Vectors in host memory are refused; in device memory only their own products are NaN."""
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
    """The memory of the emulated device is host memory, and queued products run at once."""
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
    with pytest.raises(ArgumentError, match="kernel: found 'fast', expected one of count, count-"):
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


def test_kernels_that_a_gpu_or_a_shape_does_not_support():
    planes, scale = np.zeros((1, 2, 1025), np.uint64), np.ones(2, np.float32)
    matrix = _emulated.BitSerialDevice(0).upload(planes, 65600, scale)
    with pytest.raises(ArgumentError, match="found 65600 columns, expected at most 32768"):
        matrix.product(8, 1, "matrix-fused")
    turing = _emulated.BitSerialDevice(2).upload(planes, 65600, scale)
    message = "found 'matrix', expected one of count, count-fused on "
    with pytest.raises(ArgumentError, match=message):
        turing.product(8, 1, "matrix")


def test_invalid_matrices(device):
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


def test_missing_devices_and_wrong_shapes(rng):
    with pytest.raises(ResourceError, match="emulated:4 does not exist"):
        _emulated.BitSerialDevice(4)
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
    """Record a product in a CUDA graph and replay it on other vectors, without copies or waits."""
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
