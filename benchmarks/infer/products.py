"""All products of ResNet-32 for images of 32 x 32: bytes, and CPU time of both parties by step."""

import statistics
import time
from itertools import pairwise

import numpy as np

from nescio import _core
from nescio.mpc._activation import Activation
from nescio.mpc._linear import ClientKeys, PublicKey, ServerWeights, ciphertexts
from nescio.mpc._products import Product, ProductPlan
from nescio.mpc._public import PublicLayer, PublicNetwork, PublicTerm

__all__ = ["measure", "resnet32"]

_TABLE_BITS, _SHIFT, _SHORTCUT_SHIFT = 8, 12, 10
_STEPS = ("encrypt", "parse", "evaluate", "decrypt")
_BLOCKS = 5


def resnet32() -> PublicNetwork:
    """Returns the shapes of ResNet-32, with the shifts that most of its layers have at 8 bits."""
    layers = [_layer([_conv(0, (3, 32, 32), 16)])]
    for channels in (16, 32, 64):
        for _ in range(_BLOCKS):
            before, source = layers[-1].outputs, len(layers)
            stride = channels // before[0]
            layers.append(_layer([_conv(source, before, channels, stride)]))
            main = _conv(source + 1, layers[-1].outputs, channels)
            layers.append(_layer([main, _shortcut(source, before, channels, stride)]))
    last = PublicTerm(len(layers), layers[-1].outputs, (10,))
    return PublicNetwork((3, 32, 32), (*layers, PublicLayer((10,), (last,), None, 0)))


def _conv(source: int, inputs: tuple[int, ...], channels: int, stride: int = 1) -> PublicTerm:
    outputs = channels, inputs[1] // stride, inputs[2] // stride
    return PublicTerm(source, inputs, outputs, (3, 3), (stride, stride), (1, 1))


def _shortcut(source: int, inputs: tuple[int, ...], channels: int, stride: int) -> PublicTerm:
    outputs = channels, inputs[1] // stride, inputs[2] // stride
    return PublicTerm(source, inputs, outputs, (1, 1), (stride, stride))


def _layer(terms: list[PublicTerm]) -> PublicLayer:
    relu = Activation(lambda x: np.maximum(x, 0), bits=_TABLE_BITS)
    shift = _SHIFT if len(terms) == 1 else _SHORTCUT_SHIFT
    return PublicLayer(terms[0].outputs, tuple(terms), relu, shift)


def measure(repeat: int) -> None:
    """Prints the bytes of all messages, and medians of the CPU time of each step."""
    network = resnet32()
    plan, pool, random = ProductPlan.of(network), _core.ThreadPool(1), np.random.default_rng(1)
    keys = ClientKeys(pool)
    public_key = PublicKey(keys.public_key, pool)
    weights = [[_weights(own, random, pool) for own in layer] for layer in plan.layers]
    shapes = [network.inputs, *(layer.outputs for layer in network.layers)]
    masks = [random.integers(0, 2**32, (1, *shape), np.uint32) for shape in shapes]
    steps: list[list[float]] = []
    for _ in range(repeat):
        times = [time.process_time()]
        sent = [keys.encrypt(own.layout, own.image(masks)) for own in plan.messages]
        times.append(time.process_time())
        parsed = [
            ciphertexts(own.layout, message, pool)
            for own, message in zip(plan.messages, sent, strict=True)
        ]
        times.append(time.process_time())
        answers = [
            (product.encoding, own.evaluate(public_key, [parsed[k] for k in product.messages])[0])
            for layer, prepared in zip(plan.layers, weights, strict=True)
            for product, own in zip(layer, prepared, strict=True)
        ]
        times.append(time.process_time())
        for encoding, answer in answers:
            keys.decrypt(encoding, answer)
        times.append(time.process_time())
        steps.append([1e3 * (end - begin) for begin, end in pairwise(times)])
    medians = [statistics.median(own) for own in zip(*steps, strict=True)]
    bytes_in, bytes_out = sum(map(len, sent)), sum(len(answer) for _, answer in answers)
    print(
        f"ResNet-32: {bytes_in:,} bytes in {len(sent)} messages of masks, {bytes_out:,} bytes of "
        f"answers, {(bytes_in + bytes_out) / 1e6:.2f} MB"
    )
    text = ", ".join(f"{name} {own:.1f}" for name, own in zip(_STEPS, medians, strict=True))
    print(f"CPU time of both parties: {text}: {sum(medians):.0f} ms")


def _weights(
    product: Product, random: np.random.Generator, pool: _core.ThreadPool
) -> ServerWeights:
    """Prepares random weights of 8 bits."""
    encoding = product.encoding
    shapes = [
        (encoding.out_channels, own.shape.in_channels, *own.shape.kernel)
        for own in encoding.layouts
    ]
    drawn = [random.integers(-128, 128, shape, np.int8) for shape in shapes]
    return ServerWeights(encoding, drawn, pool)
