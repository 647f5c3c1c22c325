"""Maps with secret weights as convolutions, which `_linear` multiplies by a client's mask.

A matrix product of numbers in any shape is a convolution of 1 x 1 with a channel per number. Taps
that are apart (dilation) have zeros between them, and groups have zeros for the channels of others.
Both parties know the shape, the server alone the weights.
"""

import numpy as np
import numpy.typing as npt

from ._encoding import ConvolutionShape, linear
from ._maps import Convolution, Dense

__all__ = ["shape_of", "weights_of"]


def shape_of(secret: Dense | Convolution) -> ConvolutionShape:
    """Returns the shape of the convolution that computes a map."""
    if isinstance(secret, Dense):
        return linear(int(np.prod(secret.inputs)), len(secret.weights))
    channels, height, width = secret.inputs
    return ConvolutionShape(
        channels,
        len(secret.weights),
        (height, width),
        _spread(secret),
        secret.stride,
        secret.padding,
    )


def weights_of(secret: Dense | Convolution) -> npt.NDArray[np.int32]:
    """Returns its weights (out_channels, in_channels, rows, columns), dtype int32."""
    if isinstance(secret, Dense):
        return secret.weights.astype(np.int32)[:, :, None, None]
    outputs, channels = secret.weights.shape[:2]
    whole = np.zeros((outputs, secret.inputs[0], *_spread(secret)), np.int32)
    size = outputs // secret.groups
    for group in range(secret.groups):
        own, given = (slice(group * count, (group + 1) * count) for count in (size, channels))
        taps = whole[own, given, :: secret.dilation[0], :: secret.dilation[1]]
        taps[:] = secret.weights[own]
    return whole


def _spread(secret: Convolution) -> tuple[int, int]:
    """Returns the rows and columns of a kernel with the zeros between its taps."""
    rows, columns = (
        (taps - 1) * apart + 1
        for taps, apart in zip(secret.weights.shape[2:], secret.dilation, strict=True)
    )
    return rows, columns
