"""Models that have no private form: each is refused by name, with the line that it comes from."""

import re

import pytest

from nescio.errors import ArgumentError
from nescio.mpc._compile import read_model
from pytorch.networks import F, Waves, nn, torch

IMAGE, TOKENS = (3, 8, 8), (4, 8)


class Model(nn.Module):
    def __init__(self, function, *modules):
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(modules)

    def forward(self, x):
        return self.function(x, *self.parts)


REFUSED = {
    "softmax": (lambda x: x.softmax(1), [], IMAGE, "a softmax over secrets.*leave a last softmax"),
    "sdpa": (
        lambda x: F.scaled_dot_product_attention(x, x, x),
        [],
        TOKENS,
        "softmax attention, which multiplies secrets",
    ),
    "encoder": (
        lambda x, m: m(x),
        [nn.TransformerEncoderLayer(8, 2, batch_first=True)],
        TOKENS,
        r"parts\.0\.self_attn \(MultiheadAttention\).*softmax attention",
    ),
    "matmul": (lambda x: x @ x.transpose(1, 2), [], TOKENS, "a product of two secrets"),
    "mul": (lambda x, m: x * m(x), [nn.Conv2d(3, 3, 1)], IMAGE, r"two secrets \(mul\)"),
    "gates": (
        lambda x: x * x.mean((2, 3), keepdim=True).sigmoid(),
        [],
        IMAGE,
        r"two secrets \(mul\).*squeeze-and-excitation",
    ),
    "quotient": (lambda x, m: x / m(x), [nn.Conv2d(3, 3, 1)], IMAGE, "a division by a secret"),
    "layer norm": (lambda x, m: m(x), [nn.LayerNorm(8)], IMAGE, r"\(layer_norm\).*batch norm"),
    "batch norm": (
        lambda x, m: m(x),
        [nn.BatchNorm2d(3, track_running_stats=False)],
        IMAGE,
        r"parts\.0 \(BatchNorm2d\).*statistics of its input",
    ),
    "lstm": (lambda x, m: m(x)[0], [nn.LSTM(8, 8, batch_first=True)], TOKENS, "a recurrent layer"),
    "embedding": (lambda x, m: m(x.long()), [nn.Embedding(9, 2)], (4,), "by secret indices"),
    "argmax": (lambda x: x.argmax(1), [], IMAGE, "an order or an index of secrets"),
    "dropout": (F.dropout, [], IMAGE, "random numbers.*training=self.training"),
    "noise": (lambda x: x + torch.randn(3, 8, 8), [], IMAGE, "random numbers"),
    "unknown": (lambda x: x.cumsum(1), [], IMAGE, r"without a private form here \(cumsum\)"),
    "mask": (lambda x: x[x > 0], [], IMAGE, r"\(index\)"),
    "batch": (lambda x: x.view(-1), [], IMAGE, r"the dimension of the batch.*flatten\(1\)"),
    "pool": (lambda x: F.max_pool2d(x, 2, 2, 1), [], IMAGE, "max pooling of 2 with a padding of 1"),
    "rounded quotients": (
        lambda x, m: torch.div(x, m(x), rounding_mode="floor"),
        [nn.Conv2d(3, 3, 1)],
        IMAGE,
        "a rounded quotient of several secrets",
    ),
    "places": (
        lambda x: F.max_pool2d(x, 2, return_indices=True)[1].float(),
        [],
        IMAGE,
        "the places of a maximum",
    ),
    "whole sums": (lambda x: x.sum(1, dtype=torch.int64), [], IMAGE, r"a result of torch\.int64"),
    "truth": (
        lambda x, m: ((x > 0) + (m(x) > 0)).float(),
        [nn.Conv2d(3, 3, 1)],
        IMAGE,
        r"add with a result of torch\.bool",
    ),
    "bits": (lambda x: x.view(torch.float64), [], IMAGE, "a view of bits"),
    "no batch": (lambda x: F.max_pool2d(x, 2), [], (8, 8), r"a shape \(1, 8, 8\), expected 4"),
    "no batch, 1d": (lambda x: F.avg_pool1d(x, 2), [], (8,), r"a shape \(1, 8\), expected 3"),
    "transposed": (
        lambda x: torch.convolution(
            x, torch.ones(3, 3, 2, 2), None, [1, 1], [0, 0], [1, 1], True, [0, 0], 1
        ),
        [],
        IMAGE,
        "a transposed convolution",
    ),
    "trained batch norm": (
        lambda x: F.batch_norm(x, torch.zeros(3), torch.ones(3), training=True),
        [],
        IMAGE,
        "statistics of its input",
    ),
    "crop": (
        lambda x, m: m(x[:, :, 80:, 80:]),
        [nn.Conv2d(3, 3, 3)],
        (3, 96, 96),
        r"a kernel of 83 x 83 taps.*a crop that starts at \(80, 80\).*crop the inputs before",
    ),
    "upsampling": (lambda x: F.interpolate(x, scale_factor=2), [], IMAGE, r"\(upsample_nearest2d"),
    "sqrt": (lambda x: F.relu(x).log(), [], IMAGE, "log, which is not finite.*clamp its input"),
    "reflection": (lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"), [], IMAGE, "mode reflect"),
    "permutation": (
        lambda x: F.relu(x.permute(0, 2, 3, 1) + torch.arange(3.0)),
        [],
        (3, 64, 64),
        "a map from 12288 to 12288 numbers that is no convolution",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_operators_are_refused_with_their_line(name):
    function, modules, shape, expected = REFUSED[name]
    with pytest.raises(ArgumentError, match=expected) as caught:
        read_model(Model(function, *modules), torch.zeros(1, *shape))
    assert re.search(
        r"test_compile_refusals\.py, line \d+: .+: found .*expected", str(caught.value)
    )


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x if x.sum() > 0 else -x, "torch.export found: .*data-dependent expression"),
        (lambda x: torch.from_numpy(x.numpy() * 2), "torch.export found: .*numpy"),
        (lambda x: (x, x + 1), "found 2 outputs, expected one tensor"),
        (lambda x: torch.ones(1, 3), "an output that does not depend on the input"),
    ],
)
def test_models_are_refused_as_a_whole(function, expected, capfd):
    with pytest.raises(ArgumentError, match=f"^model.*: .*{expected}"):
        read_model(Model(function), torch.zeros(1, *IMAGE))
    assert capfd.readouterr() == ("", "")  # torch.export prints graphs and logs


def test_a_step_that_depends_on_the_input_is_refused_with_its_line():
    def stepped(x):
        return x if x.sum() > 0 else -x

    line = stepped.__code__.co_firstlineno + 1
    expected = rf"^model, test_compile_refusals\.py, line {line}: return x if x\.sum\(\) > 0"
    with pytest.raises(ArgumentError, match=expected):
        read_model(Model(stepped), torch.zeros(1, *IMAGE))


@pytest.mark.parametrize(
    "example",
    [
        torch.zeros(2, 2, 32),
        torch.zeros(1, 2, 32, dtype=torch.int64),
        torch.zeros(1),
        torch.zeros(1, 0, 4),
        torch.zeros(1, 1, 2, 2, 2),
        (torch.zeros(1, 2, 32),),
    ],
    ids=["batch", "integers", "vector", "empty", "volume", "tuple"],
)
def test_examples_are_one_tensor_of_floats(example):
    with pytest.raises(ArgumentError, match=r"^example: found .*expected one tensor of floats"):
        read_model(Waves(), example)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_are_finite(value):
    model = Waves()
    with torch.no_grad():
        model.conv2.weight[0, 0, 0] = value
    with pytest.raises(ArgumentError, match=r"NaN or infinity in 'conv2\.weight'"):
        read_model(model, torch.zeros(1, 2, 32))


def test_models_are_modules():
    with pytest.raises(ArgumentError, match="model: found function, expected a torch.nn.Module"):
        read_model(lambda x: x, torch.zeros(1, 2, 32))


def test_a_sequence_of_modules_is_refused_with_the_module():
    model = nn.Sequential(nn.Linear(8, 8), nn.Softmax(-1))
    with pytest.raises(ArgumentError, match=r"^1 \(Softmax\): found a softmax"):
        read_model(model, torch.zeros(1, 8))
