"""The same LeNet and ResNet-32 by SPU, in a Python that has it, within a limit of time."""

import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, from_numpy, nn

import nescio
from benchmarks.infer.subjects import Subject
from nescio._arrays import Array
from nescio._report import Case

__all__ = ["MODULE", "has_spu", "measure", "weights_of"]

MODULE = "benchmarks.infer.spu_network"
_SECONDS = 60.0
_ROOT = Path(__file__).parents[2]


def has_spu(python: str) -> bool:
    """Returns if a Python can import SPU and JAX."""
    try:
        done = subprocess.run(  # noqa: S603 - the user's own Python
            [python, "-c", "import jax, spu"],
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            env=_environment(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def measure(subject: Subject, python: str, threads: int, repeat: int, limit: float) -> Case:
    """Runs a network by SPU: one call with its setup, and `repeat` more.

    The case has `failed`, a sentence, where SPU ends without a result or is not done in time.
    """
    name = subject.architecture.name
    case: Case = {"network": name, "program": "SPU 0.9.5 Cheetah, ring of 64 bits"}
    image = subject.test[0]
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "network.npz", Path(folder) / "out.json"
        logits = subject.model(_tensor(image)).detach().numpy()
        arrays: dict[str, Any] = {"network": name, "logits": logits}
        arrays["image"] = image.transpose(1, 2, 0).astype(np.float32)
        arrays |= {f"weights_{n}": own for n, own in enumerate(weights_of(subject.model))}
        np.savez(source, **arrays)
        words = [python, "-m", MODULE, str(source), str(out), str(threads), str(repeat)]
        failed = _run(words, limit)
        if failed is None and out.exists():
            return {**case, **json.loads(out.read_text())}
    return {**case, "failed": failed or "it ended without a result"}


def _run(words: list[str], limit: float) -> str | None:
    """Runs a command and all that it starts; returns a sentence if it does not succeed."""
    with subprocess.Popen(  # noqa: S603 - the user's own Python
        words,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=_environment(),
        cwd=_ROOT,
        start_new_session=True,
    ) as process:
        try:
            _, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"it was not done after {limit:.0f} s"
    if process.returncode:
        return (errors.strip().splitlines() or ["it printed no error"])[-1]
    return None


def _environment() -> dict[str, str]:
    """Lets another Python import this checkout; its other packages are its own."""
    paths = [str(_ROOT), str(Path(nescio.__file__).parents[1])]
    if os.environ.get("PYTHONPATH"):
        paths.append(os.environ["PYTHONPATH"])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "JAX_PLATFORMS": "cpu"}


def weights_of(model: nn.Module) -> list[Array]:
    """Returns the kernels, matrices and biases in their order, with batch norm folded.

    Axes are those of JAX: kernels (height, width, in, out), matrices (in, out). A matrix behind a
    flattened image of some channels takes its numbers with the channels last.
    """
    found, modules = list[Array](), dict(model.named_modules())
    channels = 1
    for name, module in modules.items():
        if isinstance(module, nn.Conv2d):
            norm = modules[name.replace("conv", "bn")]
            assert isinstance(norm, nn.BatchNorm2d)
            kernel, bias = _folded(module, norm)
            found += [kernel.transpose(2, 3, 1, 0), bias]
            channels = module.out_channels
        elif isinstance(module, nn.Linear):
            matrix = _array(module.weight).T
            side = round((len(matrix) // channels) ** 0.5)
            if side * side * channels == len(matrix) and side > 1:
                planes = matrix.reshape(channels, side, side, -1)
                matrix = planes.transpose(1, 2, 0, 3).reshape(len(matrix), -1)
            found += [matrix, _array(module.bias)]
    return [np.ascontiguousarray(one, np.float32) for one in found]


def _folded(module: nn.Conv2d, norm: nn.BatchNorm2d) -> tuple[Array, Array]:
    scale = _array(norm.weight) / np.sqrt(_array(norm.running_var) + norm.eps)
    before = 0.0 if module.bias is None else _array(module.bias)
    bias = _array(norm.bias) + (before - _array(norm.running_mean)) * scale
    return _array(module.weight) * scale[:, None, None, None], bias


def _array(tensor: Tensor | None) -> Array:
    assert tensor is not None
    values: Array = tensor.detach().double().numpy()
    return values


def _tensor(image: Array) -> Tensor:
    return from_numpy(image[None].astype(np.float32))
