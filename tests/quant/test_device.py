"""Matrices on devices against matrices on the CPU, bit for bit."""

import contextlib
import sys
import tracemalloc
import types

import numpy as np
import pytest

import devices
from nescio import _emulated
from nescio.errors import ArgumentError, DeviceFailedError, ResourceError
from nescio.quant import BitSerialMatrix, from_integers, quantize_weights
from nescio.quant import device as device_module
from nescio.quant.device import DeviceMatrix


@pytest.fixture
def weights(rng):
    return quantize_weights(rng.standard_normal((21, 90)).astype(np.float32), bits=3, per_row=True)


@pytest.fixture
def bias(rng):
    return rng.standard_normal(21).astype(np.float32)


@pytest.mark.parametrize("device", devices.ALL)
@pytest.mark.parametrize("activation_bits", [8, 16, 32])
@pytest.mark.parametrize("shape", [(90,), (1, 90), (2, 3, 90), (17, 90), (0, 90)])
def test_vectors_of_the_host(weights, bias, device, activation_bits, shape, rng):
    x = rng.standard_normal(shape).astype(np.float32)
    on_processor = BitSerialMatrix(weights, activation_bits, bias=bias)
    on_device = DeviceMatrix(weights, activation_bits, bias=bias, device=device)
    for _ in range(2):
        found, expected = on_device(x), on_processor(x)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("device", devices.FIRST)
def test_exact_products(weights, device, rng):
    x = rng.integers(-128, 128, (3, 90))
    expected = x @ weights.to_integers().astype(np.int64).T
    assert np.array_equal(DeviceMatrix(weights, device=device).multiply(x), expected)


def test_queued_products(weights, rng):
    matrix = DeviceMatrix(weights, device="emulated")
    x, out = rng.standard_normal((20, 90)).astype(np.float32), np.zeros((20, 21), np.float32)
    for stream in (None, 7, 7):
        out[:] = 0
        matrix.queue(x, out, stream)
        assert np.array_equal(out, BitSerialMatrix(weights)(x))


def test_batches_of_any_size(rng, monkeypatch):
    """Large batches are split; errors name the vector of the whole batch."""
    monkeypatch.setattr(device_module, "_MAX_BATCH", 4)
    few = from_integers(rng.integers(-2, 2, (3, 5)), bits=2, scale=0.5)
    matrix, expected = DeviceMatrix(few, device="emulated"), BitSerialMatrix(few)
    x = rng.standard_normal((10, 5)).astype(np.float32)
    out = np.zeros((10, 3), np.float32)
    matrix.queue(x, out, 5)
    assert np.array_equal(out, expected(x))
    assert np.array_equal(matrix(x), expected(x))
    integers = rng.integers(-128, 128, (10, 5))
    assert np.array_equal(matrix.multiply(integers), expected.multiply(integers))
    matrix.queue(x[:0], out[:0])
    assert matrix.multiply(integers[:0]).shape == (0, 3)
    x[7, 2] = np.inf
    with pytest.raises(ArgumentError, match="found NaN or infinity in vector 7"):
        matrix(x)
    with pytest.raises(ArgumentError, match=r"out: found shape \(10, 3\), expected \(9, 3\)"):
        matrix.queue(x[:9], out)


def test_scratch_buffers_are_bounded_and_each_stream_has_its_own(weights, rng, monkeypatch):
    matrix, expected = DeviceMatrix(weights, device="emulated"), BitSerialMatrix(weights)
    x = rng.standard_normal((5, 90)).astype(np.float32)
    monkeypatch.setattr(device_module, "_MAX_CACHED_PRODUCTS", 3)
    for batch in range(1, 6):
        assert np.array_equal(matrix(x[:batch]), expected(x[:batch]))
    for stream in (1, 2):
        matrix.queue(x[:2], np.zeros((2, 21), np.float32), stream)
    assert len(matrix._products) == 3
    assert matrix._products[2, 1] is not matrix._products[2, 2]


@pytest.fixture
def capture():
    """Starts a capture on the emulated device, in which allocations, releases and waits fail."""

    @contextlib.contextmanager
    def run():
        _emulated.begin_capture()
        try:
            yield
        finally:
            _emulated.end_capture()

    return run


def test_the_capture_of_the_emulated_device_forbids_allocations(weights, capture):
    matrix = DeviceMatrix(weights, device="emulated")
    with capture(), pytest.raises(DeviceFailedError, match="allocation during the capture"):
        DeviceMatrix(weights, device="emulated")
    with capture(), pytest.raises(DeviceFailedError, match="during the capture"):
        matrix.queue(np.zeros((1, 90), np.float32), np.zeros((1, 21), np.float32))
    with pytest.raises(DeviceFailedError, match="a release of memory during the capture"):
        with capture():
            del matrix


@pytest.mark.parametrize("warm_up", ["prepare", "queue"])
@pytest.mark.parametrize("kernel", [None, "count", "count-fused", "matrix", "matrix-fused"])
def test_a_graph_captures_without_allocating(weights, rng, capture, kernel, warm_up):
    """As in docs/quant-gpu.md: the capture uses another stream than the warm-up."""
    matrix, expected = (
        DeviceMatrix(weights, device="emulated", kernel=kernel),
        BitSerialMatrix(weights),
    )
    x, out = rng.standard_normal((3, 90)).astype(np.float32), np.zeros((3, 21), np.float32)
    if warm_up == "prepare":
        matrix.prepare(3)
    else:
        matrix.queue(x, out, 7)
    out[:] = 0
    with capture():
        for _ in range(2):
            matrix.queue(x, out, 8)
    assert np.array_equal(out, expected(x))


def test_a_graph_has_scratch_buffers_of_its_own(weights, rng, capture, monkeypatch):
    matrix = DeviceMatrix(weights, device="emulated")
    monkeypatch.setattr(device_module, "_MAX_CACHED_PRODUCTS", 2)
    x, out = rng.standard_normal((5, 90)).astype(np.float32), np.zeros((5, 21), np.float32)
    matrix.queue(x[:1], out[:1], 7)
    with capture():
        matrix.queue(x[:1], out[:1], 7)
        with pytest.raises(ArgumentError, match=r"call prepare\(1\) before the capture"):
            matrix.queue(x[:1], out[:1], 8)
    captured = matrix._captured[1, 7]
    for batch in range(1, 6):
        matrix.queue(x[:batch], out[:batch], 7)  # drops others from the cache
    assert (len(matrix._products), len(matrix._spares)) == (2, 2)
    with capture():
        matrix.queue(x[:1], out[:1], 7)
    assert matrix._captured == {(1, 7): captured}
    assert captured not in matrix._products.values()


@pytest.mark.parametrize("batch", [0, -1, 1.5, "1"])
def test_batches_that_cannot_be_prepared(weights, batch):
    with pytest.raises(ArgumentError, match="batch: found"):
        DeviceMatrix(weights, device="emulated").prepare(batch)


def test_large_batches_are_captured_in_slices(weights, rng, capture, monkeypatch):
    monkeypatch.setattr(device_module, "_MAX_BATCH", 4)
    matrix = DeviceMatrix(weights, device="emulated")
    x, out = rng.standard_normal((10, 90)).astype(np.float32), np.zeros((10, 21), np.float32)
    matrix.prepare(10)
    with capture():
        matrix.queue(x, out, 7)
    assert np.array_equal(out, BitSerialMatrix(weights)(x))


def test_a_batch_of_many_slices_is_prepared_without_a_list_of_them(weights, capture, monkeypatch):
    monkeypatch.setattr(device_module, "_MAX_BATCH", 4)
    matrix = DeviceMatrix(weights, device="emulated")
    matrix.prepare(7)  # loads what the first call loads
    tracemalloc.start()
    try:
        matrix.prepare((1 << 20) + 3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20
    with capture():
        for rows in (4, 3):
            x, out = np.ones((rows, 90), np.float32), np.zeros((rows, 21), np.float32)
            matrix.queue(x, out, 7)


def test_kernels_and_facts(weights):
    matrix = DeviceMatrix(weights, device="emulated:2")
    assert (matrix.rows, matrix.columns, matrix.packed_bytes) == (21, 90, 3 * 32 * 256 // 8)
    assert matrix.kernel(4) == "count"
    assert DeviceMatrix(weights, device="emulated", kernel="count-fused").kernel() == "count-fused"
    assert matrix.seconds_each(2, count=1) > 0


def test_bad_input(weights):
    for name in ("gpu", 3, "cuda:x"):
        with pytest.raises(ArgumentError, match="expected a GPU"):
            DeviceMatrix(weights, device=name)
    with pytest.raises(ResourceError, match="emulated:9 does not exist"):
        DeviceMatrix(weights, device="emulated:9")
    with pytest.raises(ArgumentError, match="activation bits: found 4"):
        DeviceMatrix(weights, 4, device="emulated")
    with pytest.raises(ArgumentError, match="kernel.*'matrix'"):
        DeviceMatrix(weights, device="emulated:2", kernel="matrix")
    with pytest.raises(ArgumentError, match="bias: found 20, expected 21"):
        DeviceMatrix(weights, bias=np.zeros(20, np.float32), device="emulated")
    matrix = DeviceMatrix(weights, device="emulated")
    for x in (np.zeros((2, 89), np.float32), np.zeros((2, 90), np.int32)):
        with pytest.raises(ArgumentError, match="expected floats of shape"):
            matrix(x)
    with pytest.raises(ArgumentError, match=r"found NaN at \[1, 5\]"):
        matrix(np.where(np.arange(180).reshape(2, 90) == 95, np.nan, 1))
    for x in (
        np.full((1, 90), 128),
        np.full((1, 90), 1 << 40),
        np.zeros((1, 90)),
        np.zeros(90, int),
    ):
        with pytest.raises(ArgumentError, match="found"):
            matrix.multiply(x)
    out = np.zeros((1, 21), np.float32)
    for x in (np.zeros((1, 90)), np.zeros((1, 180), np.float32)[:, ::2]):
        with pytest.raises(ArgumentError, match="expected C-contiguous float32"):
            matrix.queue(x, out)
    with pytest.raises(ArgumentError, match="expected an array"):
        matrix.queue([1.0] * 90, out)


class OnGpu:
    """Array that claims to be on a GPU; its library has `from_dlpack` or lacks it."""

    def __init__(self, array):
        self.array = array
        self.shape = array.shape

    def reshape(self, *shape):
        return OnGpu(self.array.reshape(*shape))

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **_):
        return self.array.__dlpack__()


def test_vectors_of_a_gpu_s_library(weights, rng, monkeypatch):
    """Takes and returns arrays of the library; the emulated device reads NumPy's memory."""
    x = rng.standard_normal((2, 3, 90)).astype(np.float32)
    matrix = DeviceMatrix(weights, device="emulated")
    with pytest.raises(ArgumentError, match=r"found shape \(2, 3, 89\)"):
        matrix(OnGpu(x[..., :89]))
    library = types.ModuleType("library_of_a_gpu")
    monkeypatch.setitem(sys.modules, "library_of_a_gpu", library)
    monkeypatch.setattr(OnGpu, "__module__", "library_of_a_gpu")
    with pytest.raises(ArgumentError, match="expected an array of a library with from_dlpack"):
        matrix(OnGpu(x))
    library.from_dlpack = np.from_dlpack
    found = matrix(OnGpu(x), stream=3)
    assert np.array_equal(found, BitSerialMatrix(weights)(x))


def test_tensors_are_exported_without_an_order_of_streams(weights, rng, monkeypatch):
    """PyTorch before 2.9 orders streams unless told not to, which a graph cannot capture."""
    asked = []

    def export(self, **arguments):
        asked.append(arguments)
        return self.array.__dlpack__()

    monkeypatch.setattr(OnGpu, "__module__", "torch")
    monkeypatch.setattr(OnGpu, "__dlpack__", export)
    x, out = rng.standard_normal((2, 90)).astype(np.float32), np.zeros((2, 21), np.float32)
    DeviceMatrix(weights, device="emulated").queue(OnGpu(x), OnGpu(out), 3)
    assert asked == [{"stream": -1}] * 2
    assert np.array_equal(out, BitSerialMatrix(weights)(x))


@pytest.mark.gpu
@devices.no_card
def test_tensors_on_a_card(rng):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    name = devices.CARD or "cuda"
    weights = from_integers(rng.integers(-8, 8, (100, 300)), bits=4, scale=0.25)
    matrix = DeviceMatrix(weights, 16, device=name)
    x = rng.standard_normal((3, 300)).astype(np.float32)
    tensor = torch.from_numpy(x).to(name)
    for stream in (None, torch.cuda.current_stream(tensor.device).cuda_stream):
        found = matrix(tensor, stream=stream)
        assert found.device == tensor.device
        assert np.array_equal(found.cpu().numpy(), BitSerialMatrix(weights, 16)(x))


@pytest.mark.parametrize("device", devices.FIRST)
def test_the_device_is_an_argument(weights, bias, device, rng):
    """A matrix takes a device as a server does; the results have the same bits."""
    x = rng.standard_normal((2, 90)).astype(np.float32)
    here, there = (BitSerialMatrix(weights, 16, bias=bias, device=d) for d in ("cpu", device))
    assert there(x).tobytes() == here(x).tobytes()
    integers = rng.integers(-(1 << 15), 1 << 15, (3, 1, 90))
    assert there.multiply(integers).tolist() == here.multiply(integers).tolist()
    assert there.with_activation_bits(8)(x).tobytes() == here.with_activation_bits(8)(x).tobytes()
    assert there.kernel.split("-")[0] in ("count", "matrix")
    assert there.packed_bytes >= weights.planes.nbytes


def test_a_device_of_no_such_name(weights):
    with pytest.raises(ArgumentError, match="device: found 'gpu', expected a GPU: 'cuda'"):
        BitSerialMatrix(weights, device="gpu")
    assert BitSerialMatrix(weights, device="auto").device == "cpu"
