"""Images from what a user sent: gradients (Zhu et al.) and FedAvg updates (Geiping et al.).

Both search for images whose own gradient, or update, is the observed one. Zhu, Liu and Han, "Deep
Leakage from Gradients" (NeurIPS 2019): squared distance, labels searched as well, L-BFGS. Geiping,
Bauermeister, Droge and Moeller, "Inverting Gradients" (NeurIPS 2020): cosine similarity through the
unrolled steps of local training, total variation, Adam on the signs of the gradients.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from .updates import LocalTraining, vector

__all__ = ["best_psnr", "invert_gradient", "invert_update", "psnr"]

_HISTORY = 50
_VARIATION = 1e-3
_ADAM_RATE = 0.05


def psnr(found: Tensor, true: Tensor) -> float:
    """Returns the PSNR of images in [0, 1], in dB, at most 100."""
    error = float(functional.mse_loss(found.clamp(0, 1), true))
    return min(100.0, -10 * math.log10(max(error, 1e-10)))


def best_psnr(found: Tensor, true: Tensor) -> float:
    """Returns the PSNR of the found and the true image that are nearest, as in the chapter."""
    return max(psnr(picture, target) for picture in found for target in true)


def invert_gradient(
    model: nn.Module,
    seen: Tensor,
    shape: Sequence[int],
    classes: int,
    *,
    steps: int = 200,
    seed: int = 0,
) -> Tensor:
    """Searches for images of `shape` (k, channels, height, width) whose gradients sum to `seen`.

    `seen`: the sum of the gradients of the cross-entropy of k images, one per user. The model must
    have second derivatives. Zhu et al., Algorithm 1.
    """
    generator = torch.Generator().manual_seed(seed)
    pictures = torch.rand(*shape, generator=generator).requires_grad_()
    labels = torch.zeros(shape[0], classes, requires_grad=True)
    with torch.no_grad():
        labels.copy_(0.1 * torch.randn(shape[0], classes, generator=generator))
    parameters = list(model.parameters())
    scale = 1 / seen.square().sum().clamp(min=1e-20)
    search = torch.optim.LBFGS(
        [pictures, labels],
        max_iter=steps,
        max_eval=2 * steps,
        history_size=_HISTORY,
        tolerance_grad=1e-10,
        tolerance_change=1e-14,
        line_search_fn="strong_wolfe",
    )

    def distance() -> Tensor:
        search.zero_grad()
        likely = functional.log_softmax(model(pictures), dim=1)
        loss = -(labels.softmax(dim=1) * likely).sum()
        own = vector(torch.autograd.grad(loss, parameters, create_graph=True))
        away = (own - seen).square().sum() * scale
        away.backward(inputs=[pictures, labels])
        return away

    search.step(distance)
    return pictures.detach().clamp(0, 1)


def invert_update(
    model: nn.Module,
    seen: Tensor,
    shape: Sequence[int],
    labels: Tensor,
    training: LocalTraining,
    *,
    steps: int = 300,
    variation: float = _VARIATION,
    seed: int = 0,
) -> Tensor:
    """Searches for images whose updates sum to `seen`.

    `shape`: (users, k, channels, height, width). `labels`: int64 (users, k), known, as Geiping et
    al. assume for several images. The order of a user's batches is unknown; images are used in
    their given order.
    """
    generator = torch.Generator().manual_seed(seed)
    pictures = torch.rand(*shape, generator=generator).requires_grad_()
    search = torch.optim.Adam([pictures], lr=_ADAM_RATE)
    slower = torch.optim.lr_scheduler.MultiStepLR(
        search, [steps * 3 // 8, steps * 5 // 8, steps * 7 // 8], gamma=0.1
    )
    for _ in range(steps):
        search.zero_grad()
        own = sum(
            (_unrolled(model, x, y, training) for x, y in zip(pictures, labels, strict=True)),
            torch.zeros_like(seen),
        )
        away = 1 - functional.cosine_similarity(own, seen, dim=0)
        away = away + variation * _total_variation(pictures)
        (slope,) = torch.autograd.grad(away, [pictures])
        pictures.grad = slope.sign()
        search.step()
        slower.step()
        with torch.no_grad():
            pictures.clamp_(0, 1)
    return pictures.detach()


def _unrolled(
    model: nn.Module, pictures: Tensor, labels: Tensor, training: LocalTraining
) -> Tensor:
    """Returns the update of local training on these images, differentiable."""
    before = dict(model.named_parameters())
    now: dict[str, Tensor] = dict(before)
    speed = {name: torch.zeros_like(value) for name, value in before.items()}
    for _ in range(training.epochs):
        for x, y in zip(pictures.split(training.batch), labels.split(training.batch), strict=True):
            loss = functional.cross_entropy(functional_call(model, now, (x,)), y)
            slopes = torch.autograd.grad(loss, list(now.values()), create_graph=True)
            for name, slope in zip(now, slopes, strict=True):
                speed[name] = training.momentum * speed[name] + slope
            now = {name: value - training.rate * speed[name] for name, value in now.items()}
    return vector([now[name] - before[name] for name in before])


def _total_variation(pictures: Tensor) -> Tensor:
    down = (pictures[..., 1:, :] - pictures[..., :-1, :]).abs().mean()
    across = (pictures[..., :, 1:] - pictures[..., :, :-1]).abs().mean()
    return down + across
