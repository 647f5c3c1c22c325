"""A plan to try the cluster with: LeNet's shapes and random weights."""

import argparse

import numpy as np

from nescio.mpc import Convolution, Dense

# `compile` takes a model of PyTorch; this needs none, and its weights mean nothing.
from nescio.mpc._plans.compiler import plan_of
from nescio.mpc._plans.floats import FloatLayer, FloatTerm


def write_sample(arguments: argparse.Namespace) -> int:
    """Writes a plan and its public part."""
    random = np.random.default_rng(arguments.seed)
    side = arguments.side
    small = side // 2 - 2
    shapes = [(6, 1, 5, 5), (16, 6, 5, 5), (84, 16 * small * small), (10, 84)]
    maps: list[Convolution | Dense] = [
        Convolution(np.zeros(shapes[0], int), (1, side, side), padding=(2, 2)),
        Convolution(np.zeros(shapes[1], int), (6, side, side), (2, 2)),
        Dense(np.zeros(shapes[2], int), (16, small, small)),
        Dense(np.zeros(shapes[3], int)),
    ]
    layers = []
    for number, (shape, own) in enumerate(zip(shapes, maps, strict=True)):
        weights = random.normal(0, np.prod(shape[1:]) ** -0.5, shape)
        layers.append(
            FloatLayer((FloatTerm(number, own, weights),), random.normal(0, 0.1, shape[0]))
        )
    inputs = random.uniform(0, 1, (40, 1, side, side))
    plan = plan_of(layers, inputs[:30], held=inputs[30:])
    plan.save(arguments.plan)
    arguments.public.write_bytes(plan.public.to_bytes())
    return 0
