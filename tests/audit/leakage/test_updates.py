"""Gradients and FedAvg updates of one user, and the rounds of a fixed model."""

import pytest

from nescio.errors import ArgumentError

torch = pytest.importorskip("torch")

from nescio.audit._leakage import networks  # noqa: E402
from nescio.audit._leakage.updates import rounds_of_updates, vector  # noqa: E402
from nescio.audit.leakage import LocalTraining, gradient, local_update  # noqa: E402


@pytest.fixture
def model():
    return networks.perceptron(12, 5, 3, smooth=False, seed=4)


def pictures(count, seed=1):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(3, (count,), generator=generator)
    return torch.rand(count, 3, 2, 2, generator=generator), labels


def coins(seed=0):
    return torch.Generator().manual_seed(seed)


def test_lenet_has_the_chapters_size_and_no_effect_on_other_coins():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    assert sum(p.numel() for p in networks.lenet().parameters()) == 62_006
    assert torch.equal(torch.rand(3), expected)


def test_one_step_is_the_gradient(model):
    """McMahan et al.: one epoch over one batch moves the parameters by -rate times the gradient."""
    x, y = pictures(7)
    moved = local_update(model, x, y, LocalTraining(batch=7, rate=0.5), coins())
    assert torch.allclose(moved, -0.5 * gradient(model, x, y), atol=1e-6)


def test_several_steps_are_those_of_torchs_optimizer(model):
    x, y = pictures(1)  # one picture: no order to agree on
    training = LocalTraining(batch=1, epochs=5, rate=0.2, momentum=0.9)
    moved = local_update(model, x, y, training, coins())
    before = vector(list(model.parameters())).detach().clone()
    search = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    for _ in range(5):
        search.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        search.step()
    after = vector(list(model.parameters())).detach()
    assert torch.allclose(moved, after - before, atol=1e-6)


def test_the_model_is_as_it_was(model):
    before = vector(list(model.parameters())).detach().clone()
    local_update(model, *pictures(9), LocalTraining(4, 3), coins())
    assert torch.equal(vector(list(model.parameters())), before)


def test_a_fraction_leaves_pictures_out(model):
    x, y = pictures(10)
    x[:] = x[0]
    y[:] = y[0]  # all alike: only how many there are matters
    whole = local_update(model, x, y, LocalTraining(1), coins())
    part = local_update(model, x, y, LocalTraining(1, fraction=0.5), coins())
    five = local_update(model, x[:5], y[:5], LocalTraining(1), coins())
    assert torch.equal(part, five)
    assert not torch.allclose(part, whole)


def test_rounds_are_sums_of_updates(model):
    """A single batch has no order, so updates are the same in every round."""
    users = [pictures(6, seed) for seed in range(3)]
    present = torch.tensor([[1, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0]], dtype=torch.bool)
    training = LocalTraining(6, 2)
    first, second = rounds_of_updates(model, users, present, training, epochs=(1, 2))
    for epochs, rounds in ((1, first), (2, second)):
        own = LocalTraining(6, epochs)
        each = torch.stack([local_update(model, *user, own, coins()) for user in users])
        assert torch.allclose(rounds.means, each, atol=1e-6)
        assert torch.allclose(rounds.sums, present.float() @ each, atol=1e-6)
        assert (rounds.noise < 1e-2).all()


def test_noise_is_relative_to_the_mean(model):
    user = pictures(8)
    training = LocalTraining(1, 1, rate=0.3)
    present = torch.ones(6, 1, dtype=torch.bool)
    (rounds,) = rounds_of_updates(model, [user], present, training, seed=3)
    moved = rounds.sums
    away = (moved - moved.mean(0)).square().sum(1).sum() / 5
    expected = (away / moved.mean(0).square().sum()).sqrt()
    assert rounds.noise[0] == pytest.approx(float(expected), rel=1e-3)
    assert rounds.noise[0] > 0.01


def test_who_took_part_once_has_no_noise_to_speak_of(model):
    present = torch.tensor([[True, False]])
    (rounds,) = rounds_of_updates(model, [pictures(4), pictures(4)], present, LocalTraining())
    assert rounds.noise.isnan().all()
    assert not rounds.means[1].any()


@pytest.mark.parametrize(
    "options", [{"batch": 0}, {"epochs": 0}, {"rate": 0}, {"momentum": 1}, {"fraction": 0}]
)
def test_training_that_cannot_be(options):
    with pytest.raises(ArgumentError, match="expected"):
        LocalTraining(**options)
