"""Models of NumPy layers for tests."""

import itertools

import numpy as np

from nescio import quant
from nescio.quant import _functions as functions


def linear(rng, inputs, outputs, *, bias=True):
    weight = (rng.standard_normal((outputs, inputs)) / inputs**0.5).astype(np.float32)
    own = rng.standard_normal(outputs).astype(np.float32) if bias else None
    return quant.Linear(quant.FloatMatrix(weight, own))


def perceptron(rng, sizes=(70, 33, 5)):
    """Returns Linear layers "0", "2" and so on, with ReLU between them."""
    layers = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [linear(rng, inputs, outputs), functions.ReLU()]
    return quant.Sequential(*layers[:-1])


def stack(rng, kind, inputs=10, hidden=9, *, layers=1, bidirectional=False, batch_first=False):
    """Returns an LSTM or a GRU."""
    gates = {quant.LSTM: 4, quant.GRU: 3}[kind]
    matrices = {}
    for layer in range(layers):
        for suffix in ("", "_reverse") if bidirectional else ("",):
            below = inputs if layer == 0 else hidden * (2 if bidirectional else 1)
            matrices[f"ih_l{layer}{suffix}"] = linear(rng, below, gates * hidden)
            matrices[f"hh_l{layer}{suffix}"] = linear(rng, hidden, gates * hidden)
    return kind(matrices, layers=layers, bidirectional=bidirectional, batch_first=batch_first)


def cell(rng, kind, inputs=10, hidden=9):
    """Returns an LSTM cell or a GRU cell."""
    gates = {quant.LSTMCell: 4, quant.GRUCell: 3}[kind]
    return kind(linear(rng, inputs, gates * hidden), linear(rng, hidden, gates * hidden))


def floats(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)
