"""The update that one user sends in one round: a gradient or the result of local training."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...errors import ArgumentError

__all__ = ["LocalTraining", "Rounds", "gradient", "local_update", "rounds_of_updates", "vector"]


@dataclass(frozen=True, slots=True)
class LocalTraining:
    """Local training of FedAvg: SGD. `fraction` of the data is drawn anew for each update.

    McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data".
    Raises ArgumentError if a value is out of range.
    """

    batch: int = 16
    epochs: int = 1
    rate: float = 0.01
    momentum: float = 0.0
    fraction: float = 1.0

    def __post_init__(self) -> None:
        if self.batch < 1 or self.epochs < 1:
            raise ArgumentError(
                f"found batch {self.batch}, epochs {self.epochs}, expected 1 or more"
            )
        if not (0 < self.rate < 10 and 0 <= self.momentum < 1 and 0 < self.fraction <= 1):
            raise ArgumentError(
                f"found rate {self.rate}, momentum {self.momentum}, fraction {self.fraction}; "
                "expected 0 < rate < 10, 0 <= momentum < 1, 0 < fraction <= 1"
            )


def vector(tensors: Sequence[Tensor]) -> Tensor:
    """Concatenates tensors to one vector, as aggregation sees them."""
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def gradient(model: nn.Module, pictures: Tensor, labels: Tensor) -> Tensor:
    """Returns the gradient of the mean cross-entropy, as a vector."""
    loss = functional.cross_entropy(model(pictures), labels)
    return vector(torch.autograd.grad(loss, list(model.parameters())))


def local_update(
    model: nn.Module,
    pictures: Tensor,
    labels: Tensor,
    training: LocalTraining,
    generator: torch.Generator,
) -> Tensor:
    """Returns the parameter change of local training, as a vector; the model stays unchanged."""
    return _after(model, (pictures, labels), training, (training.epochs,), generator)[0]


def _after(
    model: nn.Module,
    data: tuple[Tensor, Tensor],
    training: LocalTraining,
    epochs: Sequence[int],
    generator: torch.Generator,
) -> Tensor:
    """(k, d): the parameter change after each number of `epochs`, ascending."""
    pictures, labels = data
    parameters = list(model.parameters())
    before = [parameter.detach().clone() for parameter in parameters]
    kept = max(1, round(training.fraction * len(labels)))
    chosen = torch.randperm(len(labels), generator=generator)[:kept]
    speed = [torch.zeros_like(parameter) for parameter in parameters]
    moved = []
    for epoch in range(1, epochs[-1] + 1):
        order = chosen[torch.randperm(kept, generator=generator)]
        for part in order.split(training.batch):
            loss = functional.cross_entropy(model(pictures[part]), labels[part])
            _step(loss, parameters, speed, training)
        if epoch in epochs:
            moved.append(vector(parameters).detach() - vector(before))
    with torch.no_grad():
        for parameter, old in zip(parameters, before, strict=True):
            parameter.copy_(old)
    return torch.stack(moved)


def _step(
    loss: Tensor, parameters: Sequence[Tensor], speed: Sequence[Tensor], training: LocalTraining
) -> None:
    slopes = torch.autograd.grad(loss, list(parameters))
    with torch.no_grad():
        torch._foreach_mul_(speed, training.momentum)
        torch._foreach_add_(speed, slopes)
        torch._foreach_add_(parameters, speed, alpha=-training.rate)


@dataclass(frozen=True, eq=False, slots=True)
class Rounds:
    """The rounds of a fixed model.

    `sums`: (rounds, d). `means`: (users, d), the mean update of each user. `noise`: (users,), the
    root mean square distance of a user's updates from their mean (an unbiased estimate) over the
    length of the mean; NaN for users who took part in fewer than two rounds.
    """

    sums: Tensor
    means: Tensor
    noise: Tensor


def rounds_of_updates(
    model: nn.Module,
    users: Sequence[tuple[Tensor, Tensor]],
    present: Tensor,
    training: LocalTraining,
    *,
    epochs: Sequence[int] = (),
    seed: int = 0,
) -> list[Rounds]:
    """Trains the rounds of `present` (bool, rounds x users), for each number of `epochs`.

    `epochs` ascend; by default that of `training`. Longer training continues where shorter training
    ended, so that all of them together cost as much as the longest.
    """
    epochs = tuple(epochs) or (training.epochs,)
    generator = torch.Generator().manual_seed(seed)
    size = sum(parameter.numel() for parameter in model.parameters())
    sums = torch.zeros(len(epochs), len(present), size)
    totals = torch.zeros(len(epochs), len(users), size)
    squares = torch.zeros(len(epochs), len(users), dtype=torch.float64)
    for t, row in enumerate(present):
        for user in row.nonzero().flatten().tolist():
            moved = _after(model, users[user], training, epochs, generator)
            sums[:, t] += moved
            totals[:, user] += moved
            squares[:, user] += moved.double().square().sum(dim=1)
    times = present.sum(dim=0)
    return [_rounds(*parts, times) for parts in zip(sums, totals, squares, strict=True)]


def _rounds(sums: Tensor, totals: Tensor, squares: Tensor, times: Tensor) -> Rounds:
    means = totals / times.clamp(min=1)[:, None]
    length = means.double().square().sum(dim=1)
    variance = (squares - times * length).clamp(min=0) / (times - 1)
    noise = torch.where(times > 1, (variance / length).sqrt(), torch.nan)
    return Rounds(sums, means, noise)
