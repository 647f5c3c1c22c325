"""PyTorch layers with a scale for each group of columns."""

import copy

import numpy as np
import pytest

from nescio import quant
from nescio.errors import ArgumentError

torch = pytest.importorskip("torch")

from nescio.quant.torch import BitSerialLinear, load, quantize  # noqa: E402


@pytest.fixture
def linear():
    torch.manual_seed(3)
    return torch.nn.Linear(100, 12)


def test_a_layer_has_the_products_of_its_matrix(linear):
    layer = BitSerialLinear.from_linear(linear, 4, 8, group=32)
    x = torch.randn(3, 100)
    weights = quant.quantize_weights(linear.weight.detach().numpy(), 4, group=32)
    matrix = quant.BitSerialMatrix(weights, bias=linear.bias.detach().numpy())
    assert np.array_equal(layer(x).numpy(), matrix(x.numpy()))
    assert "group=32" in repr(layer)
    assert layer.scale.dtype == torch.float16
    wide = layer.with_activation_bits(16)
    assert wide.group == 32
    assert (wide(x) - linear(x)).norm() < (layer(x) - linear(x)).norm() * 1.05


def test_conversions_keep_the_scale(linear):
    layer = BitSerialLinear.from_linear(linear, 4, 8, group=64)
    x, scale = torch.randn(2, 100), layer.scale.clone()
    y = layer(x)
    for converted in (layer.float(), copy.deepcopy(layer), layer.to("cpu")):
        assert torch.equal(converted.scale, scale)
        assert torch.equal(converted(x), y)
    with pytest.raises(ArgumentError, match=r"found torch\.float64, expected to stay in float32"):
        layer.double()
    assert torch.equal(layer(x), y)


def test_states_are_those_of_the_same_group(linear):
    layer = BitSerialLinear.from_linear(linear, 4, 8, group=32)
    other = BitSerialLinear(100, 12, weight_bits=4, group=32)
    other.load_state_dict(layer.state_dict())
    x = torch.randn(2, 100)
    assert torch.equal(other(x), layer(x))
    for wrong in (0, 64):
        with pytest.raises(ArgumentError, match="found torch.float16 of shape"):
            BitSerialLinear(100, 12, weight_bits=4, group=wrong).load_state_dict(layer.state_dict())


def test_models_and_their_files(linear, tmp_path):
    model = torch.nn.Sequential(linear, torch.nn.Tanh(), torch.nn.LSTM(12, 40, batch_first=True))
    made = quantize(model, {"*": (4, 8)}, group=32)
    x = torch.randn(2, 5, 100)
    quant.save(made, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors", model)
    assert torch.equal(again(x)[0], made(x)[0])
    layers = quant.load(tmp_path / "model.safetensors")
    assert np.array_equal(layers["0"](x.numpy()), made[0](x).numpy())
    with pytest.raises(ArgumentError, match="'0': group: found 48, expected 32, 64 or 128"):
        quantize(model, {"0": (4, 8)}, group=48)
