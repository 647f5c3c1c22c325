"""Operators of PyTorch as layers: each computes what PyTorch computes, with so many tables."""

import numpy as np
import pytest

from nescio.mpc._compile import read_model
from nescio.mpc._plans.floats import RELU, run
from pytorch.networks import F, nn, randomized, torch

IMAGE = (3, 8, 8)


class Model(nn.Module):
    def __init__(self, function, *modules):
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(modules)

    def forward(self, x):
        return self.function(x, *self.parts)


def conv(inputs=3, outputs=4, kernel=3, **options):
    return nn.Conv2d(inputs, outputs, kernel, **{"padding": 1, **options})


def pool(*sizes, **options):
    return lambda x, m: F.max_pool2d(F.relu(m(x)), *sizes, **options)


def check(function, *modules, shape=IMAGE, tables=0):
    """Compares the layers with PyTorch, and returns what was read."""
    torch.manual_seed(2)
    model = randomized(Model(function, *modules))
    read = read_model(model, torch.zeros(1, *shape))
    x = 2 * torch.randn(2, *shape, dtype=torch.float64)
    with torch.no_grad():
        expected = torch.cat([model.double()(one[None]) for one in x]).numpy()
    *_, found = run(read.layers, x.numpy().reshape(2, *read.inputs))
    assert read.outputs == expected.shape[1:]
    error = np.abs(found.reshape(expected.shape) - expected).max()
    assert error < 1e-9 * np.abs(expected).max()
    assert read.tables == tables
    return read


@pytest.mark.parametrize(
    "module",
    [
        conv(kernel=(3, 5), stride=(2, 1), padding=(1, 2), dilation=(2, 1)),
        conv(kernel=4, padding="same"),
        conv(padding="valid", bias=False),
        conv(outputs=6, groups=3),
        nn.utils.parametrizations.weight_norm(conv()),
    ],
)
def test_convolutions(module):
    assert not check(lambda x, m: m(x), module).notes


def test_convolutions_in_one_dimension():
    check(lambda x, m: m(x), nn.Conv1d(4, 8, 3, 2, 2, 2, groups=2), shape=(4, 11))


@pytest.mark.parametrize(
    ("function", "modules"),
    [
        (lambda x, m, n: n(m(x)), [conv(3, 3, groups=3), conv(3, 5, 1, padding=0)]),
        (lambda x, m, n: n(m(x)), [conv(3, 6, 1, padding=0), conv(6, 6, groups=6)]),
        (lambda x, m, n: n(m(x)), [conv(3, 3, groups=3), conv(3, 6, 1, groups=3, padding=0)]),
        (lambda x, m: F.avg_pool2d(m(x), 2), [conv()]),
        (lambda x, m: F.avg_pool2d(x, 3, 2, 1) + m(x), [conv(3, 3, stride=2)]),
        (lambda x, m: m(F.pad(x, (1, 2, 0, 3), value=2.0)), [conv()]),
        (lambda x, m: m(F.pad(x, (0, 1, 0, 1))), [conv(stride=2, padding=0)]),
        (lambda x: x[:, 1:, ::2, 1:7:3] + x[:, :2, 4:, :2], []),
        (lambda x, b: b(x)[:, -1:] - x[:, 1:2], [nn.BatchNorm2d(3)]),
    ],
)
def test_linear_maps_in_a_row_are_one_convolution(function, modules):
    """No table, no note, and one layer of convolutions."""
    read = check(function, *modules)
    assert read.notes == []
    assert {term.geometry.inputs for term in read.layers[0].terms} == {IMAGE}


def test_a_batch_norm_between_a_function_and_a_padded_convolution_costs_no_table():
    parts = conv(), nn.BatchNorm2d(4), conv(4, 5)
    read = check(lambda x, m, b, n: n(b(F.relu(m(x)))), *parts, tables=256)
    assert read.layers[-1].bias.shape == (5, 8, 8)


@pytest.mark.parametrize(
    ("function", "modules"),
    [
        (lambda x, m, n: n(m(x)), [conv(), conv(4, 5)]),
        (lambda x, m: F.avg_pool2d(m(x), 3, 2, 1), [conv()]),
        (lambda x, m: F.pad(m(x), (1, 1, 1, 1)), [conv()]),
    ],
)
def test_maps_that_are_no_convolution_take_tables_of_the_identity(function, modules):
    (note,) = check(function, *modules, tables=256).notes
    assert "256 tables of the identity, because two maps in a row" in note
    assert "test_compile_operators.py, line" in note


@pytest.mark.parametrize(
    ("function", "modules"),
    [
        (lambda x, m: m(F.adaptive_avg_pool2d(x, 3).flatten(1)), [nn.Linear(27, 4)]),
        (lambda x: F.adaptive_avg_pool2d(x, (3, 2)), []),
        (lambda x: torch.cat([x.mean(2), x.mean(-1)], 1), []),
        (lambda x: x.sum((1, 2)) - x.mean(1).mean(1), []),
        (lambda x: x + x.mean((2, 3), keepdim=True), []),
        (lambda x, m: m(x.permute(0, 2, 3, 1)), [nn.Linear(3, 4)]),
        (lambda x: x * torch.arange(64.0).view(8, 8) + torch.ones(8), []),
        (lambda x: torch.cat([x, torch.ones(1, 1, 8, 8)], 1), []),
        (lambda x: x.split([1, 2], 1)[1] - x.chunk(3, 1)[0] + x[:, 1:2], []),
        (lambda x: (3 - x) / 2 + x * torch.arange(3.0).view(3, 1, 1), []),
    ],
)
def test_other_linear_maps(function, modules):
    check(function, *modules)


@pytest.mark.parametrize(
    ("function", "modules", "shape"),
    [
        (lambda x, a, b: b(a(x)), [nn.Linear(6, 5), nn.Linear(5, 4)], (6,)),
        (lambda x, m: x @ m.weight + torch.mm(x, m.weight), [nn.Linear(5, 6)], (6,)),
        (lambda x, m, b: b(m(x)), [nn.Linear(5, 6), nn.BatchNorm1d(4)], (4, 5)),
        (lambda x: F.avg_pool1d(x, 3, 2, 1), [], (3, 9)),
        (lambda x: F.adaptive_avg_pool1d(x, 3), [], (3, 9)),
    ],
)
def test_vectors(function, modules, shape):
    check(function, *modules, shape=shape)


@pytest.mark.parametrize(
    ("function", "modules", "tables"),
    [
        (lambda x, m, n: n(F.relu(m(x)).permute(0, 2, 3, 1).flatten(1)), [conv()], 256),
        (lambda x, m, n: n(F.relu(m(x).permute(0, 2, 3, 1)).flatten(1)), [conv()], 256),
    ],
)
def test_permuted_images_before_a_linear_layer(function, modules, tables):
    check(function, *modules, nn.Linear(256, 5), tables=tables)


def test_a_convolution_of_a_linear_layer():
    parts = nn.Linear(6, 32), conv(2, 3)
    check(lambda x, m, n: n(F.relu(m(x)).view(-1, 2, 4, 4)), *parts, shape=(6,), tables=32)


@pytest.mark.parametrize(
    ("function", "tables"),
    [
        (pool(2), 4 * 64),  # 3 and 1 for each of 16 windows and 4 channels
        (pool(4), 4 * 64),
        (pool(3, 2, 1), 4 * (8 * 7 + 4 * 7 + 16)),
        (pool(3, 1, 1), 4 * (8 * 14 + 14 * 8 + 64)),
        (pool(3, 2, ceil_mode=True), 4 * (8 * 7 + 4 * 7 + 16)),
        (pool(2, 1, dilation=2), 4 * (8 * 6 + 36 + 36)),
        (lambda x, m: F.adaptive_max_pool2d(torch.sigmoid(m(x)), 4), 4 * 64),
        (lambda x, m: F.max_pool2d(F.gelu(m(x)), 2), 4 * (64 + 48)),
        (lambda x, m: F.max_pool2d(m(x) - 9, 3, 2, 1), 4 * (8 * 7 + 4 * 7)),
        (lambda x, m: F.max_pool2d(m(x), 2, return_indices=True)[0], 4 * 48),
    ],
)
def test_max_pooling(function, tables):
    assert check(function, conv(), tables=tables).notes == []


def test_a_function_with_another_user_comes_before_the_pool():
    def both(x, m):
        found = F.relu(m(x))
        return torch.cat([F.max_pool2d(found, 2), F.avg_pool2d(found, 2)], 1)

    check(both, conv(), tables=4 * (64 + 48))


def test_max_pooling_in_one_dimension():
    function, tables = (lambda x: F.max_pool1d(F.relu(2 * x), 3, 2, 1)), 3 * (4 + 4 + 5)
    check(function, shape=(3, 9), tables=tables)


FUNCTIONS = {
    "relu, twice": lambda x: F.relu(F.relu(x)),
    "by hand": lambda x: x * F.relu6(x + 3) / 6 - x * 0.5 * (1 + torch.erf(x / 2**0.5)),
    "smooth": lambda x: (
        (F.mish(x) + F.softsign(x) + F.softplus(x) * F.tanhshrink(x) - F.silu(x))
        + (F.gelu(x, approximate="tanh") - F.logsigmoid(x).clamp(max=3))
    ),
    "in pieces": lambda x: (
        (F.celu(F.selu(F.elu(F.hardtanh(x, -2, 2) * 1.5))) + F.leaky_relu(x) + F.hardsigmoid(x))
        + (F.hardswish(x) + F.hardshrink(x) - F.relu6(x))
        + (torch.where(x > 0, x, 0.1 * x) + (x > 1).float())
    ),
    "fractions": lambda x: 1 / (1 + x * x) + x / (1 + abs(x)) - abs(x) ** 2 + x.square() * x**3,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_one_number_take_one_table(name):
    read = check(lambda x, m: FUNCTIONS[name](m(x)), conv(outputs=2), tables=128)
    assert (read.layers[0].function is RELU) == (name == "relu, twice")


@pytest.mark.parametrize("function", [lambda x: x.clamp(min=0), lambda x: F.threshold(x, 0.0, 0.0)])
def test_other_names_of_relu(function):
    assert check(function, tables=192).layers[0].function is RELU


@pytest.mark.parametrize(
    ("function", "scales"),
    [
        (F.relu, True),
        (lambda x: 2 * F.leaky_relu(x) - abs(x), True),
        (F.gelu, False),
    ],
)
def test_functions_that_scale_are_known(function, scales):
    assert check(function, tables=192).layers[0].function.scales == scales


@pytest.mark.parametrize("parameters", [1, 3])
def test_prelu(parameters):
    check(lambda x, m: m(x), nn.PReLU(parameters), tables=192)


def test_a_multiple_of_a_function_with_another_user_takes_no_table():
    def both(x, m):
        found = F.relu(x)
        return m(0.5 * found) + found

    check(both, conv(3, 3), tables=192)


def test_the_larger_and_the_smaller_of_two_secrets():
    def both(x, m, n):
        return torch.maximum(m(x), n(x)) + torch.minimum(m(x), F.relu(n(x)))

    check(both, conv(), conv(), tables=3 * 256)


def test_residual_sums_and_what_changes_in_place():
    def both(x, m):
        found = m(x)
        found += x
        F.relu_(found.view(-1, 192))
        return found

    read = check(both, conv(3, 3), tables=192)
    assert read.layers[0].function is RELU
    assert len(read.layers[0].terms) == 1


def test_sums_of_many_convolutions_are_closed():
    def function(x, *parts):
        for part in parts:
            x = x + part(F.relu(x))
        return x

    read = check(function, *(conv(3, 3) for _ in range(10)), tables=11 * 192)
    assert "9 convolutions are added" in read.notes[0]


def test_the_outputs_may_be_those_of_a_function_or_the_inputs():
    check(lambda x, m: torch.sigmoid(m(x)), nn.Linear(6, 5), shape=(6,), tables=5)
    check(F.relu, tables=192)
    check(lambda x: x)
