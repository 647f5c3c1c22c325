"""GPU-DPF's Python interface on Nescio's engine: a program changes only its import.

    from nescio.compat import gpu_dpf as dpf        # was: import dpf

    client = dpf.DPF()
    k1, k2 = client.gen(42, 16384)                  # a key for each of two servers
    a, b = server1.eval_gpu([k1]), server2.eval_gpu([k2])
    a - b                                           # row 42

As in GPU-DPF, the row is the difference of the shares. With y0 + y1 = row for the parties' sums mod
2^32, party 0 returns a = y0 and party 1 returns b = -y1. A key contains the number of its party, so
a server need not know it. Subtract tensors of int32, which wrap around like the shares; Python's
integers do not.

Any number of rows, columns and keys is allowed. Keys are drawn with the operating system's random
generator and have Nescio's format (docs/wire-format.md), not GPU-DPF's. Needs PyTorch:
pip install 'nescio[compat]'.

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
    """Both roles of a lookup: clients call `gen`, servers call `eval_*`.

    `prf` is one of the constants PRF_AES128 (the default), PRF_CHACHA20 and PRF_SALSA20; the
    servers and the client use the same one. `device` is the GPU of `eval_gpu`: "cuda", "cuda:1".

    ENTRY_SIZE and BATCH_SIZE are GPU-DPF's greatest number of columns and its keys per launch, for
    programs that read them; they limit nothing here.

    Raises ArgumentError for an unknown `prf`, for PRF_DUMMY (it is not a pseudorandom function: its
    keys reveal the row), and for an invalid device name.
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
        self._no_device = ""  # why no device holds the rows

    def __getstate__(self) -> dict[str, object]:
        """Pickles the table as a tensor, without the copies in the engine and on the device."""
        state = {**self.__dict__, "_rows": None, "_device_rows": None}
        if self._rows is not None:  # the tensor may have changed since
            assert self.table_num_entries is not None
            rows = self._rows.load_range(0, self.table_num_entries, _workers())
            state["table"] = torch.from_numpy(rows.view(np.int32))
        return state

    def __setstate__(self, state: dict[str, object]) -> None:
        """Restores the object, and copies its table to the device if there is one."""
        self.__dict__.update(state)
        if self.table is not None:
            self._store_on_device(_rows_as_bytes(self.table))

    def __repr__(self) -> str:
        """Describes the table's size and the PRF, in GPU-DPF's format."""
        if self.table is None:
            return f"DPF(_uninitialized_, prf_method={self.prf_method_string})"
        return (
            f"DPF(entries={self.table_num_entries}, entry_size={self.table_effective_entry_size}, "
            f"prf_method={self.prf_method_string})"
        )

    def gen(self, k: int, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Generates two keys for row `k` of `n`, one for each server.

        Each is int32 of shape (words,): the bytes of a Nescio key and up to three zero bytes. The
        number of words depends only on `n` and the PRF. `n` is 1 to 2^40. Seeds come from the
        operating system.

        Raises IndexRangeError unless 0 <= k < n, ArgumentError for an invalid `n` or a PRF that
        this build's engine does not support.
        """
        rows = as_count(n, "n", 1, dpf.MAX_DOMAIN)
        point = as_indices(k, rows, "k")
        if point.ndim:
            raise ArgumentError(f"k: found shape {point.shape}, expected one integer")
        one = np.array([[1, 0]], np.uint64)
        keys = _core.generate(point.reshape(1), one, rows, "u32", self._generator)
        return _as_tensor(keys[0][0]), _as_tensor(keys[1][0])

    def eval_init(self, table: torch.Tensor) -> None:
        """Sets the table: int32 of shape (rows, columns), each 1 or more.

        The table may be in GPU memory; it is copied without the host if that GPU is `device`. The
        copy of `eval_gpu` is made now. `eval_cpu` copies the tensor at its first call, so do not
        change the tensor before. To use a changed table, call this method again.

        Raises ArgumentError for any other table; floats are not converted.
        """
        rows = _on_its_gpu(table, self.device)
        if rows is None:
            rows = _rows_as_bytes(table)
        self.table = self.table_num_entries = self.table_effective_entry_size = None
        self._rows = self._device_rows = None  # frees the memory of an earlier table
        self._store_on_device(rows)
        self.table = table
        self.table_num_entries = rows.shape[0]
        self.table_effective_entry_size = rows.shape[1] // _WORD_BYTES

    def eval_cpu(self, keys: Sequence[torch.Tensor], one_hot_only: bool = False) -> torch.Tensor:
        """Answers m keys on all processors: int32 of shape (m, columns).

        With `one_hot_only`, returns shares of the rows' one-hot vectors instead: (m, n) for keys of
        `gen(k, n)`. This needs no table.

        Raises ArgumentError without a table or keys, MalformedKeyError for tensors that are not
        keys, MismatchError for keys to a table of another size or with another PRF.
        """
        if one_hot_only:
            checked = self._read(keys, None)
            shares = _core.evaluate_range(checked, 0, checked.domain, _workers())
            return _as_difference(shares, checked)
        checked = self._read(keys, self._initialized("eval_cpu"))
        if self._rows is None:
            rows = _rows_as_bytes(self.table)
            self._rows = _core.Table([(1, len(rows), 1)], rows.shape[1], "u32")
            self._rows.store(0, rows, _workers())
        return self._cut(self._rows.answer([checked], _workers()), checked)

    def eval_gpu(self, keys: Sequence[torch.Tensor]) -> torch.Tensor:
        """Answers m keys on the GPU: int32 of shape (m, columns), in host memory.

        Raises ResourceError without a GPU or if its memory is too small for the table, and the
        errors of `eval_cpu`, which gives the same answers.
        """
        checked = self._read(keys, self._initialized("eval_gpu"))
        if self._device_rows is None:
            raise ResourceError(f"{self._no_device}; eval_cpu answers without one")
        return self._cut(self._device_rows.answer([checked]), checked)

    def _store_on_device(self, rows: _device_table.Rows) -> None:
        """Copies the rows to the device; stores the error, if any, for a later `eval_gpu`."""
        # PyTorch exports a GPU tensor only while its GPU is the current device.
        source = rows.device if isinstance(rows, torch.Tensor) and rows.is_cuda else None
        try:
            opened = _device_table.open_table(self.device, rows.shape[0], rows.shape[1], "u32")
            with torch.cuda.device(source) if source else contextlib.nullcontext():
                opened.store(0, rows)
        except ResourceError as error:
            self._no_device = str(error)
        else:
            self._device_rows = opened

    @property
    def _generator(self) -> str:
        return self.prf_method_string.lower()

    def _initialized(self, caller: str) -> int:
        """Returns the table's number of rows. Raises ArgumentError before `eval_init`."""
        if self.table_num_entries is None:
            raise ArgumentError(f"{caller} needs a table: call eval_init(table) first")
        return self.table_num_entries

    def _read(self, keys: Sequence[torch.Tensor], rows: int | None) -> _core.Keys:
        """Checks keys to a table of `rows` (None: any number). Raises the errors of `eval_cpu`."""
        padded = _stack(keys)
        length = _key_length(padded[0])
        if padded[:, length:].any():
            raise MalformedKeyError(
                f"not a DPF key: the bytes after its {length} bytes are not zero"
            )
        checked = _core.Keys(np.ascontiguousarray(padded[:, :length]))
        found = _describe(checked.output, checked.domain, checked.generator)
        expected = _describe("u32", rows or checked.domain, self._generator)
        if found != expected:
            message = f"keys for another table or PRF: found {found}, expected {expected}"
            raise MismatchError(message, found=found, expected=expected)
        return checked

    def _cut(self, answers: ByteArray, keys: _core.Keys) -> torch.Tensor:
        """Removes the padding of the rows."""
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
    """Prints the keys per second that `eval_gpu` answers, in GPU-DPF's format.

    The table has N rows of `entrysize` columns; each call answers `batch` keys. Raises
    ResourceError without a GPU.
    """
    subject = DPF(prf, device=device)
    _print_speed(subject, subject.eval_gpu, (N, entrysize), batch)


def test_cpu_dpf_perf(
    N: int = 2048,  # noqa: N803 - GPU-DPF's name
    batch: int = DPF.BATCH_SIZE,
    entrysize: int = DPF.ENTRY_SIZE,
    prf: int = DPF.DEFAULT_PRF,
) -> None:
    """Prints the keys per second that `eval_cpu` answers on all processors."""
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
    evaluate(keys)  # a warm-up call: copies, caches
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
            "prf: found PRF_DUMMY, which is not a pseudorandom function and hides nothing; "
            "expected PRF_AES128, PRF_CHACHA20 or PRF_SALSA20"
        )
    return number


def _as_int32(value: object, what: str, dimensions: int) -> Array:
    """Converts an int32 tensor to a C-contiguous NumPy array. Raises ArgumentError."""
    dtype = getattr(value, "dtype", type(value).__name__)
    if str(dtype).removeprefix("torch.") != "int32":
        raise ArgumentError(f"{what}: found {dtype}, expected a tensor of int32 (.int() makes one)")
    host = value.detach().cpu() if isinstance(value, torch.Tensor) else value
    array = as_array(host, what)
    if array.ndim != dimensions:
        raise ArgumentError(f"{what}: found shape {array.shape}, expected {dimensions}-d")
    return np.ascontiguousarray(array)


def _on_its_gpu(table: object, device: str) -> _device_table.Rows | None:
    """Views a table's rows as bytes in GPU memory; None unless the table is on `device`."""
    if not isinstance(table, torch.Tensor) or not table.is_cuda or table.ndim != 2:
        return None
    if table.dtype != torch.int32 or not table.numel():
        return None
    if Device.parse(device) != Device("cuda", table.device.index):
        return None
    rows: _device_table.Rows = table.detach().contiguous().view(torch.uint8)
    return rows


def _rows_as_bytes(table: object) -> ByteArray:
    """Converts a table's rows to bytes: (rows, 4 * columns)."""
    values = _as_int32(table, "the table", 2)
    if not values.size:
        raise ArgumentError(f"the table: found shape {values.shape}, expected a row and a column")
    return values.view(np.uint8)


def _stack(keys: Sequence[torch.Tensor]) -> ByteArray:
    """Stacks keys, with their padding, as rows of bytes."""
    if isinstance(keys, torch.Tensor) and keys.ndim < 2:
        raise ArgumentError("keys: found one tensor, expected a list of keys: [key]")
    arrays = [_as_int32(key, "a key", 1) for key in keys]
    if not arrays:
        raise ArgumentError("keys: found none, expected a list of one or more")
    for array in arrays:
        if len(array) != len(arrays[0]):
            found, expected = f"{len(array)} words", f"{len(arrays[0])} words, as the first key has"
            message = (
                f"the keys of one call must have one length: found {found}, expected {expected}"
            )
            raise MismatchError(message, found=found, expected=expected)
    return np.stack(arrays).view(np.uint8)


def _key_length(padded: ByteArray) -> int:
    """Finds the length of a key without its padding. Raises MalformedKeyError."""
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
    """Converts a key's bytes to int32, padded with zeros."""
    padded = np.zeros(-(-len(key) // _WORD_BYTES) * _WORD_BYTES, np.uint8)
    padded[: len(key)] = key
    return torch.from_numpy(padded.view(np.int32))


def _as_difference(shares: ByteArray, keys: _core.Keys) -> torch.Tensor:
    """Converts additive shares to int32 shares whose difference is the value."""
    values = np.require(shares, requirements=["C", "W"]).view(np.uint32)
    np.negative(values, out=values, where=(keys.parties() == 1)[:, np.newaxis])
    return torch.from_numpy(values.view(np.int32))


@lru_cache(maxsize=1)
def _workers() -> _core.ThreadPool:
    """Makes a pool with one thread per processor."""
    return _core.ThreadPool(0)
