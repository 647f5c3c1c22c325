"""The training of the click model: examples, epochs, and the choice of the best one."""

from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional

from examples.common.quality import roc_auc
from examples.taobao.data import Integers
from examples.taobao.inferences import Inferences, pair, with_negatives
from examples.taobao.model import ClickModel, scores_of
from examples.taobao.tables import Tables

_BATCHES = 64, 1024  # the least and the most examples of a step
_STEPS = 100  # of an epoch, at least, unless batches would be too small
_RATE = 2e-3  # of the first epoch; it falls to 0 in equal steps
_DECAY = 1e-4  # of the rows: most ads have few clicks


def train(
    model: ClickModel,
    tables: Tables,
    examples: Inferences,
    valid: Inferences,
    *,
    epochs: int,
    seed: int,
    progress: Callable[[str], None],
) -> None:
    """Trains the model; it gets the weights after the epoch with the highest AUC over `valid`.

    Where `examples` has clicks only, ads that were not clicked are drawn in each epoch anew.
    """
    random = np.random.default_rng(seed)
    known = np.unique(pair(examples.users, examples.ads)) if examples.clicked.all() else None
    optimizer = torch.optim.Adam(
        [
            {"params": model.features.parameters(), "weight_decay": _DECAY},
            {"params": model.head.parameters()},
        ],
        lr=_RATE,
        fused=True,
    )
    best, state = 0.0, model.state_dict()
    rows = tables.rows(valid)
    for epoch in range(epochs):
        for group in optimizer.param_groups:
            group["lr"] = _RATE * (1 - epoch / epochs)
        own = examples if known is None else with_negatives(examples, known, random)
        _one_epoch(model, tables, own, random.permutation(len(own)), optimizer)
        found = roc_auc(valid.clicked, scores_of(model.eval(), rows))
        progress(f"epoch {epoch + 1} of {epochs}: ROC-AUC {found:.4f} for clicks to validate with")
        if found > best:
            best = found
            state = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(state)
    model.eval()


def _one_epoch(
    model: ClickModel,
    tables: Tables,
    examples: Inferences,
    order: Integers,
    optimizer: torch.optim.Optimizer,
) -> None:
    model.train()
    size = int(np.clip(len(order) // _STEPS, *_BATCHES))
    for numbers in np.split(order, range(size, len(order), size)):
        batch = examples[numbers]
        labels = torch.from_numpy(batch.clicked.astype(np.float32))
        scores = model(torch.from_numpy(tables.rows(batch)))
        loss = functional.binary_cross_entropy_with_logits(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
