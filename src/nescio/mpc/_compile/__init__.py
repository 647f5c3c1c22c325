"""The front end: a PyTorch model as layers of linear maps and functions of one number."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from ._layers import Model

__all__ = ["read_model"]


def read_model(
    model: "torch.nn.Module", example: "torch.Tensor", *, as_class: bool = False
) -> "Model":
    """Reads a PyTorch model in evaluation mode, with an example of its input (1, ...).

    The layers compute the model's outputs in float64. With `as_class`, or if the model ends with an
    argmax, they are those of which the place of the largest one counts. Raises ArgumentError for
    models that have no private form, with the line of the model. Needs PyTorch.
    """
    from ._read import read  # noqa: PLC0415 - PyTorch is not a dependency

    return read(model, example, as_class=as_class)
