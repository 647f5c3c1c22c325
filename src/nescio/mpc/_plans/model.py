"""A model that another party has, as a function of arrays or tensors."""

import os
import warnings
from typing import Any, Self

import numpy as np

from ...net import Channel
from .._session import Client
from .._steps import Step
from .plan import PublicPlan

__all__ = ["InputRangeWarning", "OutputRangeWarning", "PrivateModel"]


class InputRangeWarning(UserWarning):
    """Inputs are larger than those of the calibration: they were cut, and outputs may be wrong."""


class OutputRangeWarning(UserWarning):
    """Outputs are larger than those of the calibration: a hidden value may have left its window."""


class PrivateModel:
    """Runs a model of a server on inputs that stay secret.

        with nescio.mpc.PrivateModel(channel, public, "client.store") as model:
            outputs = model(inputs)

    `public` is the plan's public part, `path` the client's store of `prepare`. An input uses up one
    prepared inference. `threads`, `batch`, security model and errors are those of `Client`.
    """

    def __init__(
        self,
        channel: Channel,
        public: PublicPlan,
        path: str | os.PathLike[str],
        *,
        threads: int = 0,
        batch: int = 0,
    ) -> None:
        self._public = public
        self._client = Client(channel, public.network, path, threads=threads, batch=batch)

    def forward(self, inputs: Any) -> Any:  # noqa: ANN401 - arrays or tensors
        """Returns the outputs (n, *outputs) of inputs (n, *inputs), up to `batch` at once.

        Tensors of PyTorch give tensors (CPU, float32), arrays give arrays (float64). A plan with
        the output "class" gives classes (n,), int64. Warns with InputRangeWarning if inputs were
        cut, with OutputRangeWarning if outputs are larger than those of the calibration. Whether a
        hidden value left its window, neither party can see. Raises ArgumentError, and the errors of
        `Client.infer`.
        """
        values = inputs.detach().cpu().numpy() if hasattr(inputs, "detach") else inputs
        encoded = self._public.encode(values)
        if cut := self._public.count_cut(values):
            text = f"{cut} numbers are larger than those of the calibration, and were cut"
            warnings.warn(InputRangeWarning(text), stacklevel=2)
        outputs = self._public.decode(self._client.infer_batch(encoded))
        if self._public.has_large(outputs):
            text = (
                "found outputs larger than those of the calibration: a hidden value may have left "
                "the window of its table, and the outputs be wrong"
            )
            warnings.warn(OutputRangeWarning(text), stacklevel=2)
        if not hasattr(inputs, "detach"):
            return outputs
        import torch  # noqa: PLC0415 - the caller has it

        is_class = self._public.classes is not None
        return torch.from_numpy(outputs if is_class else outputs.astype(np.float32))

    __call__ = forward

    @property
    def left(self) -> int:
        """The number of prepared inferences that are left."""
        return self._client.left

    @property
    def batch(self) -> int:
        """The most inputs that run together; the server may take fewer."""
        return self._client.batch

    @property
    def counts(self) -> list[Step]:
        """The counts of the last call: bytes, frames, rounds and times by phase and layer."""
        return self._client.counts

    def close(self) -> None:
        """Closes the store; the channel stays open."""
        self._client.close()

    def __enter__(self) -> Self:
        """Returns the model."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the store."""
        self.close()
