"""Plans: matching of layer names, and errors for names without a match."""

import numpy as np
import pytest

from nescio import quant
from nescio.errors import ArgumentError
from quant.models import cell, floats, linear, perceptron, stack


@pytest.fixture
def model(rng):
    return quant.Group(
        {
            "encoder": perceptron(rng, (6, 7, 8, 9)),
            "embedding": quant.Embedding(floats(rng, 4, 6)),
            "rnn": stack(rng, quant.LSTM, 9, 5, layers=2),
            "cell": cell(rng, quant.GRUCell, 5, 4),
            "decoder": linear(rng, 4, 3),
        }
    )


def bits(layer):
    matrix = layer.matrix
    quantized = isinstance(matrix, quant.BitSerialMatrix)
    return (matrix.weights.bits, matrix.activation_bits) if quantized else None


def test_names_wildcards_and_their_order(model):
    plan = {"encoder.*": (4, 8), "encoder.2": (2, 16), "*coder.?": (1, 32), "encoder.4": None}
    small = quant.quantize(model, plan)
    found = {i: bits(small[f"encoder.{i}"]) for i in (0, 2, 4)}
    assert found == {0: (4, 8), 2: (2, 16), 4: None}
    assert bits(small["decoder"]) is None
    assert bits(model["encoder.0"]) is None
    assert small["embedding"] is model["embedding"]


def test_recurrent_layers_are_named_as_wholes(model):
    small = quant.quantize(model, {"rnn": (3, 8), "cell": (5, 16)})
    assert {bits(part) for part in small["rnn"].children().values()} == {(3, 8)}
    assert {bits(part) for part in small["cell"].children().values()} == {(5, 16)}
    assert small["rnn"].layers == 2


def test_what_is_computed_is_what_the_quantized_weights_say(rng):
    model = perceptron(rng, (70, 5))
    x = floats(rng, 3, 70)
    for options in ({}, {"per_row": True}, {"clip": False}):
        small = quant.quantize(model, {"0": (4, 16)}, threads=1, **options)
        matrix = model[0].matrix
        weights = quant.quantize_weights(matrix.weight, 4, **options)
        assert (small(x) == quant.BitSerialMatrix(weights, 16, bias=matrix.bias)(x)).all()


def test_the_root_has_an_empty_name(rng):
    assert bits(quant.quantize(linear(rng, 3, 4), {"": (2, 8)})) == (2, 8)
    assert bits(quant.quantize(linear(rng, 3, 4), {"*": (2, 8)})) == (2, 8)


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"encodr.0": (4, 8)}, "found no such layer, expected a name such as 'encoder.0'"),
        ({"fc*": (4, 8)}, "plan, 'fc*': found no such layer"),
        ({"encoder.1": (4, 8)}, "'encoder.1', found a ReLU, expected a Linear, LSTM, GRU"),
        ({"embedding": (4, 8)}, "found a Embedding"),
        ({"e*": (4, 8)}, "'embedding', found a Embedding"),
        ({"encoder": (4, 8)}, "found a Sequential"),
        ({"rnn.ih_l0": (4, 8)}, "found no such layer"),
        ({"decoder": (0, 8)}, "plan, 'decoder': weight bits: found 0, expected 1 to 8"),
        ({"decoder": (9, 8)}, "found 9"),
        ({"decoder": (4, 4)}, "activation bits: found 4, expected 8, 16 or 32"),
        ({"decoder": 4}, "expected (weight bits, activation bits)"),
        ({"decoder": (4, 8, 8)}, "found (4, 8, 8)"),
        ({"decoder": "48"}, "found '48'"),
        ({3: (4, 8)}, "found 3, expected a layer name"),
        ([("decoder", (4, 8))], "expected a mapping"),
        ({"decoder": (4, 8), "nothing": None}, "'nothing': found no such layer"),
    ],
)
def test_plans_that_do_not_fit(model, plan, said):
    with pytest.raises(ArgumentError) as caught:
        quant.quantize(model, plan)
    assert said in str(caught.value)


def test_nothing_is_quantized_twice(model):
    small = quant.quantize(model, {"decoder": (4, 8), "rnn": (4, 8)})
    for name in ("decoder", "rnn"):
        with pytest.raises(ArgumentError, match="found a quantized L"):
            quant.quantize(small, {name: (2, 8)})


def test_a_model_without_layers_says_so():
    with pytest.raises(ArgumentError, match="the model has no layer that can be quantized"):
        quant.quantize(quant.Embedding(np.ones((2, 2))), {"fc": (4, 8)})


def test_models_that_are_none():
    for model in (3, {"0": 1}, None):
        with pytest.raises(ArgumentError, match="model: found .*, expected a Layer"):
            quant.quantize(model, {"0": (4, 8)})
