"""The files of an exported model."""

import hashlib
from pathlib import Path
from typing import Any

import safetensors
import torch

from ..errors import ArgumentError, FileError
from ._description import Description

SERVERS = "servers"
DEVICE = "device"
DESCRIPTION = "model.json"
WEIGHTS = "model.safetensors"


def write_weights(path: Path, state: dict[str, torch.Tensor]) -> None:
    """Writes tensors to a new file. Raises ArgumentError for a dtype that a file cannot hold."""
    from safetensors.torch import save_file  # noqa: PLC0415 - asks for parts of PyTorch at once

    try:
        save_file(state, path)
    except (KeyError, ValueError, RuntimeError, safetensors.SafetensorError) as error:
        raise ArgumentError(f"state of the model: it cannot be saved: {error}") from error


def read(folder: Path) -> tuple[Description, dict[str, torch.Tensor]]:
    """Reads the device's files, in a folder or in its `device`. Raises FileError."""
    here = folder / DEVICE if (folder / DEVICE).is_dir() else folder
    path, weights = here / DESCRIPTION, here / WEIGHTS
    try:
        description = Description.parse(path.read_bytes(), path)
        found = file_digest(weights)
    except OSError as error:
        raise FileError(
            f"{error.filename or here}: cannot read the file: {error.strerror}; expected the "
            f"folder that nescio.torch.export wrote, with {DESCRIPTION} and {WEIGHTS}"
        ) from error
    if found != description.weights:
        raise FileError(
            f"{weights}: found a file with the digest {found}, expected {description.weights}, "
            f"which {DESCRIPTION} names: copy both files of one export"
        )
    return description, _tensors(weights)


def _tensors(path: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file  # noqa: PLC0415

    try:
        state: dict[str, Any] = load_file(path)
    except (OSError, KeyError, ValueError, RuntimeError, safetensors.SafetensorError) as error:
        raise FileError(f"{path} is not a valid safetensors file: {error}") from error
    return state


def file_digest(path: Path) -> str:
    """Returns SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
