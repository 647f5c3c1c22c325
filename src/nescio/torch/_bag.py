"""`torch.nn.EmbeddingBag` over a table on two servers."""

import numpy as np
import torch
from torch.nn import functional

from .._arrays import Array, shown
from ..errors import ArgumentError
from ._module import Missing, PrivateModule, check_indices

_MODES = ("sum", "mean", "max")


class PrivateEmbeddingBag(PrivateModule):
    """`torch.nn.EmbeddingBag` at inference, whose rows are looked up privately.

    PyTorch's own kernel reduces the rows, so the bits are those of the plain module. Arguments,
    errors and `load_state_dict` are those of PrivateEmbedding; `mode` and `include_last_offset`
    those of nn.EmbeddingBag. Rows of `padding_idx` are left out of the reduction, and with
    `missing="skip"` missing rows too.

    The reduction is local. In an ordinary table every index is looked up, padding included: the
    servers learn the number of all indices of a call, and not how many are in which bag. In a table
    with a batch layout each bag is an inference, whose padding takes no place, and the servers
    learn the number of bags alone.
    """

    CHOICES = ("zeros", "error", "skip")

    def __init__(
        self,
        lookups: object,
        *,
        mode: str = "mean",
        include_last_offset: bool = False,
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
        if mode not in _MODES:
            raise ArgumentError(f"mode: found {shown(mode)}, expected {', '.join(_MODES)}")
        self.mode, self.include_last_offset = mode, bool(include_last_offset)

    def forward(
        self,
        input: torch.Tensor,  # noqa: A002 - nn.EmbeddingBag's name
        offsets: torch.Tensor | None = None,
        per_sample_weights: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Returns a vector for each bag: (bags, embedding_dim).

        `input` has bags of one length (bags, n), or all of them in one dimension that `offsets`
        cuts. `per_sample_weights`, for the mode "sum", has the shape of `input`. Raises
        ArgumentError, before anything is sent, for arguments that nn.EmbeddingBag refuses.
        """
        check_indices(input, "input")
        ends = self._ends(input, offsets)
        if per_sample_weights is not None:
            self._check_weights(input, per_sample_weights)
            per_sample_weights = per_sample_weights.detach()
        flat = input.reshape(-1)
        padding = None if self.padding_idx is None else flat == self.padding_idx
        rows, gone = self._look_up(flat, ends, padding)
        self.last_missing = gone.reshape(input.shape)
        if self._missing == "skip" and bool(gone.any()):
            padding = gone if padding is None else padding | gone
        return self._reduced(input, rows, padding, offsets, per_sample_weights)

    def _reduced(
        self,
        indices: torch.Tensor,
        rows: torch.Tensor,
        excluded: torch.Tensor | None,
        offsets: torch.Tensor | None,
        weights: torch.Tensor | None,
    ) -> torch.Tensor:
        """Reduces the rows as a local weight, whose row i is that of index i.

        Excluded indices name a row after the last, which is the local `padding_idx`. It is set
        exactly where the plain module's is, because PyTorch adds in another order without it.
        """
        count = len(rows)
        local = torch.arange(count, dtype=indices.dtype, device=indices.device)
        if excluded is not None:
            local = local.masked_fill(excluded, count)
            rows = torch.cat([rows, rows.new_zeros(1, self.embedding_dim)])
        return functional.embedding_bag(
            local.reshape(indices.shape),
            rows,
            offsets,
            mode=self.mode,
            per_sample_weights=weights,
            include_last_offset=self.include_last_offset,
            padding_idx=None if excluded is None else count,
        )

    def _ends(self, indices: torch.Tensor, offsets: torch.Tensor | None) -> Array:
        """Returns the end of each bag. Raises ArgumentError for other shapes and offsets."""
        if indices.dim() == 2:
            bags, length = indices.shape
            if offsets is not None:
                raise ArgumentError("offsets: found a tensor, expected None for bags of one length")
            if not length:
                raise ArgumentError("input: found bags of no index, expected at least one")
            return np.arange(1, int(bags) + 1) * int(length)
        if indices.dim() != 1 or offsets is None:
            raise ArgumentError(
                f"input: found shape {tuple(indices.shape)} and offsets "
                f"{None if offsets is None else tuple(offsets.shape)}, expected two dimensions, or "
                "one dimension with offsets"
            )
        check_indices(offsets, "offsets")
        return self._checked_offsets(offsets.detach().cpu().numpy(), len(indices))

    def _checked_offsets(self, offsets: Array, count: int) -> Array:
        ends = np.append(offsets, count)
        if offsets.ndim != 1 or (len(offsets) == 0 and (count or self.include_last_offset)):
            raise ArgumentError(
                f"offsets: found shape {offsets.shape}, expected one dimension with an offset"
            )
        if self.include_last_offset:
            ends = offsets
        if len(offsets) and (ends[0] != 0 or ends[-1] != count or (np.diff(ends) < 0).any()):
            raise ArgumentError(
                f"offsets: found {shown(offsets.tolist())}, expected increasing numbers from 0 to "
                f"{count}, the number of indices"
                + (", which is the last offset" if self.include_last_offset else "")
            )
        return ends[1:]

    def _check_weights(self, indices: torch.Tensor, weights: torch.Tensor) -> None:
        if self.mode != "sum":
            raise ArgumentError(f"per_sample_weights: found mode {self.mode!r}, expected 'sum'")
        if not isinstance(weights, torch.Tensor):
            raise ArgumentError(
                f"per_sample_weights: found {type(weights).__name__}, expected a tensor"
            )
        found = f"{weights.dtype} of shape {tuple(weights.shape)}"
        expected = f"{self._like.dtype} of shape {tuple(indices.shape)}"
        if found != expected:
            raise ArgumentError(f"per_sample_weights: found {found}, expected {expected}")

    def extra_repr(self) -> str:
        """Returns the text in parentheses of the module's `repr`."""
        return f"{super().extra_repr()}, mode={self.mode!r}"
