"""Encodings of layers: their polynomials are those of the specification, their products exact."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from mpc.layers import (
    convolve,
    polynomials,
    random_convolution,
    random_input,
    random_weights,
    spec_layer,
    spec_sum,
)
from nescio.errors import ArgumentError
from nescio.mpc._encoding import Encoding, cheapest
from nescio.mpc._layout import ConvolutionShape, Layout, linear
from spec import rlwe, rlwe_encoding


def encoding_of(shape, tile, channels, packed, wider=0):
    layout = Layout(replace(shape, out_channels=1), tile, 1, channels)
    layout = replace(layout, pitch=layout.least_pitch + wider)
    return Encoding((layout,), shape.out_channels, packed)


def joined(*shapes, given=()):
    """Returns the encoding of a sum; `given` layouts are those of other convolutions."""
    return cheapest(shapes, tuple(layout for own in given for layout in own.layouts), 5, 32)


# Several polynomials of inputs and outputs, a last one that is not full; stride; tiles; matrices;
# more padding than taps, an image without pixels under some taps; sums.
BLOCK = ConvolutionShape(5, 9, (9, 9), (3, 3), (2, 2), (1, 1))
ENCODINGS = [
    encoding_of(ConvolutionShape(5, 3, (6, 7), (3, 2), (1, 1), (1, 0)), (6, 6), 2, 2),
    encoding_of(ConvolutionShape(5, 3, (6, 7), (3, 4), (1, 1), (1, 2)), (6, 8), 3, 2, wider=3),
    encoding_of(ConvolutionShape(3, 3, (6, 7), (5, 5), (1, 1), (2, 2)), (6, 7), 2, 3),
    encoding_of(ConvolutionShape(2, 3, (9, 8), (3, 3), (2, 2), (1, 1)), (5, 4), 3, 2),
    encoding_of(ConvolutionShape(2, 2, (7, 7), (2, 3), (3, 2), (2, 1)), (2, 3), 1, 2),
    encoding_of(ConvolutionShape(2, 3, (3, 4), (2, 2), (1, 1), (5, 3)), (12, 9), 2, 2),
    encoding_of(ConvolutionShape(4, 3, (3, 4), (1, 1), (1, 1), (2, 1)), (7, 6), 2, 3),
    encoding_of(ConvolutionShape(1, 1, (5, 5), (1, 1), (2, 3)), (1, 2), 1, 1),
    encoding_of(linear(7, 5), (1, 1), 3, 2),
    encoding_of(linear(4, 3, 2), (1, 2), 4, 3),
    joined(ConvolutionShape(3, 5, (6, 6), (3, 3), (1, 1), (1, 1)), ConvolutionShape(4, 5, (6, 6))),
    joined(ConvolutionShape(3, 5, (5, 5), (3, 3), (1, 1), (1, 1)), given=[Encoding.of(BLOCK)]),
    joined(
        ConvolutionShape(3, 5, (6, 7), (5, 1), (1, 1), (2, 0)),
        ConvolutionShape(2, 5, (12, 14), (1, 5), (2, 2), (0, 2)),
    ),
]


def random_images(rng, encoding):
    """Returns the input and the weights of each layout."""
    shapes = [replace(own.shape, out_channels=encoding.out_channels) for own in encoding.layouts]
    return (
        [random_input(rng, shape) for shape in shapes],
        [random_weights(rng, shape) for shape in shapes],
    )


def lists(arrays):
    return [array.tolist() for array in arrays]


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
def test_polynomials_are_those_of_the_specification(encoding, rng):
    total = spec_sum(encoding)
    images, weights = random_images(rng, encoding)
    for layout, layer, x in zip(encoding.layouts, total.layers, images, strict=True):
        assert layout.encode(x).tolist() == rlwe_encoding.encode_input(layer, x.tolist())
    found = polynomials(encoding, weights).tolist()
    assert found == rlwe_encoding.encode_weights(total, lists(weights))

    where = rlwe_encoding.positions(total)
    count = sum(map(len, where)) * encoding.tile_count
    numbers = rng.integers(0, 2**32, count, np.uint32)
    assert encoding.decode(numbers).tolist() == rlwe_encoding.decode(total, numbers.tolist())


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
def test_products_of_the_specification_are_sums_of_convolutions(encoding, rng):
    total = spec_sum(encoding)
    images, weights = (lists(own) for own in random_images(rng, encoding))
    sent = [
        rlwe_encoding.encode_input(layer, x) for layer, x in zip(total.layers, images, strict=True)
    ]
    kernels = rlwe_encoding.encode_weights(total, weights)
    results = []
    for tile, output in itertools.product(range(encoding.tile_count), range(encoding.outputs)):
        own = [
            polynomial
            for layout, part in zip(encoding.layouts, sent, strict=True)
            for polynomial in part[tile * layout.inputs : (tile + 1) * layout.inputs]
        ]
        products = [
            rlwe.multiply(k, m, rlwe.MODULUS) for k, m in zip(kernels[output], own, strict=True)
        ]
        sums = [sum(column) % rlwe.MODULUS for column in zip(*products, strict=True)]
        results += [sums[at] for at in rlwe_encoding.positions(total)[output]]
    expected = sum(
        np.array(rlwe_encoding.convolve(*own))
        for own in zip(total.layers, images, weights, strict=True)
    )
    assert rlwe_encoding.decode(total, results) == (expected % rlwe.MODULUS).tolist()


def test_convolutions_of_the_tests_are_those_of_the_specification(rng):
    for encoding in ENCODINGS:
        for layout, x, weights in zip(encoding.layouts, *random_images(rng, encoding), strict=True):
            expected = rlwe_encoding.convolve(spec_layer(layout), x.tolist(), weights.tolist())
            shape = replace(layout.shape, out_channels=encoding.out_channels)
            assert convolve(shape, x, weights).tolist() == expected


def test_the_chosen_encoding_has_places_for_all_results(rng):
    for _ in range(30):
        encoding = Encoding.of(random_convolution(rng))
        (layout,) = encoding.layouts
        rows, columns = layout.shape.output
        assert encoding.fits
        assert layout.tiles[0] * layout.tile[0] >= rows
        assert layout.tiles[1] * layout.tile[1] >= columns


@pytest.mark.parametrize(
    ("shape", "bits", "tiles", "inputs", "outputs", "sent", "received"),
    [
        (ConvolutionShape(16, 16, (32, 32), (3, 3), (1, 1), (1, 1)), 32, 1, 6, 16, 184352, 393216),
        (ConvolutionShape(16, 16, (32, 32), (3, 3), (1, 1), (1, 1)), 18, 1, 6, 16, 184352, 249856),
        (ConvolutionShape(32, 32, (16, 16), (3, 3), (1, 1), (1, 1)), 32, 1, 8, 11, 245792, 258048),
        (ConvolutionShape(32, 32, (16, 16), (3, 3), (1, 1), (1, 1)), 18, 1, 5, 16, 153632, 231424),
        (ConvolutionShape(64, 64, (8, 8), (3, 3), (1, 1), (1, 1)), 32, 1, 8, 11, 245792, 241664),
        (linear(64, 10), 32, 1, 1, 1, 30752, 20520),
        (ConvolutionShape(3, 8, (100, 100), (3, 3)), 32, 3, 3, 8, 276512, 801984),
        (ConvolutionShape(3, 3, (10, 10), (3, 3)), 5, 1, 1, 1, 30752, 6656 + 120),
    ],
    ids=str,
)
def test_sizes_of_messages(shape, bits, tiles, inputs, outputs, sent, received):
    encoding = Encoding.of(shape, bits)
    (layout,) = encoding.layouts
    assert (encoding.tile_count, layout.inputs, encoding.outputs) == (tiles, inputs, outputs)
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
    (layout,) = encoding.layouts
    for x in (np.zeros((2, 4, 4), np.uint32), np.zeros((2, 4, 5), np.int32)):
        with pytest.raises(ArgumentError, match=r"input: found .*, expected uint32 \(2, 4, 5\)"):
            layout.encode(x)
    for weights in (np.zeros((3, 2, 3), np.int8), np.zeros((3, 2, 3, 3), np.uint8)):
        with pytest.raises(ArgumentError, match=r"weights: found .* \(3, 2, 3, 3\)"):
            encoding.coefficients(layout, weights)
