"""`torch.nn.Embedding` over a table on two servers."""

import numpy as np
import torch

from ._module import Missing, PrivateModule, check_indices


class PrivateEmbedding(PrivateModule):
    """`torch.nn.Embedding` at inference, whose rows are looked up privately.

    `lookups` looks up rows of one table: a `nescio.pir.LocalTable`, a
    `nescio.service.RemoteTable`, or a `nescio.pir.batch.BatchClient` with a cache. The rows are
    those of the table bit for bit, on the device of the input, without a gradient.
    `dtype=torch.bfloat16` takes a table of uint16 with the bits of bfloat16; otherwise the dtype is
    the table's. `padding_idx` is kept and has no effect: the row is that of the table.

    In an ordinary table every index is looked up, duplicates and padding included: the servers
    learn the number of indices, and nothing else of them. In a table with a batch layout, each
    sample of dimension 0 is an inference, and the servers learn the number of samples alone. Rows
    that do not fit the layout are missing: `missing` is "zeros", "error" or a row of its own, and
    `last_missing` has a flag for each index of the last call.

    The module has no weight and no state. `load_state_dict` passes over the weight of a plain
    model if it has the shape, the dtype and, where known, the `weight_digest` of the table. Any
    other weight is an unexpected key, with a warning that says why.

    Raises ArgumentError for a table that holds no vectors of floats, and for `max_norm` and
    `sparse`, which belong to training. A call raises ArgumentError in training mode and for an
    input that is not an integer tensor, IndexRangeError before anything is sent, and the errors of
    the lookup.
    """

    def __init__(
        self,
        lookups: object,
        *,
        padding_idx: int | None = None,
        missing: Missing = "zeros",
        dtype: torch.dtype | None = None,
        weight_digest: str | None = None,
        max_norm: object = None,
        sparse: object = False,
    ) -> None:
        super().__init__(
            lookups,
            padding_idx=padding_idx,
            missing=missing,
            dtype=dtype,
            weight_digest=weight_digest,
            max_norm=max_norm,
            sparse=sparse,
        )

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002 - nn.Embedding's name
        """Returns the rows at `input` of any shape: (..., embedding_dim)."""
        check_indices(input, "input")
        samples = len(input) if input.dim() else 1
        ends = np.linspace(0, input.numel(), samples + 1, dtype=np.int64)[1:]
        rows, gone = self._look_up(input.reshape(-1), ends)
        self.last_missing = gone.reshape(input.shape)
        return rows.reshape(*input.shape, self.embedding_dim)
