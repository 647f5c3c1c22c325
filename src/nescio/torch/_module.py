"""The base of private modules: rows from two servers in place of a weight."""

import copy
import warnings
from typing import Any, NoReturn, Self, TypeAlias

import torch

from .._arrays import Array, as_count, shown
from ..errors import ArgumentError
from ._source import (
    TORCH_DTYPES,
    as_stored,
    as_tensor,
    check_rows,
    digest_of,
    source_of,
    table_dtype,
)

Missing: TypeAlias = str | torch.Tensor

_INTEGERS = (torch.int32, torch.int64)


class PrivateModule(torch.nn.Module):
    """Base of PrivateEmbedding and PrivateEmbeddingBag.

    The buffers are not persistent, so that the module has no state of its own. `_like` is empty,
    and follows the dtype of `.half()` and `.to(dtype)` as a weight would.
    """

    CHOICES: tuple[str, ...] = ("zeros", "error")
    """Texts that `missing` may be."""

    _like: torch.Tensor
    _default: torch.Tensor | None

    def __init__(
        self,
        lookups: object,
        *,
        padding_idx: int | None,
        missing: Missing,
        dtype: torch.dtype | None,
        weight_digest: str | None,
        max_norm: object,
        sparse: object,
    ) -> None:
        super().__init__()
        _refuse_training_options(max_norm, sparse)
        self._source = source_of(lookups)
        self.lookups = self._source.lookups
        self._stored = table_dtype(self._source.params, dtype)
        if len(self._source.row_shape) != 1:
            raise ArgumentError(
                f"lookups: found rows of shape {self._source.row_shape}, expected vectors"
            )
        self.num_embeddings, self.embedding_dim = self._source.rows, self._source.row_shape[0]
        self.padding_idx = _as_padding(padding_idx, self.num_embeddings)
        self.weight_digest = weight_digest
        self.last_missing: torch.Tensor | None = None
        like = torch.empty(0, dtype=TORCH_DTYPES[self._stored])
        self.register_buffer("_like", like, persistent=False)
        self._set_missing(missing)
        self.eval()

    def _set_missing(self, missing: Missing) -> None:
        default = None
        if isinstance(missing, torch.Tensor):
            if missing.shape != (self.embedding_dim,) or not missing.is_floating_point():
                raise ArgumentError(
                    f"missing: found {missing.dtype} of shape {tuple(missing.shape)}, expected "
                    f"floats of shape ({self.embedding_dim},)"
                )
            default = missing.detach().to(self._like.dtype, copy=True)
        elif missing not in self.CHOICES:
            texts = " or ".join(map(repr, self.CHOICES))
            raise ArgumentError(f"missing: found {shown(missing)}, expected {texts} or a tensor")
        self._missing = "default" if default is not None else missing
        self.register_buffer("_default", default, persistent=False)

    def _look_up(
        self, indices: torch.Tensor, ends: Array, unused: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Looks up flat indices, cut into inferences that end at `ends`.

        Returns the rows, on the device of the indices, and a flag for each missing row. Rows that
        are `unused` have any values, and are not missing.
        """
        if self.training:
            raise ArgumentError(
                f"{type(self).__name__}: found training mode, expected evaluation: call .eval() on "
                "the model; rows on servers cannot be trained"
            )
        skipped = None if unused is None else unused.cpu().numpy()
        found, missing = self._source.fetch(indices.detach().cpu().numpy(), ends, skipped)
        check_rows(found, len(indices), self.embedding_dim, self._stored)
        rows = as_tensor(found, self._stored).to(indices.device, self._like.dtype)
        gone = torch.from_numpy(missing).to(indices.device)
        if missing.any():
            self._fill(rows, gone)
        return rows, gone

    def _fill(self, rows: torch.Tensor, gone: torch.Tensor) -> None:
        """Replaces missing rows in place. The number of them is not secret to the device."""
        if self._missing == "error":
            self.last_missing = gone
            raise ArgumentError(
                f"{int(gone.sum())} of {len(gone)} rows are missing: they did not fit the table's "
                "layout; `last_missing` says which. Send nothing because of it that a server sees"
            )
        rows[gone] = 0 if self._default is None else self._default.to(rows.device)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - torch's own
        """Returns a buffer. Raises AttributeError, with a reason for `weight`."""
        if name == "weight":
            raise AttributeError(f"{type(self).__name__} has no weight: its rows are on servers")
        return super().__getattr__(name)

    def _load_from_state_dict(  # noqa: PLR0917 - torch's own
        self,
        state: dict[str, Any],
        prefix: str,
        metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        messages: list[str],
    ) -> None:
        """Accepts the weight of the plain module; warns of another, and reports it as unexpected.

        `Module.load_state_dict` calls this with `strict` even where its caller said otherwise, and
        judges unexpected keys itself.
        """
        name = f"{prefix}weight"
        rest = {key: value for key, value in state.items() if key != name}
        super()._load_from_state_dict(
            rest, prefix, metadata, strict, missing_keys, unexpected_keys, messages
        )
        other = self._other_weight(state.get(name))
        if other:
            warnings.warn(f"{name}: {other}; the servers' rows stay as they are", stacklevel=2)
            unexpected_keys.append(name)

    def _other_weight(self, weight: object) -> str:
        """Returns a text if a state has a weight that is not the table's, as far as known."""
        if not isinstance(weight, torch.Tensor):
            return ""
        expected = f"{self._stored} of shape {(self.num_embeddings, self.embedding_dim)}"
        found = f"{str(weight.dtype).removeprefix('torch.')} of shape {tuple(weight.shape)}"
        if found != expected:
            return f"found {found}, expected {expected}"
        digest = self.weight_digest and digest_of(as_stored(weight))
        if digest != self.weight_digest:
            return f"found a weight with the digest {digest}, expected {self.weight_digest}"
        return ""

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copies the module; the copy shares the connections to the servers."""
        memo |= {id(self.lookups): self.lookups, id(self._source): self._source}
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        made.__dict__ = copy.deepcopy(self.__dict__, memo)
        return made

    def __reduce_ex__(self, _: object) -> NoReturn:
        """Raises ArgumentError: connections cannot be pickled."""
        raise ArgumentError(
            f"{type(self).__name__}: found a call to pickle or torch.save, which cannot keep the "
            "connections to servers; save model.state_dict(), and use nescio.torch.load"
        )

    def extra_repr(self) -> str:
        """Returns the text in parentheses of the module's `repr`."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


def check_indices(value: object, what: str) -> None:
    """Raises ArgumentError unless a value is a tensor of integers, as nn.Embedding takes."""
    if not isinstance(value, torch.Tensor) or value.is_nested:
        found = "a nested tensor" if isinstance(value, torch.Tensor) else type(value).__name__
        raise ArgumentError(f"{what}: found {found}, expected a tensor of int32 or int64")
    if value.dtype not in _INTEGERS:
        raise ArgumentError(f"{what}: found {value.dtype}, expected int32 or int64")


def _refuse_training_options(max_norm: object, sparse: object) -> None:
    """Raises ArgumentError for options of nn.Embedding that change a weight or its gradient."""
    if max_norm is not None:
        raise ArgumentError(
            f"max_norm: found {shown(max_norm)}, expected None: rows on servers cannot be "
            "renormalized; renormalize the weight before it is exported"
        )
    if sparse is not False:
        raise ArgumentError(
            f"sparse: found {shown(sparse)}, expected False: rows on servers have no gradient"
        )


def _as_padding(value: int | None, rows: int) -> int | None:
    """Checks an index of padding; a negative one counts from the end, as in nn.Embedding."""
    if value is None:
        return None
    number = as_count(value, "padding_idx", -rows, rows - 1)
    return number + rows if number < 0 else number
