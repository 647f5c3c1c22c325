"""`BitSerialLinear`: what it computes, keeps and refuses."""

import copy
import io
import pickle

import numpy as np
import pytest

from nescio import quant
from nescio.errors import ArgumentError

torch = pytest.importorskip("torch")
BitSerialLinear = pytest.importorskip("nescio.quant.torch").BitSerialLinear


@pytest.fixture
def linear():
    torch.manual_seed(1)
    return torch.nn.Linear(70, 33)


def vectors(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("activation_bits", [8, 16, 32])
def test_it_is_the_engine_s_product(linear, bits, activation_bits):
    layer = BitSerialLinear.from_linear(linear, bits, activation_bits, per_row=bits % 2 == 0)
    weights = quant.quantize_weights(linear.weight.detach().numpy(), bits, per_row=bits % 2 == 0)
    matrix = quant.BitSerialMatrix(weights, activation_bits, bias=linear.bias.detach().numpy())
    x = vectors(2, 3, 70)
    assert layer(x).numpy().tobytes() == matrix(x.numpy()).tobytes()
    assert layer(x).shape == (2, 3, 33)
    assert layer(x[0, 0]).shape == (33,)
    assert layer(x[:, :0]).shape == (2, 0, 33)


def test_it_is_near_to_the_layer_it_comes_from(linear):
    x = vectors(5, 70)
    for bits, most in ((8, 0.02), (4, 0.2)):
        layer = BitSerialLinear.from_linear(linear, weight_bits=bits, activation_bits=16)
        assert (layer(x) - linear(x)).abs().max() < most


def test_without_a_bias_and_from_integers(linear):
    bare = torch.nn.Linear(70, 3, bias=False)
    layer = BitSerialLinear.from_linear(bare)
    assert layer.bias is None
    assert set(layer.state_dict()) == {"planes", "scale", "sizes"}
    own = BitSerialLinear.from_weights(quant.from_integers([[1, -2, 0]], 2, 0.5), 16)
    assert own(torch.tensor([1.0, 1.0, 1.0])).tolist() == pytest.approx([-0.5])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_weights_of_any_float_type(linear, dtype):
    layer = BitSerialLinear.from_linear(linear.to(dtype))
    assert (layer.scale.dtype, layer.bias.dtype) == (torch.float32, torch.float32)
    assert layer(vectors(70)).dtype == torch.float32


def test_states_go_round(linear):
    layer, x = BitSerialLinear.from_linear(linear, 3, 16), vectors(4, 70)
    other = BitSerialLinear(70, 33, weight_bits=3, activation_bits=16)
    other(x)  # so that there is a matrix of the state before
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other(x), layer(x))
    for name, tensor in layer.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name])
    assert layer.state_dict()["planes"].dtype == torch.int64
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    again = BitSerialLinear(70, 33, weight_bits=3, activation_bits=16)
    again.load_state_dict(torch.load(file, weights_only=True), assign=True)
    assert torch.equal(again(x), layer(x))


def test_safetensors_go_round(linear, tmp_path):
    safetensors_torch = pytest.importorskip("safetensors.torch")
    layer = BitSerialLinear.from_linear(linear, 5, 32)
    safetensors_torch.save_model(layer, str(tmp_path / "layer.safetensors"))
    other = BitSerialLinear(70, 33, weight_bits=5, activation_bits=32)
    safetensors_torch.load_model(other, str(tmp_path / "layer.safetensors"))
    assert torch.equal(other(vectors(70)), layer(vectors(70)))


@pytest.mark.parametrize(
    ("made", "found", "expected"),
    [
        ((70, 33, 4, 8), "torch.int64 of shape (3, 33, 2)", "torch.int64 of shape (4, 33, 2)"),
        ((71, 33, 3, 8), "(3, 8, 70)", "(3, 8, 71)"),
        ((130, 33, 3, 8), "torch.int64 of shape (3, 33, 2)", "torch.int64 of shape (3, 33, 3)"),
        ((70, 32, 3, 8), "torch.int64 of shape (3, 33, 2)", "torch.int64 of shape (3, 32, 2)"),
        ((70, 33, 3, 16), "(3, 8, 70)", "(3, 16, 70)"),
    ],
)
def test_states_of_other_layers(linear, made, found, expected):
    state = BitSerialLinear.from_linear(linear, 3, 8).state_dict()
    other = BitSerialLinear(*made[:2], weight_bits=made[2], activation_bits=made[3])
    with pytest.raises(ArgumentError) as caught:
        other.load_state_dict(state)
    assert f"found {found}, expected {expected}; " in str(caught.value)


def test_copies_and_pickles(linear):
    layer, x = BitSerialLinear.from_linear(linear), vectors(70)
    expected = layer(x)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(other(x), expected)
    assert repr(layer) == (
        "BitSerialLinear(in_features=70, out_features=33, bias=True, weight_bits=4, "
        "activation_bits=8)"
    )


def test_other_activation_bits_in_the_same_memory(linear):
    layer, x = BitSerialLinear.from_linear(linear), vectors(70)
    other = layer.with_activation_bits(32)
    assert torch.equal(other(x), BitSerialLinear.from_linear(linear, 4, 32)(x))
    assert other.planes.data_ptr() == layer.planes.data_ptr()
    assert torch.equal(layer(x), BitSerialLinear.from_linear(linear, 4, 8)(x))


@pytest.mark.parametrize(
    "change",
    [
        lambda layer: layer.planes.zero_(),
        lambda layer: setattr(layer, "planes", torch.zeros_like(layer.planes)),
        lambda layer: setattr(layer.planes, "data", torch.zeros_like(layer.planes)),
        lambda layer: layer.scale.mul_(2),
        lambda layer: setattr(layer, "scale", layer.scale * 2),
        lambda layer: layer.bias.zero_(),
        lambda layer: setattr(layer, "bias", None),
    ],
)
def test_changed_buffers_are_seen(linear, change):
    layer, x = BitSerialLinear.from_linear(linear), vectors(70)
    before = layer(x)
    same = layer.matrix()
    assert layer.matrix() is same
    other = layer.with_activation_bits(32)
    change(layer)
    assert torch.equal(layer(x), copy.deepcopy(layer)(x))
    assert not torch.equal(layer(x), before)
    assert torch.equal(other(x), copy.deepcopy(other)(x))


def test_changes_that_cannot_be_are_seen(linear):
    layer, x = BitSerialLinear.from_linear(linear), vectors(70)
    layer(x)
    layer.scale.fill_(torch.nan)
    with pytest.raises(ArgumentError, match="scale: found nan"):
        layer(x)


def test_layers_made_in_inference_mode(linear):
    with torch.inference_mode():
        layer = BitSerialLinear.from_linear(linear)
        layer.scale = layer.scale * 2
        assert torch.equal(layer(vectors(70)), copy.deepcopy(layer)(vectors(70)))


def test_no_gradient_and_it_says_so(linear):
    layer = BitSerialLinear.from_linear(linear)
    before = torch.nn.Linear(70, 70)
    y = layer(before(vectors(70)))
    with pytest.raises(ArgumentError, match="a bit-serial layer has no gradient: train with"):
        y.sum().backward()
    with torch.no_grad():
        assert not layer(before(vectors(70))).requires_grad
    assert not layer(vectors(70)).requires_grad
    with torch.inference_mode():
        layer(vectors(70))
    assert not list(layer.parameters())


@pytest.mark.parametrize("threads", [1, 2])
def test_it_uses_as_many_threads_as_pytorch(linear, threads):
    layer, x = BitSerialLinear.from_linear(linear), vectors(3, 70)
    expected = layer(x)
    torch.set_num_threads(threads)
    assert layer.matrix().threads == threads
    assert torch.equal(layer(x), expected)


def test_it_stays_in_float32_on_the_processor(linear):
    layer = BitSerialLinear.from_linear(linear)
    expected = layer(vectors(70))
    for change in (layer.half, layer.double):
        with pytest.raises(ArgumentError, match="expected to stay in float32"):
            change()
    assert torch.equal(layer.float().cpu()(vectors(70)), expected)
    with pytest.raises(ArgumentError, match="found it on meta, expected the CPU"):
        copy.deepcopy(layer).to("meta")(vectors(70))


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (torch.zeros(69), "shape (69,)"),
        (torch.zeros(70, dtype=torch.float64), "found torch.float64 on cpu, expected float32"),
        (torch.zeros(70, dtype=torch.int64), "found torch.int64"),
        (torch.zeros(70, device="meta"), "on meta"),
        (torch.full((70,), torch.nan), "0"),
        (np.zeros(70), "found ndarray, expected a tensor"),
    ],
)
def test_what_cannot_be_multiplied(linear, x, said):
    with pytest.raises(ArgumentError) as caught:
        BitSerialLinear.from_linear(linear)(x)
    assert said in str(caught.value)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_weights_that_are_no_numbers(linear, bad):
    with torch.no_grad():
        linear.weight[3, 5] = bad
    with pytest.raises(ArgumentError, match="weights: found .* at row 3, column 5"):
        BitSerialLinear.from_linear(linear)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"weight_bits": 0}, "weight bits: found 0"),
        ({"weight_bits": 9}, "found 9, expected 1 to 8"),
        ({"activation_bits": 4}, "activation bits: found 4"),
        ({"layer": torch.nn.ReLU()}, "found ReLU, expected a torch.nn.Linear"),
        ({"layer": torch.nn.LazyLinear(3)}, "found LazyLinear"),
    ],
)
def test_layers_that_cannot_be_made(linear, arguments, said):
    with pytest.raises(ArgumentError) as caught:
        BitSerialLinear.from_linear(**{"layer": linear, **arguments})
    assert said in str(caught.value)


def test_sizes_that_cannot_be():
    for sizes in ((0, 1), (1, 0), (1 << 23, 1)):
        with pytest.raises(ArgumentError):
            BitSerialLinear(*sizes)
