"""FedAvg on scikit-learn's 1,797 digits, in NumPy: softmax regression on uneven shares."""

import numpy as np
from sklearn.datasets import load_digits

from nescio.audit import Recorder

CLASSES = 10


def shares(users, seed=0):
    """Images (64 pixels, 0 to 1) and labels of each user; two classes weigh heavily with each."""
    rng = np.random.default_rng(seed)
    images, labels = load_digits(return_X_y=True)
    images = images / 16
    size = len(labels) // users
    chosen = []
    for _ in range(users):
        weight = np.where(np.isin(labels, rng.choice(CLASSES, 2, replace=False)), 8.0, 1.0)
        picked = rng.choice(len(labels), size, replace=False, p=weight / weight.sum())
        chosen.append((images[picked], labels[picked]))
    return chosen


def gradient(model, images, labels):
    logits = images @ model[:-1] + model[-1]
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    odds /= odds.sum(axis=1, keepdims=True)
    odds[np.arange(len(labels)), labels] -= 1
    odds /= len(labels)
    return np.concatenate([images.T @ odds, odds.sum(axis=0, keepdims=True)])


def update(model, images, labels, rate, epochs, batch, rng):
    """The update of one user: the change of the model after `epochs` of SGD."""
    own = model.copy()
    for _ in range(epochs):
        order = rng.permutation(len(labels))
        for at in range(0, len(order), batch):
            some = order[at : at + batch]
            own -= rate * gradient(own, images[some], labels[some])
    return own - model


def run(users, rounds, *, rate=0.05, epochs=1, batch=16, server_rate=1.0, share=0.1, seed=0):
    """Records a FedAvg run; returns the recorder and the final accuracy of the model."""
    rng = np.random.default_rng(seed)
    data = shares(users, seed)
    recorder = Recorder(range(users), granularity=10)
    model = np.zeros((65, CLASSES))
    for _ in range(rounds):
        present = np.flatnonzero(rng.random(users) < share)
        total = np.zeros_like(model)
        for user in present:
            total += update(model, *data[user], rate, epochs, batch, rng)
        recorder.add(total.reshape(-1).astype(np.float32), present.tolist())
        if len(present):
            model += server_rate * total / len(present)
    images, labels = load_digits(return_X_y=True)
    right = (images / 16 @ model[:-1] + model[-1]).argmax(axis=1) == labels
    return recorder, float(right.mean())
