"""Encodings of layers: their polynomials are those of the specification, their products exact."""

import itertools

import numpy as np
import pytest

from mpc.layers import convolve, random_convolution, random_input, random_weights, spec_layer
from nescio.errors import ArgumentError
from nescio.mpc._encoding import ConvolutionShape, Encoding, Packing, linear
from spec import rlwe, rlwe_encoding

# Several polynomials of inputs and outputs, a last one that is not full; stride; tiles; matrices.
ENCODINGS = [
    Encoding(ConvolutionShape(5, 3, (6, 7), (3, 2), (1, 1), (1, 0)), Packing((6, 6), 2, 2)),
    Encoding(ConvolutionShape(2, 3, (9, 8), (3, 3), (2, 2), (1, 1)), Packing((5, 4), 3, 2)),
    Encoding(ConvolutionShape(2, 2, (7, 7), (2, 3), (3, 2), (2, 1)), Packing((2, 3), 1, 2)),
    Encoding(ConvolutionShape(1, 1, (5, 5), (1, 1), (2, 3)), Packing((1, 2), 1, 1)),
    Encoding(linear(7, 5), Packing((1, 1), 3, 2)),
    Encoding(linear(4, 3, 2), Packing((1, 2), 4, 3)),
]


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
def test_polynomials_are_those_of_the_specification(encoding, rng):
    layer, shape = spec_layer(encoding), encoding.shape
    x, weights = random_input(rng, shape), random_weights(rng, shape)
    assert encoding.encode_input(x).tolist() == rlwe_encoding.encode_input(layer, x.tolist())
    found = encoding.encode_weights(weights).tolist()
    assert found == rlwe_encoding.encode_weights(layer, weights.tolist())

    where = rlwe_encoding.positions(layer)
    count = sum(map(len, where)) * encoding.tile_count
    numbers = rng.integers(0, 2**32, count, np.uint32)
    assert encoding.decode(numbers).tolist() == rlwe_encoding.decode(layer, numbers.tolist())


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
def test_products_of_the_specification_are_convolutions(encoding, rng):
    layer = spec_layer(encoding)
    x = random_input(rng, encoding.shape).tolist()
    weights = random_weights(rng, encoding.shape).tolist()
    sent, kernels = (
        rlwe_encoding.encode_input(layer, x),
        rlwe_encoding.encode_weights(layer, weights),
    )
    results = []
    for tile, output in itertools.product(range(encoding.tile_count), range(encoding.outputs)):
        own = sent[tile * encoding.inputs : (tile + 1) * encoding.inputs]
        products = [
            rlwe.multiply(k, m, rlwe.MODULUS) for k, m in zip(kernels[output], own, strict=True)
        ]
        total = [sum(column) % rlwe.MODULUS for column in zip(*products, strict=True)]
        results += [total[at] for at in rlwe_encoding.positions(layer)[output]]
    assert rlwe_encoding.decode(layer, results) == rlwe_encoding.convolve(layer, x, weights)


def test_convolutions_of_the_tests_are_those_of_the_specification(rng):
    for encoding in ENCODINGS:
        x, weights = random_input(rng, encoding.shape), random_weights(rng, encoding.shape)
        expected = rlwe_encoding.convolve(spec_layer(encoding), x.tolist(), weights.tolist())
        assert convolve(encoding.shape, x, weights).tolist() == expected


def test_the_chosen_packing_fits_and_covers_the_results(rng):
    for _ in range(30):
        encoding = Encoding.of(random_convolution(rng))
        (h, w), (k, m) = encoding.packing.tile, encoding.shape.taps
        block = (h + k - 1) * (w + m - 1)
        assert block * encoding.packing.inputs * encoding.packing.outputs <= rlwe.N
        rows, columns = encoding.shape.output
        assert encoding.tiles[0] * h >= rows
        assert encoding.tiles[1] * w >= columns


@pytest.mark.parametrize(
    ("shape", "tiles", "inputs", "outputs", "sent", "received"),
    [
        (ConvolutionShape(16, 16, (32, 32), (3, 3), (1, 1), (1, 1)), 1, 6, 16, 184352, 393216),
        (ConvolutionShape(32, 32, (16, 16), (3, 3), (1, 1), (1, 1)), 1, 8, 11, 245792, 258048),
        (ConvolutionShape(64, 64, (8, 8), (3, 3), (1, 1), (1, 1)), 1, 8, 13, 245792, 282624),
        (linear(64, 10), 1, 1, 1, 30752, 20520),
        (ConvolutionShape(3, 8, (100, 100), (3, 3)), 3, 3, 8, 276512, 801984),
    ],
    ids=str,
)
def test_sizes_of_messages(shape, tiles, inputs, outputs, sent, received):
    encoding = Encoding.of(shape)
    assert (encoding.tile_count, encoding.inputs, encoding.outputs) == (tiles, inputs, outputs)
    assert (encoding.bytes_in, encoding.bytes_out) == (sent, received)


@pytest.mark.parametrize(
    "arguments",
    [
        (0, 1, (3, 3)),
        (1, 0, (3, 3)),
        (1, 1, (3, 3), (4, 3)),
        (1, 1, (3, 3), (0, 1)),
        (1, 1, (3, 3), (1, 1), (0, 1)),
        (1, 1, (3, 3), (1, 1), (1, 1), (-1, 0)),
    ],
)
def test_shapes_that_are_not_convolutions(arguments):
    with pytest.raises(ArgumentError, match="ConvolutionShape"):
        ConvolutionShape(*arguments)


def test_a_kernel_of_more_taps_than_coefficients():
    with pytest.raises(ArgumentError, match="the taps of a kernel exceed 4096 coefficients"):
        Encoding.of(ConvolutionShape(1, 1, (65, 65), (65, 64)))


def test_arrays_of_another_shape_or_dtype():
    encoding = Encoding.of(ConvolutionShape(2, 3, (4, 5), (3, 3)))
    for x in (np.zeros((2, 4, 4), np.uint32), np.zeros((2, 4, 5), np.int32)):
        with pytest.raises(ArgumentError, match=r"input: found .*, expected uint32 \(2, 4, 5\)"):
            encoding.encode_input(x)
    for weights in (np.zeros((3, 2, 3), np.int8), np.zeros((3, 2, 3, 3), np.uint8)):
        with pytest.raises(ArgumentError, match=r"weights: found .* \(3, 2, 3, 3\)"):
            encoding.encode_weights(weights)
