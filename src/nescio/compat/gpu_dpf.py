"""GPU-DPF's Python interface on Nescio's engine: change the import, keep the program.

    from nescio.compat import gpu_dpf as dpf        # was: import dpf

    client = dpf.DPF()
    k1, k2 = client.gen(42, 16384)                  # a key for each of two servers
    a, b = server1.eval_gpu([k1]), server2.eval_gpu([k2])
    a - b                                           # row 42

Shares here add up by difference, as GPU-DPF's do: with y0 + y1 = row for the two parties' sums mod
2^32, party 0 gives out a = y0 and party 1 gives out b = -y1. Which party a key is for stands in the
key, so a server need not know. Subtract tensors of int32, which wrap as the shares do; Python's
integers do not.

Any number of rows, columns and keys is taken; keys come from the operating system's generator and
are Nescio's own (docs/wire-format.md), not GPU-DPF's. Needs PyTorch: pip install 'nescio[compat]'.

Source: the interface of github.com/facebookresearch/GPU-DPF, the code of Lam et al. 2024.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from .. import _core, dpf
from .._arrays import Array, ByteArray, as_array, as_count, as_indices
from .._device import Device
from ..errors import ArgumentError, MalformedKeyError, MismatchError, ResourceError
from ..pir import _device_table

try:
    import torch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "nescio.compat.gpu_dpf needs PyTorch: pip install 'nescio[compat]'", name=error.name
    ) from error

__all__ = ["DPF", "test_cpu_dpf_perf", "test_gpu_dpf_perf"]

_WORD_BYTES = 4
_NAMES = {0: "DUMMY", 1: "SALSA20", 2: "CHACHA20", 3: "AES128"}
_REPETITIONS = 10


class DPF:
    """Both roles of a lookup: `gen` is the client's, `eval_*` are a server's.

    `prf` is one of the constants PRF_AES128 (the default), PRF_CHACHA20 and PRF_SALSA20; both
    servers and the client use one. `device` is where `eval_gpu` works: "cuda", "cuda:1".

    ENTRY_SIZE and BATCH_SIZE are GPU-DPF's limits, here for programs that read them; nothing is
    limited to them.

    Raises ArgumentError for a `prf` that does not exist, for PRF_DUMMY (it is no pseudorandom
    function, and its keys would give the row away), and for a `device` that is no GPU's name.
    """

    PRF_DUMMY = 0
    PRF_SALSA20 = 1
    PRF_CHACHA20 = 2
    PRF_AES128 = 3

    ENTRY_SIZE = 16
    BATCH_SIZE = 512

    DEFAULT_PRF = PRF_AES128

    def __init__(self, prf: int | None = None, *, device: str = "cuda") -> None:
        self.prf_method = self.DEFAULT_PRF if prf is None else _checked_prf(prf)
        self.prf_method_string = _NAMES[self.prf_method]
        Device.parse(device)
        self.device = device
        self.table: torch.Tensor | None = None
        self.table_num_entries: int | None = None
        self.table_effective_entry_size: int | None = None
        self._rows: _core.Table | None = None
        self._device_rows: _device_table.DeviceTable | None = None
        self._no_device = ""  # why there are no rows on a device

    def __repr__(self) -> str:
        """The table's size and the PRF, as GPU-DPF prints them."""
        if self.table is None:
            return f"DPF(_uninitialized_, prf_method={self.prf_method_string})"
        return (
            f"DPF(entries={self.table_num_entries}, entry_size={self.table_effective_entry_size}, "
            f"prf_method={self.prf_method_string})"
        )

    def gen(self, k: int, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Two keys for row `k` of `n`, one for each server.

        Each is int32 of shape (words,): the bytes of a Nescio key, and up to three zeros. Words
        depend on `n` and the PRF alone. `n` is 1 to 2^40; secrets come from the operating system.

        Raises IndexRangeError unless 0 <= k < n, ArgumentError for an `n` that cannot be or a PRF
        that this build's engine does not have.
        """
        rows = as_count(n, "n", 1, dpf.MAX_DOMAIN)
        point = as_indices(k, rows, "k")
        if point.ndim:
            raise ArgumentError(f"k is one row: found shape {point.shape}, expected an integer")
        one = np.array([[1, 0]], np.uint64)
        keys = _core.generate(point.reshape(1), one, rows, "u32", self._generator)
        return _as_tensor(keys[0][0]), _as_tensor(keys[1][0])

    def eval_init(self, table: torch.Tensor) -> None:
        """Takes the table to answer from: int32 of shape (rows, columns), each 1 or more.

        It may be on a GPU, and goes from there to `device` without the host if that is the same.
        `eval_gpu`'s copy is made here; `eval_cpu` copies what the tensor holds
        when it is first called, so leave the tensor as it is. To take a changed table, call again.

        Raises ArgumentError for any other table; floats are not rounded.
        """
        rows = _on_its_gpu(table, self.device)
        if rows is None:
            rows = _rows_as_bytes(table)
        self.table = self.table_num_entries = self.table_effective_entry_size = None
        self._rows = self._device_rows = None  # gives an earlier table's memory back
        self._store_on_device(rows)
        self.table = table
        self.table_num_entries = rows.shape[0]
        self.table_effective_entry_size = rows.shape[1] // _WORD_BYTES

    def eval_cpu(self, keys: Sequence[torch.Tensor], one_hot_only: bool = False) -> torch.Tensor:
        """Answers to m keys on the processor's cores: int32 of shape (m, columns).

        With `one_hot_only`, shares of the rows' one-hot vectors instead: (m, n) for keys of
        `gen(k, n)`. That needs no table.

        Raises ArgumentError without a table or keys, MalformedKeyError for tensors that are no
        keys, MismatchError for keys to a table of another size or from another PRF.
        """
        if one_hot_only:
            checked = self._read(keys, None)
            shares = _core.evaluate_range(checked, 0, checked.domain, _workers())
            return _as_difference(shares, checked)
        checked = self._read(keys, self._initialised("eval_cpu"))
        if self._rows is None:
            rows = _rows_as_bytes(self.table)
            self._rows = _core.Table(len(rows), rows.shape[1], "u32")
            self._rows.store(0, rows, _workers())
        return self._cut(self._rows.answer(checked, _workers()), checked)

    def eval_gpu(self, keys: Sequence[torch.Tensor]) -> torch.Tensor:
        """Answers to m keys on the GPU: int32 of shape (m, columns), in the host's memory.

        Raises ResourceError where there is no GPU or it has no room for the table, and otherwise
        as `eval_cpu`, which gives the same answers.
        """
        checked = self._read(keys, self._initialised("eval_gpu"))
        if self._device_rows is None:
            raise ResourceError(f"{self._no_device}; eval_cpu answers without one")
        return self._cut(self._device_rows.answer(checked), checked)

    def _store_on_device(self, rows: _device_table.Rows) -> None:
        """Copies the rows to the device, or remembers why not: that matters to eval_gpu alone."""
        # A tensor on a GPU is handed out only while that is the current one.
        place = rows.device if isinstance(rows, torch.Tensor) and rows.is_cuda else None
        try:
            opened = _device_table.open_table(self.device, rows.shape[0], rows.shape[1], "u32")
            with torch.cuda.device(place) if place else contextlib.nullcontext():
                opened.store(0, rows)
        except ResourceError as error:
            self._no_device = str(error)
        else:
            self._device_rows = opened

    @property
    def _generator(self) -> str:
        return self.prf_method_string.lower()

    def _initialised(self, caller: str) -> int:
        """The table's number of rows. Raises ArgumentError if there is no table yet."""
        if self.table_num_entries is None:
            raise ArgumentError(f"{caller} needs a table: call eval_init(table) first")
        return self.table_num_entries

    def _read(self, keys: Sequence[torch.Tensor], rows: int | None) -> _core.Keys:
        """Checked keys to a table of `rows` (None: of any number). Errors are those of eval_cpu."""
        padded = _stack(keys)
        length = _key_length(padded[0])
        if padded[:, length:].any():
            raise MalformedKeyError(f"not a DPF key: what follows its {length} bytes is not zero")
        checked = _core.Keys(np.ascontiguousarray(padded[:, :length]))
        found = _describe(checked.output, checked.domain, checked.generator)
        expected = _describe("u32", rows or checked.domain, self._generator)
        if found != expected:
            message = f"keys for another table or PRF: found {found}, expected {expected}"
            raise MismatchError(message, found=found, expected=expected)
        return checked

    def _cut(self, answers: ByteArray, keys: _core.Keys) -> torch.Tensor:
        """Answers without what pads their rows."""
        assert self.table_effective_entry_size is not None
        return _as_difference(answers[:, : self.table_effective_entry_size * _WORD_BYTES], keys)


def test_gpu_dpf_perf(
    N: int = 2048,  # noqa: N803 - GPU-DPF's name
    batch: int = DPF.BATCH_SIZE,
    entrysize: int = DPF.ENTRY_SIZE,
    prf: int = DPF.DEFAULT_PRF,
    *,
    device: str = "cuda",
) -> None:
    """Prints how many keys a second `eval_gpu` answers, in the line that GPU-DPF prints.

    The table has N rows of `entrysize` columns; a call answers `batch` keys. Raises ResourceError
    without a GPU.
    """
    subject = DPF(prf, device=device)
    _print_speed(subject, subject.eval_gpu, (N, entrysize), batch)


def test_cpu_dpf_perf(
    N: int = 2048,  # noqa: N803 - GPU-DPF's name
    batch: int = DPF.BATCH_SIZE,
    entrysize: int = DPF.ENTRY_SIZE,
    prf: int = DPF.DEFAULT_PRF,
) -> None:
    """`test_gpu_dpf_perf` for `eval_cpu`, on every core."""
    subject = DPF(prf)
    _print_speed(subject, subject.eval_cpu, (N, entrysize), batch)


def _print_speed(
    subject: DPF,
    evaluate: Callable[[Sequence[torch.Tensor]], torch.Tensor],
    shape: tuple[int, int],
    batch: int,
) -> None:
    subject.eval_init(torch.randint(2**31, shape).int())
    keys = [subject.gen(k, shape[0])[0] for k in torch.randint(shape[0], (batch,)).tolist()]
    evaluate(keys)  # once without the clock: copies, caches
    begin = time.perf_counter()
    for _ in range(_REPETITIONS):
        evaluate(keys)
    speed = batch * _REPETITIONS / (time.perf_counter() - begin)
    key_bytes = keys[0].numel() * _WORD_BYTES
    print(f"{subject} Key Size: {key_bytes} bytes, Perf: {speed:.0f} dpfs/sec")


def _checked_prf(prf: int) -> int:
    number = as_count(prf, "prf", min(_NAMES), max(_NAMES))
    if number == DPF.PRF_DUMMY:
        raise ArgumentError(
            "prf: found PRF_DUMMY, which is no pseudorandom function and hides no row; "
            "expected PRF_AES128, PRF_CHACHA20 or PRF_SALSA20"
        )
    return number


def _as_int32(value: object, what: str, dimensions: int) -> Array:
    """A tensor as a C-contiguous NumPy array. Raises ArgumentError unless it is int32 as told."""
    dtype = getattr(value, "dtype", type(value).__name__)
    if str(dtype).removeprefix("torch.") != "int32":
        raise ArgumentError(f"{what}: found {dtype}, expected a tensor of int32 (.int() makes one)")
    host = value.detach().cpu() if isinstance(value, torch.Tensor) else value
    array = as_array(host, what)
    if array.ndim != dimensions:
        raise ArgumentError(f"{what}: found shape {array.shape}, expected {dimensions}-d")
    return np.ascontiguousarray(array)


def _on_its_gpu(table: object, device: str) -> _device_table.Rows | None:
    """A table's rows as bytes where they are, if that is the GPU called `device`."""
    if not isinstance(table, torch.Tensor) or not table.is_cuda or table.ndim != 2:
        return None
    if table.dtype != torch.int32 or not table.numel():
        return None
    if Device.parse(device) != Device("cuda", table.device.index):
        return None
    rows: _device_table.Rows = table.detach().contiguous().view(torch.uint8)
    return rows


def _rows_as_bytes(table: object) -> ByteArray:
    """A table's rows, their columns as bytes: (rows, 4 * columns)."""
    values = _as_int32(table, "the table", 2)
    if not values.size:
        raise ArgumentError(f"the table: found shape {values.shape}, expected a row and a column")
    return values.view(np.uint8)


def _stack(keys: Sequence[torch.Tensor]) -> ByteArray:
    """The bytes of keys as they came, a key a row."""
    if isinstance(keys, torch.Tensor) and keys.ndim < 2:
        raise ArgumentError("keys: found one tensor, expected a list of keys: [key]")
    arrays = [_as_int32(key, "a key", 1) for key in keys]
    if not arrays:
        raise ArgumentError("keys: found none, expected a list of one or more")
    for array in arrays:
        if len(array) != len(arrays[0]):
            found, expected = f"{len(array)} words", f"{len(arrays[0])} words, as the first key has"
            message = f"the keys of one call have one length: found {found}, expected {expected}"
            raise MismatchError(message, found=found, expected=expected)
    return np.stack(arrays).view(np.uint8)


def _key_length(padded: ByteArray) -> int:
    """The bytes of a key without its padding to whole words. Raises MalformedKeyError."""
    refusals = []
    for length in range(len(padded), max(len(padded) - _WORD_BYTES, -1), -1):
        try:
            _core.Keys(padded[:length].reshape(1, -1))
        except MalformedKeyError as refusal:
            refusals.append(refusal)
        else:
            return length
    raise refusals[0]


def _describe(output: str, domain: int, generator: str) -> str:
    return f"{output} keys over {domain} points from {generator}"


def _as_tensor(key: ByteArray) -> torch.Tensor:
    """A key's bytes as int32, zeros up to whole words."""
    padded = np.zeros(-(-len(key) // _WORD_BYTES) * _WORD_BYTES, np.uint8)
    padded[: len(key)] = key
    return torch.from_numpy(padded.view(np.int32))


def _as_difference(shares: ByteArray, keys: _core.Keys) -> torch.Tensor:
    """Shares that add up, a row a key, as int32 shares whose difference is the value."""
    values = np.require(shares, requirements=["C", "W"]).view(np.uint32)
    np.negative(values, out=values, where=(keys.parties() == 1)[:, np.newaxis])
    return torch.from_numpy(values.view(np.int32))


@lru_cache(maxsize=1)
def _workers() -> _core.ThreadPool:
    """A thread for every processor."""
    return _core.ThreadPool(0)
