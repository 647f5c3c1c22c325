"""Random layers, their specification, and their products modulo 2^32."""

import numpy as np

from nescio.mpc._layout import ConvolutionShape, N, linear
from spec import rlwe_encoding


def relu(x):
    return np.maximum(x, 0)


def weights(random, *shape, limit=20):
    """Returns weights for a map of a network."""
    return random.integers(-limit, limit + 1, shape)


def random_convolution(rng):
    """Returns a small shape of any stride and padding, and sometimes a matrix product."""
    if rng.random() < 0.2:
        return linear(*(int(n) for n in rng.integers(1, 300, 2)), int(rng.integers(1, 4)))
    kernel = tuple(int(k) for k in rng.integers(1, 6, 2))
    image = tuple(int(k + n) for k, n in zip(kernel, rng.integers(0, 15, 2), strict=True))
    channels = (int(c) for c in rng.integers(1, 9, 2))
    stride, padding = (tuple(int(n) for n in rng.integers(a, 4, 2)) for a in (1, 0))
    return ConvolutionShape(*channels, image, kernel, stride, padding)


def random_input(rng, shape):
    return rng.integers(0, 2**32, (shape.in_channels, *shape.image), np.uint32)


def random_weights(rng, shape, bits=8):
    size = (shape.out_channels, shape.in_channels, *shape.kernel)
    return rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), size, np.int32)


def convolve(shape, x, weights):
    """Returns the convolution, modulo 2^32."""
    (rows, columns), (down, across) = shape.output, shape.stride
    pads = [(0, 0), *((pad, pad) for pad in shape.padding)]
    padded = np.pad(x, pads)
    out = np.zeros((shape.out_channels, rows, columns), np.uint32)
    for a in range(shape.kernel[0]):
        for b in range(shape.kernel[1]):
            part = padded[:, a::down, b::across][:, :rows, :columns]
            out += np.einsum("oc,cij->oij", weights[:, :, a, b].astype(np.uint32), part)
    return out


def spec_layer(layout):
    """Returns the layer of the specification with the same layout."""
    shape = layout.shape
    sizes = (shape.in_channels, shape.image, shape.kernel, shape.stride, shape.padding)
    return rlwe_encoding.Layer(*sizes, layout.tile, layout.pitch, layout.channels)


def spec_sum(encoding):
    """Returns the specification of an encoding."""
    layers = tuple(map(spec_layer, encoding.layouts))
    return rlwe_encoding.Sum(layers, encoding.out_channels, encoding.packed)


def polynomials(encoding, weights):
    """Returns the weights of a product as polynomials (outputs, inputs, N)."""
    found = []
    for layout, own in zip(encoding.layouts, weights, strict=True):
        whole = np.zeros((encoding.outputs, layout.inputs, N), np.int32)
        whole[:, :, encoding.positions(layout)] = encoding.coefficients(layout, own)
        found.append(whole)
    return np.concatenate(found, axis=1)
