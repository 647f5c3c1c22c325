"""Records a federated run of Flower, and audits what its server sees.

    pip install 'nescio[flower]' 'flwr[simulation]' scikit-learn
    python examples/audit_flower.py
    nescio audit run flower.npz

Twenty users learn to read scikit-learn's digits. The strategy is FedAvg; the recorder keeps the
sums of updates, and counts by windows of ten rounds.
"""

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from sklearn.datasets import load_digits

from nescio import audit
from nescio.audit import Recorder
from nescio.audit.flower import recorded

USERS, ROUNDS, RATE = 20, 60, 0.02


def gradient(model: np.ndarray, images: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The gradient of softmax regression; the last row of `model` is the bias."""
    odds = np.exp(images @ model[:-1] + model[-1])
    odds /= odds.sum(axis=1, keepdims=True)
    odds[np.arange(len(labels)), labels] -= 1
    return np.concatenate([images.T @ odds, odds.sum(axis=0, keepdims=True)]) / len(labels)


def train(message: Message, context: Context) -> Message:
    """One user's part of a round: four steps on its own images."""
    images, labels = load_digits(return_X_y=True)
    mine = np.random.default_rng(int(context.node_config["partition-id"])).permutation(len(labels))
    images, labels = images[mine[:80]] / 16, labels[mine[:80]]
    (model,) = message.content["arrays"].to_numpy_ndarrays()
    model = model.copy()
    for _ in range(4):
        model -= RATE * gradient(model, images, labels)
    content = RecordDict(
        {
            "arrays": ArrayRecord([model]),
            "metrics": MetricRecord({"num-examples": len(labels)}),
        }
    )
    return Message(content, reply_to=message)


def serve(grid: Grid, context: Context) -> None:  # noqa: ARG001 - Flower calls it so
    """Runs the server: FedAvg, recorded."""
    recorder = Recorder(granularity=10)
    strategy = FedAvg(fraction_train=0.2, fraction_evaluate=0, min_available_nodes=USERS)
    strategy = recorded(strategy, recorder)
    start = ArrayRecord([np.zeros((65, 10))])
    strategy.start(grid, start, num_rounds=ROUNDS, train_config=ConfigRecord())
    log = recorder.log()
    log.save("flower.npz")
    result = audit.solve(log, time_limit=60)
    right = (result.participation == recorder.participation()).all(axis=0)
    print(f"{int(right.sum())} of {log.users} users' participation is right")
    print("grade the log: nescio audit run flower.npz")


def main() -> None:
    """Runs server and users in a simulation in this process."""
    client_app, server_app = ClientApp(), ServerApp()
    client_app.train()(train)
    server_app.main()(serve)
    run_simulation(server_app, client_app, num_supernodes=USERS)


if __name__ == "__main__":
    main()
