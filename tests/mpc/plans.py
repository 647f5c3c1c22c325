"""A small plan of floats, without PyTorch, for tests of services."""

import numpy as np

from nescio.mpc._maps import Convolution, Dense
from nescio.mpc._plans.compiler import plan_of
from nescio.mpc._plans.floats import FloatLayer, FloatTerm


def small_plan(seed=5, *, size=6):
    """Returns a plan of a convolution and a matrix product, and inputs from 0 to 1."""
    random = np.random.default_rng(seed)
    shape = (3, size, size)
    kernels = random.normal(0, 0.3, (2, 3, 3, 3))
    first = Convolution(np.zeros(kernels.shape, int), shape, padding=(1, 1))
    matrix = random.normal(0, 0.2, (4, 2 * size * size))
    last = Dense(np.zeros(matrix.shape, int), (2, size, size))
    layers = [
        FloatLayer((FloatTerm(0, first, kernels),), random.normal(0, 0.5, 2)),
        FloatLayer((FloatTerm(1, last, matrix),), random.normal(0, 0.5, 4)),
    ]
    inputs = random.uniform(0, 1, (40, *shape))
    return plan_of(layers, inputs[:30], held=inputs[30:]), inputs


def near(plan, outputs, inputs):
    """Tests if outputs are those of the simulator, up to the roundings by chance."""
    draws = np.stack([plan.simulate(inputs).outputs for _ in range(32)])
    return (np.abs(outputs - draws.mean(0)) <= 8 * draws.std(0) + 1e-6).all()
