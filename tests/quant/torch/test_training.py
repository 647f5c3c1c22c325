"""Straight-through training: rounding, gradients and converted models."""

import pytest

from nescio import quant
from nescio.errors import ArgumentError

torch = pytest.importorskip("torch")
qt = pytest.importorskip("nescio.quant.torch")
training = qt.training
nn = torch.nn


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("per_row", [False, True])
def test_weights_are_rounded_as_they_will_be(bits, per_row):
    torch.manual_seed(1)
    layer = nn.Linear(40, 20)
    trained = training.prepare(layer, {"": (bits, None)}, per_row=per_row)
    expected = quant.quantize_weights(layer.weight.detach().numpy(), bits, per_row=per_row)
    found = trained.rounded_parameters()["weight"].detach()
    torch.testing.assert_close(found, torch.from_numpy(expected.to_floats()), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("bits", [1, 4])
def test_the_gradient_passes_as_if_nothing_were_rounded(bits):
    torch.manual_seed(2)
    layer = nn.Linear(10, 3)
    trained = training.prepare(layer, {"": (bits, 8)})
    x = torch.randn(5, 10, requires_grad=True)
    trained(x).square().sum().backward()
    weight = trained.rounded_parameters()["weight"].detach()
    own = training.round_activations(x.detach(), 8)
    out = 2 * (own @ weight.T + layer.bias.detach())
    torch.testing.assert_close(trained.layer.weight.grad, out.T @ own)
    torch.testing.assert_close(x.grad, out @ weight)


@pytest.mark.parametrize("bits", [2, 4, 8, 16])
def test_activations_are_rounded_as_the_engine_does(bits, rng):
    x = torch.randn(6, 30, generator=torch.Generator().manual_seed(3))
    x[2] = 0
    found = training.round_activations(x, bits)
    steps = x.abs().amax(1, keepdim=True) / (2 ** (bits - 1) - 1)
    assert (found - x).abs().max() <= steps.max() / 2 * 1.0001
    levels = found / torch.where(steps == 0, 1, steps)
    torch.testing.assert_close(levels, levels.round(), rtol=0, atol=0.01)
    assert training.round_activations(x, None) is x
    assert training.round_activations(x, 32) is x
    one = training.round_activations(x, 1)
    torch.testing.assert_close(one.abs(), x.abs().mean(1, keepdim=True).expand_as(x))


@pytest.mark.parametrize("kind", [nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell])
@pytest.mark.parametrize("activation_bits", [8, None])
@pytest.mark.parametrize("both", [False, True])
def test_what_is_trained_predicts_as_what_is_converted(kind, activation_bits, both):
    torch.manual_seed(4)
    stack = kind in (nn.LSTM, nn.GRU)
    options = {"num_layers": 2, "bidirectional": True, "batch_first": True} if both else {}
    layer = kind(12, 9, **(options if stack else {}))
    trained = training.prepare(layer, {"": (3, activation_bits)}, refresh=4)
    optimizer = torch.optim.SGD(trained.parameters(), lr=0.05)
    x = torch.randn(5, 4, 12) if stack else torch.randn(4, 12)
    for _ in range(6):
        optimizer.zero_grad()
        y = trained(x)
        (y[0] if isinstance(y, tuple) else y).square().sum().backward()
        optimizer.step()
    trained.eval()
    small = training.convert(trained)
    inputs = (x, x[0]) if stack or not both else (x[0],)
    for given in inputs:
        expected, found = trained(given), small(given)
        torch.testing.assert_close(found, expected, rtol=0, atol=2e-4)
    assert small.activation_bits == (activation_bits or 32) if kind is nn.Linear else True
    assert type(small) is getattr(qt, f"BitSerial{kind.__name__}")


def test_a_state_is_taken_where_hidden_states_are_rounded():
    torch.manual_seed(5)
    for kind in (nn.LSTM, nn.GRU):
        trained = training.prepare(kind(6, 5), {"": (8, 16)}).eval()
        x = torch.randn(7, 2, 6)
        expected, _ = trained(x)
        _, state = trained(x[:3])
        torch.testing.assert_close(trained(x[3:], state)[0], expected[3:])
        torch.testing.assert_close(trained(x[:, 0])[0], expected[:, 0], rtol=0, atol=1e-3)


def task():
    generator = torch.Generator().manual_seed(6)
    x = torch.randn(600, 20, generator=generator)
    teacher = torch.randn(20, 3, generator=generator)
    return x, (x @ teacher).argmax(1)


def fit(model, steps=150):
    x, labels = task()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), labels).backward()
        optimizer.step()
    return model.eval()


def accuracy(model):
    x, labels = task()
    with torch.no_grad():
        return float((model(x).argmax(1) == labels).float().mean())


def test_one_bit_learns_from_scratch_and_from_a_trained_model():
    torch.manual_seed(7)
    fresh = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 3))
    plan = {"*": (1, None)}
    trained = fit(training.prepare(fresh, {}))
    before = accuracy(qt.quantize(trained, {"*": (1, 32)}))
    scratch = training.convert(fit(training.prepare(fresh, plan)))
    tuned = training.convert(fit(training.prepare(trained, plan)))
    assert accuracy(trained) > 0.97
    assert accuracy(scratch) > max(0.9, before)
    assert accuracy(tuned) > max(0.9, before)
    assert type(tuned[0]) is qt.BitSerialLinear
    assert tuned[0].weight_bits == 1


def test_the_original_is_left_alone():
    torch.manual_seed(8)
    model = nn.Sequential(nn.Linear(20, 3), nn.Linear(3, 3))
    before = model[0].weight.detach().clone()
    trained = fit(training.prepare(model, {"0": (4, 8)}), 3)
    assert torch.equal(model[0].weight, before)
    assert type(trained[1]) is nn.Linear
    state = trained.state_dict()
    again = training.prepare(model, {"0": (4, 8)}).eval()
    again.load_state_dict(state)
    assert torch.equal(again(task()[0]), trained(task()[0]))


def test_steps_are_those_of_the_weights_at_eval():
    torch.manual_seed(10)
    trained = training.prepare(nn.Linear(20, 20), {"": (2, None)}, refresh=1000)
    x = torch.randn(5, 20)
    for change in (
        lambda: trained.layer.weight.data.mul_(7),  # which PyTorch does not count
        lambda: trained.load_state_dict({k: v / 3 for k, v in trained.state_dict().items()}),
        lambda: None,
    ):
        trained.train()(x)
        change()
        trained.eval()
        torch.testing.assert_close(trained(x), training.convert(trained)(x), rtol=0, atol=1e-3)


def test_activations_that_the_engine_has_not():
    torch.manual_seed(9)
    trained = training.prepare(nn.Linear(5, 4), {"": (1, 1)})
    with pytest.raises(ArgumentError, match="activation bits: found 1, expected 8, 16 or 32"):
        training.convert(trained)
    assert training.convert(trained, activation_bits=16).activation_bits == 16


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"0": (0, 8)}, "weight bits: found 0"),
        ({"0": (4, 9)}, "found 9, expected 1 to 8"),
        ({"0": (4, 0)}, "found 0"),
        ({"0": (4, 16.0)}, "found 16.0, expected an integer"),
        ({"0": 4}, "expected (weight bits, activation bits or None)"),
        ({"1": (4, 8)}, "found a ReLU"),
        ({"2": (4, 8)}, "found no such layer"),
    ],
)
def test_plans_that_do_not_fit(plan, said):
    with pytest.raises(ArgumentError) as caught:
        training.prepare(nn.Sequential(nn.Linear(3, 3), nn.ReLU()), plan)
    assert said in str(caught.value)


def test_weights_that_left_the_numbers():
    trained = training.prepare(nn.Linear(3, 3), {"": (4, 8)})
    with torch.no_grad():
        trained.layer.weight[1, 1] = torch.inf
    with pytest.raises(ArgumentError, match="weights: found inf at row 1, column 1"):
        trained(torch.ones(3))
    with pytest.raises(ArgumentError, match="weights: found inf"):
        training.convert(trained)


def test_a_model_that_was_not_prepared():
    with pytest.raises(ArgumentError, match=r"expected a model from prepare\(\)"):
        training.convert(nn.Linear(3, 3))
    with pytest.raises(ArgumentError, match="refresh: found 0"):
        training.prepare(nn.Linear(3, 3), {"": (4, 8)}, refresh=0)
