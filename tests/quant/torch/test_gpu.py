"""Low-bit layers on an NVIDIA GPU against the CPU, bit for bit."""

import pytest

torch = pytest.importorskip("torch")
quant_torch = pytest.importorskip("nescio.quant.torch")

from nescio import quant  # noqa: E402 - after what may skip the file
from nescio.errors import ArgumentError  # noqa: E402
from nescio.quant.device import DeviceMatrix  # noqa: E402


@pytest.fixture
def layer():
    if not torch.cuda.is_available():
        pytest.skip("this machine has no GPU that PyTorch can use")
    torch.manual_seed(3)
    return quant_torch.BitSerialLinear.from_linear(torch.nn.Linear(300, 70), 3, 16)


@pytest.mark.gpu
def test_a_layer_moves_to_the_gpu_and_back(layer):
    x = torch.randn(2, 3, 300)
    expected = layer(x)
    layer.to("cuda")
    found = layer(x.cuda())
    assert found.device.type == "cuda"
    assert torch.equal(found.cpu(), expected)
    with pytest.raises(ArgumentError, match="on cpu, expected float32 on cuda:0"):
        layer(x)
    layer.cpu()
    assert torch.equal(layer(x), expected)


@pytest.mark.gpu
@pytest.mark.parametrize("same_stream", [False, True])
def test_a_graph_can_record_a_layer(layer, same_stream):
    layer.to("cuda")
    x = torch.randn(1, 300, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        layer(x)  # allocates scratch buffers for this batch size
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream if same_stream else None):
        y = layer(x)
    x.copy_(torch.randn(1, 300))
    graph.replay()
    torch.cuda.synchronize()
    found, inputs = y.cpu(), x.cpu()
    assert torch.equal(found, layer.cpu()(inputs))


@pytest.mark.gpu
@pytest.mark.parametrize("batch", [1, 1025])
def test_a_graph_can_record_a_matrix(layer, batch):
    """The example of docs/quant-gpu.md."""
    matrix = DeviceMatrix(layer.weights, 16, device="cuda")
    x = torch.randn(batch, 300, device="cuda")
    out = torch.empty((batch, matrix.rows), device="cuda")
    matrix.prepare(batch)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        matrix.queue(x, out, torch.cuda.current_stream().cuda_stream)
    x.copy_(torch.randn(batch, 300))
    graph.replay()
    torch.cuda.synchronize()
    expected = quant.BitSerialMatrix(layer.weights, 16)(x.cpu().numpy())
    assert torch.equal(out.cpu(), torch.from_numpy(expected))


@pytest.mark.gpu
@pytest.mark.parametrize("batch", [0, 1, 17, 1025, 70_000])
def test_batches_of_any_size(layer, batch):
    x = torch.randn(batch, 300)
    expected = layer(x)
    assert torch.equal(layer.to("cuda")(x.cuda()).cpu(), expected)


@pytest.mark.gpu
def test_changed_buffers_are_seen(layer):
    x = torch.randn(2, 300)
    layer.to("cuda")
    layer(x.cuda())
    layer.scale.mul_(2)
    found = layer(x.cuda()).cpu()
    assert torch.equal(found, layer.cpu()(x))
