"""Recording of Flower runs (https://flower.ai): sums of updates, and participants.

`recorded(strategy, recorder)` returns the strategy with a recorder that sees what the server sees.
It supports both interfaces of Flower: strategies of `flwr.serverapp.strategy`, whose messages
contain arrays, and those of `flwr.server.strategy`, which receive the parameters of clients.

FedAvg sends models instead of updates, and averages them by the clients' examples n_k. The recorded
sum is that of n_k (w_k - w), with w the model at the start of the round. With Flower's SecAgg+
(older interface) a strategy gets the same average for each client; the sum is the same up to the
quantization of SecAgg+.

This module does not import Flower: a strategy is any object with its methods.
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ...errors import ArgumentError
from .recorder import Recorder

__all__ = ["recorded"]

Floats = npt.NDArray[np.float64]
Strategy = TypeVar("Strategy")


def recorded(
    strategy: Strategy,
    recorder: Recorder,
    *,
    weighted: bool = True,
    parameters_to_ndarrays: Callable[[Any], Sequence[npt.NDArray[Any]]] | None = None,
) -> Strategy:
    """Returns a copy of a strategy that adds each training round to the recorder.

    `weighted`: sum updates times their number of examples, as FedAvg does.
    `parameters_to_ndarrays`: converts a client's parameters to arrays; by default Flower's own
    function. The copy behaves like the strategy. Clients that failed are not in the sum, as in
    Flower. Raises ArgumentError if `strategy` is not a strategy.
    """
    own = copy.copy(strategy)
    if hasattr(strategy, "aggregate_train") and hasattr(strategy, "configure_train"):
        _record_messages(own, recorder, weighted=weighted)
    elif hasattr(strategy, "aggregate_fit") and hasattr(strategy, "configure_fit"):
        convert = parameters_to_ndarrays or _flower_arrays
        _record_clients(own, recorder, convert, weighted=weighted)
    else:
        raise ArgumentError(
            f"strategy: found {type(strategy).__name__}, expected one of Flower's, with "
            "configure_train and aggregate_train, or configure_fit and aggregate_fit"
        )
    return own


def _record_messages(strategy: Any, recorder: Recorder, *, weighted: bool) -> None:  # noqa: ANN401
    """Wraps strategies whose replies are messages: metadata.src_node_id, content with arrays."""
    configure, aggregate = strategy.configure_train, strategy.aggregate_train
    key = getattr(strategy, "weighted_by_key", "num-examples")
    model: list[Floats] = []

    def configure_train(server_round: int, arrays: Any, *rest: Any, **named: Any) -> Any:  # noqa: ANN401
        model[:] = [_flat(arrays.to_numpy_ndarrays())]
        return configure(server_round, arrays, *rest, **named)

    def aggregate_train(server_round: int, replies: Iterable[Any]) -> Any:  # noqa: ANN401
        kept = list(replies)
        good = [reply for reply in kept if not reply.has_error()]
        members = [
            (
                reply.metadata.src_node_id,
                _flat(next(iter(reply.content.array_records.values())).to_numpy_ndarrays()),
                _metric(reply.content, key) if weighted else 1.0,
            )
            for reply in good
        ]
        _add(recorder, model, members)
        return aggregate(server_round, kept)

    strategy.configure_train, strategy.aggregate_train = configure_train, aggregate_train


def _record_clients(
    strategy: Any,  # noqa: ANN401
    recorder: Recorder,
    convert: Callable[[Any], Sequence[npt.NDArray[Any]]],
    *,
    weighted: bool,
) -> None:
    """Wraps strategies whose results are pairs of a client with a cid and its parameters."""
    configure, aggregate = strategy.configure_fit, strategy.aggregate_fit
    model: list[Floats] = []

    def configure_fit(server_round: int, parameters: Any, *rest: Any, **named: Any) -> Any:  # noqa: ANN401
        model[:] = [_flat(convert(parameters))]
        return configure(server_round, parameters, *rest, **named)

    def aggregate_fit(server_round: int, results: Iterable[Any], failures: Any) -> Any:  # noqa: ANN401
        kept = list(results)
        members = [
            (
                client.cid,
                _flat(convert(result.parameters)),
                float(result.num_examples) if weighted else 1.0,
            )
            for client, result in kept
        ]
        _add(recorder, model, members)
        return aggregate(server_round, kept, failures)

    strategy.configure_fit, strategy.aggregate_fit = configure_fit, aggregate_fit


def _add(
    recorder: Recorder, model: list[Floats], members: Iterable[tuple[Any, Floats, float]]
) -> None:
    """Adds a round; only the sum is kept."""
    if not model:
        raise ArgumentError("a round ended without a call of this strategy's configure method")
    total = np.zeros_like(model[0])
    present = []
    for name, arrays, weight in members:
        if arrays.shape != total.shape:
            raise ArgumentError(
                f"client {name}: found {arrays.size} parameters, expected {total.size} as in the "
                "model sent to it"
            )
        total += weight * (arrays - model[0])
        present.append(name)
    recorder.add(total.astype(np.float32), present)


def _metric(content: Any, key: str) -> float:  # noqa: ANN401
    for record in content.metric_records.values():
        if key in record:
            return float(record[key])
    raise ArgumentError(f"a reply has no metric {key!r}; return it, or pass weighted=False")


def _flat(arrays: Sequence[npt.NDArray[Any]]) -> Floats:
    parts = [np.asarray(array, np.float64).reshape(-1) for array in arrays]
    return np.concatenate(parts) if parts else np.zeros(0)


def _flower_arrays(parameters: Any) -> Sequence[npt.NDArray[Any]]:  # noqa: ANN401
    from flwr.common import parameters_to_ndarrays  # noqa: PLC0415 - needed with Flower only

    arrays: Sequence[npt.NDArray[Any]] = parameters_to_ndarrays(parameters)
    return arrays
