"""Names of compute devices: NVIDIA GPUs, and emulated devices that run GPU kernels on the CPU.

A device is named "cuda" (the first GPU), "cuda:1", or "emulated". An emulated device is for tests:
it runs the same source and computes the same bits, many thousands of times more slowly.
"emulated:1" schedules the threads of a block in reverse order, which must not change a result;
"emulated:2" emulates an older GPU, "emulated:3" one of a card's size.
"""

import importlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, cast

from ._arrays import shown
from .errors import ArgumentError, ResourceError

_NAME = re.compile(r"(cuda|emulated)(?::([0-9]{1,3}))?")


class Engine(Protocol):
    """The engine's module for one kind of device, as far as every user of devices needs it."""

    def devices(self) -> int: ...
    def device_info(self, device: int) -> dict[str, Any]: ...


class Device(NamedTuple):
    """A device: its kind ("cuda", "emulated") and its number."""

    kind: str
    number: int

    @classmethod
    def parse(cls, name: object) -> "Device":
        """Parses a device's name. Raises ArgumentError if it is invalid."""
        match = _NAME.fullmatch(name) if isinstance(name, str) else None
        if match is None:
            raise ArgumentError(
                f"device: found {shown(name)}, expected a GPU: 'cuda', 'cuda:1' and so on"
            )
        return cls(match[1], int(match[2] or 0))

    def __str__(self) -> str:
        return f"{self.kind}:{self.number}"

    def engine(self) -> Engine:
        """Imports the engine's module. Raises ResourceError if this build does not include it."""
        try:
            return cast(Engine, importlib.import_module(f"._{self.kind}", __package__))
        except ImportError as error:
            raise ResourceError(f"{self}: {_import_failure(self.kind, error)}") from error


def parse_devices(device: object, devices: object) -> list[Device]:
    """Parses the arguments `device` and `devices` of a public class; an empty list is the CPU.

    Raises ArgumentError if a name is invalid or both arguments are given.
    """
    if devices is not None:
        if device != "auto":
            raise ArgumentError("give one `device` or several `devices`, not both")
        if isinstance(devices, str) or not isinstance(devices, Sequence) or not devices:
            raise ArgumentError(f"devices: found {devices!r}, expected a list of names")
        return [Device.parse(name) for name in devices]
    if device in ("auto", "cpu"):
        return []
    try:
        return [Device.parse(device)]
    except ArgumentError as error:
        raise ArgumentError(f"{error}; or 'auto', or 'cpu'") from error


def parse_device_list(names: str) -> list[Device]:
    """Parses a command-line option such as "cuda:0+cuda:1"; "auto" and "cpu" give an empty list.

    Raises ArgumentError if a name is invalid.
    """
    if names in ("auto", "cpu"):
        return []
    return [Device.parse(name) for name in names.split("+")]


# Beside a table, a GPU needs room for the shares and sums of a batch, which are at most 2 GiB.
_BATCH_BYTES = 2 << 30


def automatic_device(table_bytes: int) -> Device | None:
    """Returns the device that "auto" means for lookups; None is the CPU.

    This is the first NVIDIA GPU, if this build has the GPU part, the machine has a usable GPU, and
    a table of that size fits in its memory.
    """
    device = Device("cuda", 0)
    try:
        memory = device.engine().device_info(device.number)["memory_bytes"]
    except ResourceError:
        return None
    return device if table_bytes + _BATCH_BYTES <= memory else None


def describe(devices: Sequence[Device]) -> str:
    """Returns the devices' model names. Raises ResourceError if a device does not exist."""
    return " + ".join(
        f"{device.engine().device_info(device.number)['name']} ({device})" for device in devices
    )


def gpus() -> list[str]:
    """Describes each GPU of this machine in a line, or says in one line why there is none."""
    try:
        engine = Device("cuda", 0).engine()
        return [_describe_gpu(engine, number) for number in range(engine.devices())]
    except ResourceError as error:
        return [f"none: {str(error).removeprefix('cuda:0: ')}"]


def _describe_gpu(engine: Engine, number: int) -> str:
    try:
        info = engine.device_info(number)
    except ResourceError as error:  # one GPU that has failed does not hide the others
        return f"cuda:{number} {error}"
    memory, capability = info["memory_bytes"] / 1e9, info["capability"] / 10
    return f"cuda:{number} {info['name']}, {memory:.0f} GB, compute capability {capability}"


def _import_failure(kind: str, error: ImportError) -> str:
    if not isinstance(error, ModuleNotFoundError):
        return f"the engine's module for it cannot be loaded: {error}"
    if kind == "cuda":
        return (
            "this build has no GPU part: build it on a machine with an NVIDIA GPU and nvcc 12.4 or "
            "newer, or with NESCIO_CUDA=ON"
        )
    return "this build has no emulated device"
