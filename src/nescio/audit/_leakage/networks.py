"""The networks of the chapter, as PyTorch modules with weights from a seed."""

import torch
from torch import nn

__all__ = ["lenet", "perceptron"]


def lenet(classes: int = 10, seed: int = 0) -> nn.Module:
    """Returns LeNet for 3 x 32 x 32 images: 62,006 parameters with ten classes."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            *(nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
            nn.Flatten(),
            *(nn.Linear(400, 120), nn.ReLU()),
            *(nn.Linear(120, 84), nn.ReLU()),
            nn.Linear(84, classes),
        )


def perceptron(inputs: int, hidden: int, classes: int, *, smooth: bool, seed: int = 0) -> nn.Module:
    """Returns a two-layer perceptron; `smooth` uses sigmoids, for second derivatives."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        between: nn.Module = nn.Sigmoid() if smooth else nn.ReLU()
        return nn.Sequential(
            nn.Flatten(), nn.Linear(inputs, hidden), between, nn.Linear(hidden, classes)
        )
