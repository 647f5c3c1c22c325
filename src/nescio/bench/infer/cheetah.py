"""SPU's Cheetah on the layers of a case, by its public Python interface, in two processes.

The client owns the input and the server the weights, as in Nescio; a ReLU's values are shared.
"""

import importlib
import os
import socket
import statistics
import struct
import time
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..._report import Case
from ...errors import NescioError
from ..parties import HOST, report, reporting, two_parties
from .cases import Task

__all__ = ["Call", "Program", "Result", "measured", "received_bytes", "rings", "run", "run_party"]

Floats = npt.NDArray[np.float32]

_FRACTION_BITS = {"FM32": 8, "FM64": 18}
_STEPS = 8  # of a unit: products have few enough bits to be exact
_TOLERANCE = 2
_TCP_INFO_BYTES, _RECEIVED_AT = 192, 128  # tcpi_bytes_received in Linux' struct tcp_info
_TCP_FAMILIES = (socket.AF_INET, socket.AF_INET6)
_SEED = 4


class Call(NamedTuple):
    """One party's part of a call, of both phases together."""

    seconds: float
    cpu_seconds: float
    received_bytes: int


class Program(NamedTuple):
    """A function of JAX arrays, which a process can import, and its inputs.

    `owners` has the rank of each input's owner, 0 for the server and 1 for the client; -1 is for
    inputs that are shared. `repeat` counts the calls after the first one.
    """

    function: Callable[..., Any]
    inputs: Sequence[Floats]
    owners: Sequence[int]
    ring: str
    threads: int
    repeat: int


class Result(NamedTuple):
    """Both parties' calls, the first one included, and the last one's result."""

    calls: list[tuple[Call, Call]]
    outputs: npt.NDArray[Any]


def rings(task: Task) -> tuple[str, ...]:
    """Returns the rings to measure: SPU 0.9.5 crashes in convolutions with that of 32 bits."""
    return ("FM64",) if task.layer == "conv" else ("FM32", "FM64")


def measured(task: Task, ring: str) -> Case:
    """Measures a layer in a ring. Raises NescioError if SPU ends before its result."""
    inputs = _inputs(task)
    owners = [-1] if task.layer == "relu" else [1, 0]
    found = run(Program(partial(_layer, task), inputs, owners, ring, task.threads, task.repeat))
    calls = found.calls[1:]
    largest = float(np.abs(found.outputs - np.asarray(_layer(task, *inputs))).max())
    return {
        "layer": task.layer,
        "elements": task.elements,
        "table_bits": None,
        "online_bytes": round(_median([sum(c.received_bytes for c in one) for one in calls])),
        "offline_bytes": 0,
        "online_seconds": _median([max(c.seconds for c in one) for one in calls]),
        "offline_seconds": 0.0,
        "cpu_seconds": _median([sum(c.cpu_seconds for c in one) for one in calls]),
        "rounds": None,
        "exact": largest <= _TOLERANCE * 2.0 ** -_FRACTION_BITS[ring],
        "program": f"SPU Cheetah {ring}",
        "measured": True,
        "size": task.size,
        "threads": task.threads,
        "link": "local",
        "largest_error": largest,
    }


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)


def run(program: Program) -> Result:
    """Runs a function between two processes. Raises NescioError if SPU ends before its result."""
    _quiet()
    io = _spu().Io(2, _config(program.ring, program.threads))
    secret = _spu().Visibility.VIS_SECRET
    pairs = zip(program.inputs, program.owners, strict=True)
    shares = [io.make_shares(array, secret, owner) for array, owner in pairs]
    roles = {"server": (program,), "client": (program,)}
    with two_parties(run_party, roles) as pipes:
        pipes[0].send(report(pipes[1]))
        for rank, pipe in enumerate(pipes):
            pipe.send([pair[rank] for pair in shares])
        (server, first), (client, second) = (report(pipe) for pipe in pipes)
    outputs = np.asarray(io.reconstruct([first, second]))
    return Result(list(zip(server, client, strict=True)), outputs)


def _quiet() -> None:
    """Leaves only errors of SPU's log, and no file of it."""
    logging = _spu().libspu.logging
    options = logging.LogOptions()
    options.log_level = logging.LogLevel.ERROR
    options.system_log_path = os.devnull
    logging.setup_logging(options)


def _spu() -> Any:  # noqa: ANN401 - SPU has no types
    return importlib.import_module("spu")


def _config(ring: str, threads: int) -> Any:  # noqa: ANN401
    spu = _spu()
    field = getattr(spu.FieldType, ring)
    config = spu.RuntimeConfig(protocol=spu.ProtocolKind.CHEETAH, field=field)
    config.fxp_fraction_bits = _FRACTION_BITS[ring]
    config.max_concurrency = threads
    config.experimental_enable_colocated_optimization = True
    return config


def _inputs(task: Task) -> list[Floats]:
    """Draws the input, and the weights of a linear layer, in the order of axes that SPU has."""
    random = np.random.default_rng(_SEED)
    shape = task.shape
    sizes: list[tuple[int, ...]]
    if shape is None:
        sizes = [(task.elements,)]
    elif task.layer == "linear":
        sizes = [(1, shape.in_channels), (shape.in_channels, shape.out_channels)]
    else:
        channels = (shape.in_channels, shape.out_channels)
        sizes = [(1, *shape.image, channels[0]), (*shape.kernel, *channels)]
    return [(random.integers(-_STEPS, _STEPS, own) / _STEPS).astype(np.float32) for own in sizes]


def _layer(task: Task, x: Any, *weights: Any) -> Any:  # noqa: ANN401 - JAX arrays
    lax, jnp = importlib.import_module("jax.lax"), importlib.import_module("jax.numpy")
    if task.shape is None:
        return jnp.maximum(x, 0)
    if task.layer == "linear":
        return jnp.matmul(x, *weights)
    stride, padding = task.shape.stride, [(pad, pad) for pad in task.shape.padding]
    order = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, *weights, stride, padding, dimension_numbers=order)


def run_party(_: str, pipe: Connection, port: int | None, program: Program) -> None:
    """Runs one cold call and then warm ones; sends all of them and a share of the result.

    A party sends a port of its own first, and receives the other one's if it was not given.
    """
    with reporting(pipe):
        own = _free_port()
        pipe.send(own)
        ports = [own, pipe.recv()] if port is None else [port, own]
        link, code = _linked(ports, int(port is not None)), _compiled(program)
        runtime = _spu().Runtime(link, _config(program.ring, program.threads))
        for name, share in zip(code.input_names, pipe.recv(), strict=True):
            runtime.set_var(name, share)
        calls = [_timed(link, lambda: runtime.run(code)) for _ in range(1 + program.repeat)]
        pipe.send((calls, runtime.get_var(code.output_names[0])))
        link.stop_link()


def _linked(ports: Sequence[int], own: int) -> Any:  # noqa: ANN401
    _quiet()
    link = _spu().libspu.link
    desc = link.Desc()
    for rank, number in enumerate(ports):
        desc.add_party(f"party {rank}", f"{HOST}:{number}")
    return link.create_brpc(desc, own)


def _compiled(program: Program) -> Any:  # noqa: ANN401
    frontend, inputs = importlib.import_module("spu.utils.frontend"), list(program.inputs)
    secret = [_spu().Visibility.VIS_SECRET] * len(inputs)
    names = [f"input{number}" for number in range(len(inputs))]
    found, _ = frontend.compile(
        frontend.Kind.JAX, program.function, inputs, {}, names, secret, lambda _: ["output"]
    )
    return found


def _timed(link: Any, work: Any) -> Call:  # noqa: ANN401
    link.barrier()
    received, processor, begin = received_bytes(), time.process_time(), time.perf_counter()
    work()
    seconds, processor = time.perf_counter() - begin, time.process_time() - processor
    link.barrier()
    return Call(seconds, processor, received_bytes() - received)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def received_bytes() -> int:
    """Returns the bytes that all TCP sockets of this process have received, as Linux counts them.

    Raises NescioError where the system does not count them.
    """
    total = 0
    for entry in Path("/proc/self/fd").iterdir():
        if not entry.is_socket():
            continue
        with socket.socket(fileno=os.dup(int(entry.name))) as opened:
            if opened.type == socket.SOCK_STREAM and opened.family in _TCP_FAMILIES:
                info = opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
                if len(info) < _RECEIVED_AT + 8:
                    raise NescioError("this system does not count the bytes of TCP sockets")
                total += struct.unpack_from("Q", info, _RECEIVED_AT)[0]
    return total
