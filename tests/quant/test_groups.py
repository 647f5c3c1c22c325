"""Weights with a scale for each group of columns, from floats to products, files and plans."""

import numpy as np
import pytest

from nescio import quant
from nescio.errors import ArgumentError, FileError
from nescio.quant import _functions as functions
from nescio.quant.device import DeviceMatrix
from nescio.quant.search import search_model

GROUPS = (32, 64, 128)


def relative_error(weights, rng):
    """Return the error of products with a Gaussian matrix, relative to the products."""
    x = rng.standard_normal((16, weights.shape[1])).astype(np.float32)
    exact = x.astype(np.float64) @ weights.T

    def of(quantized):
        found = quant.BitSerialMatrix(quantized, 16)(x)
        return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))

    return of


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5, 8])
def test_smaller_groups_have_smaller_errors(bits, group, rng):
    weights = rng.standard_normal((96, 512)).astype(np.float32)
    weights *= np.exp(rng.standard_normal((96, 4)).repeat(128, axis=1)).astype(np.float32)

    def error(**scale):
        return quant.quantize_weights(weights, bits, **scale).mean_error(weights)

    assert error(group=group) < error(per_row=True)
    if group < 128:
        assert error(group=group) < error(group=2 * group)


def test_four_bits_of_a_gaussian_matrix(rng):
    """0.097 is the error of onnxruntime's four bits, with blocks of 32 (docs/quant-kernels.md)."""
    weights = rng.standard_normal((512, 1024)).astype(np.float32)
    error = relative_error(weights, rng)
    errors = [error(quant.quantize_weights(weights, 4, group=g)) for g in GROUPS]
    assert errors == sorted(errors)
    assert errors[0] < 0.084
    assert errors[2] < 0.098


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
@pytest.mark.parametrize("clip", [True, False])
def test_integers_and_steps_make_the_floats(bits, clip, rng):
    weights = rng.standard_normal((7, 200)).astype(np.float32)
    weights[3, 64:128] = 0
    found = quant.quantize_weights(weights, bits, group=64, clip=clip)
    assert (found.scale.dtype, found.scale.shape, found.group) == (np.float16, (7, 4), 64)
    assert found.scale[3, 1] == 0
    steps = np.repeat(found.scale.astype(np.float32), 64, axis=1)[:, :200]
    assert (found.to_floats() == found.to_integers() * steps).all()
    again = quant.from_integers(found.to_integers(), bits, found.scale, group=64)
    assert (again.planes == found.planes).all()
    assert (again.scale == found.scale).all()
    assert found.mean_error(weights) < np.square(weights).mean()


def test_extreme_weights(rng):
    tiny = quant.quantize_weights(np.full((1, 40), 1e-9, np.float32), 4, group=32)
    assert np.isfinite(tiny.to_floats()).all()
    with pytest.raises(ArgumentError, match=r"weights: found a step of .* for row 1, group 1; exp"):
        quant.quantize_weights(np.array([[1] * 64, [1] * 32 + [1e7] * 32], float), 4, group=32)
    with pytest.raises(ArgumentError, match="per_row: found a group too"):
        quant.quantize_weights(rng.standard_normal((2, 64)), 4, group=32, per_row=True)
    for group in (16, 33, True, "32"):
        with pytest.raises(ArgumentError, match=r"group: found .*, expected 32, 64 or 128"):
            quant.quantize_weights(rng.standard_normal((2, 64)), 4, group=group)
    with pytest.raises(ArgumentError, match=r"scale: found shape \(2,\) of float64, expected a nu"):
        quant.from_integers(np.ones((2, 64), int), 4, np.ones(2), group=32)
    with pytest.raises(ArgumentError, match="scale: found inf for row 0, group 1, expected a fin"):
        quant.from_integers(np.ones((2, 64), int), 4, [[1, 1e6], [1, 1]], group=32)


def test_a_matrix_on_processor_and_device(rng):
    weights = quant.quantize_weights(rng.standard_normal((30, 300)), 4, group=64)
    bias = rng.standard_normal(30).astype(np.float32)
    x = rng.standard_normal((2, 3, 300)).astype(np.float32)
    matrix = quant.BitSerialMatrix(weights, bias=bias)
    y = matrix(x)
    assert (matrix.kernel, y.shape) == ("group", (2, 3, 30))
    assert np.allclose(y, x @ weights.to_floats().T + bias, atol=0.02 * np.abs(y).max())
    device = DeviceMatrix(weights, bias=bias, device="emulated")
    assert device(x).tobytes() == y.tobytes()
    assert quant.BitSerialMatrix(weights, bias=bias, device="emulated")(x).tobytes() == y.tobytes()
    assert matrix.with_activation_bits(16)(x).shape == y.shape
    with pytest.raises(ArgumentError, match="found weights with groups of 64 columns, expected a"):
        matrix.multiply(np.ones(300, int))


def test_files_and_plans(rng, tmp_path):
    first = rng.standard_normal((40, 70)).astype(np.float32)
    second = rng.standard_normal((10, 40)).astype(np.float32)
    model = quant.Sequential(
        quant.Linear(quant.FloatMatrix(first)),
        functions.ReLU(),
        quant.Linear(quant.FloatMatrix(second)),
    )
    made = quant.quantize(model, {"*": (4, 8)}, group=32)
    x = rng.standard_normal((5, 70)).astype(np.float32)
    quant.save(made, tmp_path / "model.safetensors")
    loaded = quant.load(tmp_path / "model.safetensors")
    assert loaded(x).tobytes() == made(x).tobytes()
    assert loaded["0"].matrix.weights.group == 32
    plain = quant.quantize(model, {"*": (4, 8)}, per_row=True)
    assert "group" not in plain["0"].options()  # as in files of earlier versions
    made["0"].options = lambda: {**type(made["0"]).options(made["0"]), "group": 48}
    quant.save(made, tmp_path / "bad.safetensors")
    with pytest.raises(FileError, match="group: found 48, expected 32, 64 or 128"):
        quant.load(tmp_path / "bad.safetensors")


def test_a_search_of_groups(rng):
    weights = rng.standard_normal((30, 128)).astype(np.float32)
    model = quant.Sequential(quant.Linear(quant.FloatMatrix(weights)))
    x = rng.standard_normal((9, 128)).astype(np.float32)

    def quality(found):
        return -float(np.square(found(x) - x @ weights.T).mean())

    options = {"weight_bits": (4,), "activation_bits": (8,), "cost": lambda *_: 1.0}
    finds = [
        search_model(model, quality, **options, **scale).points[0].quality
        for scale in ({}, {"group": 32})
    ]
    assert finds[1] > finds[0]
