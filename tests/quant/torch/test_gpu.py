"""Layers of few bits on an NVIDIA GPU: those of the processor, bit for bit."""

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
