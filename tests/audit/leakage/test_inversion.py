"""Images from gradients and from FedAvg updates."""

import pytest

torch = pytest.importorskip("torch")

from nescio.audit._leakage import networks  # noqa: E402
from nescio.audit._leakage.inversion import _unrolled  # noqa: E402
from nescio.audit.leakage import (  # noqa: E402
    LocalTraining,
    best_psnr,
    gradient,
    invert_gradient,
    invert_update,
    local_update,
    psnr,
)

SHAPE = (1, 8, 8)


def pictures(count, seed=1):
    """Smooth images, a few waves each."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.rand(count, 1, 3, 3, generator=generator)
    fine = torch.nn.functional.interpolate(coarse, (8, 8), mode="bilinear", align_corners=True)
    return fine, torch.randint(4, (count,), generator=generator)


def test_psnr_is_that_of_the_mean_squared_error():
    true = torch.full((2, 2), 0.5)
    assert psnr(true + 0.1, true) == pytest.approx(20, abs=1e-4)
    assert psnr(true, true) == 100
    assert psnr(torch.full((2, 2), 7.0), torch.ones(2, 2)) == 100  # what is found is clipped
    found = torch.stack([true + 0.3, true + 0.01])
    assert best_psnr(found, true[None]) == pytest.approx(40, abs=1e-3)


def test_a_picture_from_its_exact_gradient():
    model = networks.perceptron(64, 20, 4, smooth=True, seed=2)
    x, y = pictures(1)
    seen = gradient(model, x, y)
    found = invert_gradient(model, seen, (1, *SHAPE), 4, steps=200)
    assert psnr(found, x) > 35
    other, _ = pictures(1, seed=9)
    assert psnr(found, other) < 25


def test_a_sum_of_gradients_tells_less():
    """The chapter's Table 6.2: more users in a sum reveal less of each."""
    model = networks.perceptron(64, 10, 4, smooth=True, seed=2)
    x, y = pictures(16)
    each = [gradient(model, x[i : i + 1], y[i : i + 1]) for i in range(16)]
    alone = invert_gradient(model, each[0], (1, *SHAPE), 4, steps=200)
    together = invert_gradient(model, torch.stack(each).sum(0), (16, *SHAPE), 4, steps=200)
    assert best_psnr(alone, x) > best_psnr(together, x) + 6


def test_what_is_unrolled_is_local_training():
    """A single batch has no order that the attacker would have to know."""
    model = networks.perceptron(64, 6, 4, smooth=False, seed=2)
    training = LocalTraining(batch=3, epochs=3, rate=0.2, momentum=0.5)
    x, y = pictures(3)
    sent = local_update(model, x, y, training, torch.Generator().manual_seed(0))
    assert torch.allclose(_unrolled(model, x, y, training), sent, atol=1e-6)


def test_pictures_from_a_fedavg_update():
    model = networks.perceptron(64, 30, 4, smooth=False, seed=2)
    training = LocalTraining(batch=2, epochs=2, rate=0.05)
    x, y = pictures(4)
    sent = local_update(model, x, y, training, torch.Generator().manual_seed(0))
    found = invert_update(model, sent, (1, 4, *SHAPE), y[None], training, steps=200)
    grey = torch.full((1, *SHAPE), 0.5)
    assert best_psnr(found.flatten(0, 1), x) > best_psnr(grey, x) + 3
