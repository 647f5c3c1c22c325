"""The two hidden layers of the recommenders."""

import torch

HIDDEN = (200, 80)
"""Their widths, as in the paper's code."""


def two_layers(inputs: int, dropout: float) -> torch.nn.Sequential:
    """Makes the layers from a vector of `inputs` numbers to one logit."""
    first, second = HIDDEN
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, first),
        torch.nn.ReLU(),
        torch.nn.Dropout(dropout),
        torch.nn.Linear(first, second),
        torch.nn.ReLU(),
        torch.nn.Dropout(dropout),
        torch.nn.Linear(second, 1),
    )
