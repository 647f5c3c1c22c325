"""Whole networks as layers: the outputs of PyTorch, the counts of tables, and a quantized run."""

import numpy as np
import pytest

from nescio.mpc._compile import read_model
from nescio.mpc._plans.floats import run
from nescio.mpc._plans.quantize import quantize
from pytorch.networks import (
    VGG16,
    Branches,
    LeNet,
    ResNet34,
    Separable,
    Waves,
    mlp,
    randomized,
    torch,
)

from benchmarks.infer.networks import ResNet32  # isort: skip

NETWORKS = {
    "lenet": (LeNet, (1, 28, 28), 58_624),
    "resnet-32": (ResNet32, (3, 32, 32), 303_104),
    "vgg-16": (lambda: VGG16(divisor=8), (3, 32, 32), 276_480 // 8),
    "vgg-16 with a head": (lambda: VGG16(8, places=7, hidden=64), (3, 32, 32), 276_480 // 8 + 64),
    "resnet-34": (lambda: ResNet34(divisor=8), (3, 32, 32), 966_656 // 8),
    # Its stem's pool: 2 x 32 x 16 and 2 x 16 x 16 in each of 8 channels, less the borders, and 16
    # x 16 after it, instead of 32 x 32.
    "resnet-34 with a pool": (lambda: ResNet34(8, small=False), (3, 64, 64), 42_112),
    "separable": (Separable, (3, 16, 16), 8 * 64 + 8 * 64 + 16 * 64),
    "one dimension": (Waves, (2, 32), 6 * 16 + 6 * 8),
    "branches": (Branches, (3, 8, 8), 5 * 4 * 64 + 4 * (4 * 64 - 32)),
    "mlp": (mlp, (3, 4, 4), 40),
}


def outputs_of(model, x):
    with torch.no_grad():
        return model.double()(x).numpy()


def results(read, x):
    *_, found = run(read.layers, x.numpy().reshape(len(x), *read.inputs))
    return found.reshape(len(x), *read.outputs)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_layers_compute_what_the_model_computes(name):
    build, shape, tables = NETWORKS[name]
    torch.manual_seed(3)
    model = randomized(build())
    read = read_model(model, torch.zeros(1, *shape))
    x = torch.randn(2, *shape, dtype=torch.float64)
    expected = outputs_of(model, x)
    assert np.allclose(results(read, x), expected, rtol=1e-5, atol=1e-9 * np.abs(expected).max())
    assert expected.std() > 0.01
    assert read.tables == tables
    assert read.notes == []


def test_the_model_is_left_as_it_was():
    model = randomized(Separable())
    model.train()
    model.norm.eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    read_model(model, torch.zeros(1, 3, 16, 16))
    assert model.training
    assert model.norm1.training
    assert not model.norm.training
    for name, value in model.state_dict().items():
        assert value.dtype == before[name].dtype
        assert torch.equal(value, before[name])


def test_the_example_decides_only_the_shape():
    model = randomized(Waves())
    x = torch.randn(1, 2, 32)
    first, second = (read_model(model, example) for example in (x, torch.zeros(1, 2, 32)))
    assert np.array_equal(results(first, x.double()), results(second, x.double()))


@pytest.mark.parametrize("name", ["one dimension", "branches"])
def test_the_layers_are_quantized(name):
    build, shape, _ = NETWORKS[name]
    torch.manual_seed(4)
    model = randomized(build())
    read = read_model(model, torch.zeros(1, *shape))
    x = torch.randn(16, *shape, dtype=torch.float64)
    own = quantize(read.layers, x.numpy().reshape(16, *read.inputs), bits=10)
    found = own.network.simulate(own.encode(x.numpy().reshape(16, *read.inputs)))
    assert sum(found.wraps) == 0
    expected = outputs_of(model, x)
    errors = own.decode(found.outputs).reshape(expected.shape) - expected
    assert np.abs(errors).mean() < 0.1 * expected.std()
