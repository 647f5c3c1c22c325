"""Low-bit layers on an NVIDIA GPU against the CPU, bit for bit."""

import pytest

torch = pytest.importorskip("torch")
quant_torch = pytest.importorskip("nescio.quant.torch")

from nescio.errors import ArgumentError  # noqa: E402 - after what may skip the file


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
def test_a_graph_can_record_a_layer(layer):
    layer.to("cuda")
    x = torch.randn(1, 300, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        layer(x)  # the first on this stream makes what later ones use
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        y = layer(x)
    x.copy_(torch.randn(1, 300))
    graph.replay()
    torch.cuda.synchronize()
    found, inputs = y.cpu(), x.cpu()
    assert torch.equal(found, layer.cpu()(inputs))


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
